"""When a compaction is due: Hudi's triggers, and what holds every trigger back. Pure.

Rules from org.apache.hudi.table.action.compact.ScheduleCompactionActionExecutor and
org.apache.hudi.common.util.CompactionUtils (0.15). Times are those of instants, in whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from hudi_assets.engine.actions.compaction.strategy import Summaries
from hudi_assets.engine.model import Action, NoPlan, Plan
from hudi_assets.engine.model.units import iso
from hudi_assets.engine.table.settings.compaction import (
    MAX_DELTA_COMMITS,
    MAX_DELTA_SECONDS,
    CompactionSettings,
    TriggerName,
)
from hudi_assets.engine.timeline.instants import Timeline, instant_ms


def hold_back(timeline: Timeline, *, ignore: frozenset[str] = frozenset(), writes: bool = True) -> NoPlan | None:
    """Strictly one compaction at a time, and, with `writes`, none beside an unfinished write.

    A log file that an unfinished write puts into the old slice after the plan is published would be
    lost on version 6.
    """
    for instant in timeline.pending_services:
        if instant.timestamp in ignore:
            continue
        return NoPlan(f"{instant.action} {instant.timestamp} is pending")
    return beside_write(timeline) if writes else None


def beside_write(timeline: Timeline) -> NoPlan | None:
    """The unfinished write that a plan would have to stand beside."""
    first = next(iter(timeline.inflight_writes), None)
    return NoPlan(f"{first.action} {first.timestamp} is {first.state}") if first else None


@dataclass(frozen=True, slots=True)
class Since:
    """The delta commits since a point on the timeline, and that point in words."""

    delta_commits: int
    instant: str
    words: str


def since_last_compaction(timeline: Timeline) -> Since | None:
    """Delta commits after the last completed compaction, else all there are; None where there are none."""
    completed = timeline.completed(Action.COMMIT)
    return _since(timeline, completed[-1].timestamp if completed else None, "last compaction")


def since_last_request(timeline: Timeline) -> Since | None:
    """The same, from the last compaction that was requested, be it completed or not."""
    pending = timeline.pending_compactions
    if not pending:
        return since_last_compaction(timeline)
    return _since(timeline, pending[-1].timestamp, "last compaction request")


def _since(timeline: Timeline, compaction: str | None, words: str) -> Since | None:
    deltas = [i.timestamp for i in timeline.instants if i.action is Action.DELTA_COMMIT]
    if compaction is not None:
        return Since(sum(1 for delta in deltas if delta > compaction), compaction, f"since the {words}")
    return Since(len(deltas), deltas[0], "since the first delta commit") if deltas else None


def not_due(timeline: Timeline, settings: CompactionSettings, *, instant: str, timezone: str) -> NoPlan | None:
    """None where a compaction requested at `instant` is due, else the reason why it is not."""
    if settings.trigger is TriggerName.EVENT_TIME:
        return None
    if settings.trigger is TriggerName.NUM_COMMITS_AFTER_LAST_REQUEST:
        since = since_last_request(timeline)
    else:
        since = since_last_compaction(timeline)
    if since is None:
        return NoPlan("there is no delta commit yet")
    elapsed = _seconds(instant, timezone) - _seconds(since.instant, timezone)
    enough = since.delta_commits >= settings.max_delta_commits
    late = elapsed >= settings.max_delta_seconds
    commits = _commits(since, settings.max_delta_commits)
    time = _time(since, elapsed, settings.max_delta_seconds)
    match settings.trigger:
        case TriggerName.TIME_ELAPSED:
            return None if late else NoPlan(time)
        case TriggerName.NUM_AND_TIME:
            return None if enough and late else NoPlan(time if enough else commits)
        case TriggerName.NUM_OR_TIME:
            return None if enough or late else NoPlan(f"{commits}, or {time}")
        case _:
            return None if enough else NoPlan(commits)


def not_old_enough(plan: Plan, summaries: Summaries, threshold: int) -> NoPlan | None:
    """EVENT_TIME_TRIGGER for a strategy that takes log files of any age.

    None where a log file of the plan has records of unknown event time, or at or below `threshold` (epoch ms), else
    the reason why the plan is not due. What the strategy leaves out does not count: it would make each plan due.
    """
    # One partition after the other: what is known of a log file is kept by partition.
    operations = sorted(plan.operations, key=attrgetter("partition"))
    logs = (summaries[path] for op in operations for path in op.log_files)
    times = [log.counts_from for log in logs if not log.holds_nothing]
    if any(time is None or time <= threshold for time in times):
        return None
    strategy = plan.strategy.rpartition(".")[-1]
    return NoPlan(f"no log file that {strategy} takes has an event time at or below {iso(threshold)}")


def _commits(since: Since, wanted: int) -> str:
    what = "delta commit" if since.delta_commits == 1 else "delta commits"
    are = "is" if wanted == 1 else "are"
    return f"{since.delta_commits} {what} {since.words}; {wanted} {are} asked for ({MAX_DELTA_COMMITS})"


def _time(since: Since, elapsed: int, wanted: int) -> str:
    return f"{elapsed} s {since.words}; {wanted} s are asked for ({MAX_DELTA_SECONDS})"


def _seconds(instant: str, timezone: str) -> int:
    return instant_ms(instant, timezone) // 1000
