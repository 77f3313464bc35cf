"""A table as the compaction policy sees it, what its past teaches, and its past as a feed for a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.commit_bound import bounded_summaries
from hudi_assets.engine.event_time.lateness import data_latency_ms, no_latency_reason
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, MergeMode, Proposal, WaitUntil
from hudi_assets.engine.model.log_summary import Summaries
from hudi_assets.engine.model.units import EventTimeUnit, Latency
from hudi_assets.engine.past.compactions import completed_ms, past_compactions
from hudi_assets.engine.past.growth import growth_of
from hudi_assets.engine.slo.policy import propose
from hudi_assets.engine.slo.simulation.feed import Commit, Feed, NewLog, machine_of
from hudi_assets.engine.slo.values import UNKNOWN, Clock, Cut, Done, Group, History, Log, SloTerms, View, commit_gap
from hudi_assets.engine.table.files.origins import origin_of
from hudi_assets.engine.table.settings.compaction import TriggerName
from hudi_assets.engine.table.settings.config import STATE_A_LATENCY
from hudi_assets.engine.table.slices.parts import Part
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME, WriteStat

_LATEST: Final = 30
# After so short a time it is the next plan of the same start.
_AT_ONCE_MS: Final = 30_000
_Written = tuple[int, int, tuple[WriteStat, ...]]


def proposal_of(
    state: TableState,
    terms: SloTerms,
    latency: Latency | None = None,
    *,
    tick_ms: int | None = None,
    publish_ms: int | None = None,
) -> Proposal:
    """What the policy proposes now. `tick_ms`, `publish_ms`: in place of what `Clock` and `History` take for usual.

    Raises `InvalidInput` where a table is not compacted by event time, or has no data latency.
    """
    compaction = state.config.compaction
    if not compaction.by_event_time or compaction.trigger is not TriggerName.EVENT_TIME:
        raise InvalidInput(
            f"A freshness SLO says nothing to {compaction.strategy} with the trigger {compaction.trigger}.",
            where=state.storage.base,
            hint="It goes with the event-time strategy and EVENT_TIME_TRIGGER.",
        )
    pending = next(iter(state.executable_plans), None)
    if pending is not None:
        return WaitUntil(state.now_ms, 0, f"compaction {pending.instant} is planned and comes first")
    clock, history = (
        Clock(state.now_ms) if tick_ms is None else Clock(state.now_ms, tick_ms),
        history_of(state, publish_ms),
    )
    if state.config.clock == "commit":  # it stands still until the next commit
        clock = Clock(clock.now_ms, max(clock.tick_ms, history.commit_gap_ms))
    return propose(view_of(state, latency), history, clock, terms)


def view_of(state: TableState, latency: Latency | None = None) -> View:
    """The file groups with log files. Log files without rows count for nothing."""
    known_ms = _latency_of(state, latency)
    summaries = bounded_summaries(state, latency)
    dated, by = TableTimes(state).oldest, (TableTimes(state).made_by, state.timeline.start)
    groups: list[Group] = []
    for partition in sorted(state.parts):
        part = state.parts[partition]
        make = partial(_groups_of, state, part, summaries)
        # The bound of what has no event time goes by the latency of this call.
        groups += part.tell(_groups_of, make, by) if partition in dated else make()
    return View(tuple(groups), known_ms, cut_of(state))


def _groups_of(state: TableState, part: Part, summaries: Summaries) -> list[Group]:
    committed = state.derive(_committed)
    groups = []
    for slice_ in part.view.latest:
        logs = []
        for log in slice_.log_files:
            summary = summaries[log.path]
            if summary.holds_nothing:
                continue
            low = UNKNOWN if summary.counts_from is None else summary.counts_from
            high = summary.max_event_time
            # What was written before the active timeline came in time, for all that is known.
            at = committed.get(log.path) or committed.get(origin_of(state, log)) or low
            logs.append(Log(at, low, 1 << 62 if high is None else max(low, high), log.size))
        if logs:
            base = slice_.base_file.size if slice_.base_file else 0
            groups.append(Group(slice_.partition, slice_.file_id, base, tuple(logs)))
    return groups


def _committed(state: TableState) -> dict[str, int]:
    return {stat.path: at for at, _, stats in _written(state) for stat in stats}


def history_of(state: TableState, publish_ms: int | None = None) -> History:
    """By the active timeline. How long publishing takes is not on it: who publishes may have measured it."""
    times = sorted(at for at, _, _ in _written(state))[-_LATEST:]
    usual = History()
    return History(
        done=tuple(reversed(tuple(islice(_starts(state), _LATEST)))),
        commit_gap_ms=commit_gap(times),
        publish_ms=usual.publish_ms if publish_ms is None else publish_ms,
    )


def _starts(state: TableState) -> Iterator[Done]:
    """The last one first. One start may need several plans, one right after the other: they count as one compaction."""
    by_commits = state.config.clock == "commit"
    later: Done | None = None
    for one in past_compactions(state):
        if one.duration_ms is None:
            continue
        read = one.log_bytes if one.bytes_read is None else one.bytes_read
        begun, ended = one.completed_ms - one.duration_ms, one.completed_ms
        if by_commits:  # the table's clock stood still meanwhile
            begun = ended = max((at for at, true, _ in _written(state) if true <= begun), default=0)
        done = Done(begun, one.duration_ms, read + one.bytes_written)
        if later is not None and later.begun_ms - ended <= (0 if by_commits else _AT_ONCE_MS):
            done = Done(begun, done.duration_ms + later.duration_ms, done.size + later.size)
        elif later is not None:
            yield later
        later = done
    if later is not None:
        yield later


def feed_of_past(state: TableState, latency: Latency | None = None) -> Feed:
    """The delta commits of the active timeline whose event times are known."""
    known_ms = _latency_of(state, latency)
    growth = growth_of(state, {stat.path: stat for _, _, stats in _written(state) for stat in stats})
    commits = []
    for at, _, stats in _written(state):
        logs = []
        for stat in sorted(stats, key=lambda stat: stat.log_version or 0):  # as they lie in the slice
            if stat.min_event_time is None or stat.max_event_time is None:
                continue
            place = (stat.partition, stat.file_id)
            logs.append(NewLog(place, stat.min_event_time, stat.max_event_time, stat.size, growth.of(stat)))
        if logs:
            commits.append(Commit(at, tuple(logs)))
    if not commits:
        raise InvalidInput(
            "No delta commit of the active timeline says when its records happened.",
            where=state.storage.base,
            hint="Commits of this project do. Of other writers' tables the past cannot be simulated.",
        )
    commits.sort(key=lambda commit: commit.at_ms)
    there = {(one.partition, one.file_id): one.base_file.size for one in state.view.latest if one.base_file}
    gap = (commits[-1].at_ms - commits[0].at_ms) // max(1, len(commits) - 1)
    return Feed(
        name=state.storage.base,
        commits=tuple(commits),
        bases=there | growth.before,
        latency_ms=known_ms,
        until_ms=commits[-1].at_ms + gap,
        cut=cut_of(state),
        stands_still=state.config.clock == "commit",
        machine=machine_of(history_of(state).done),
    )


def cut_of(state: TableState) -> Cut:
    """As the planner selects where nothing deletes."""
    config = state.config
    fills = config.merging.gaps is not None and config.merging.mode is not MergeMode.COMMIT_TIME_ORDERING
    if config.compaction.whole_slices or fills:
        return Cut.SLICE
    if state.layout.back_dates_plans:
        return Cut.COMMITS
    by_event_time = config.ordered_by_event_time and TableTimes(state).column[1] is not EventTimeUnit.ISO
    mode = config.merging.mode
    compares = mode is not None and mode.compares_base_rows
    return Cut.RANGES if compares and by_event_time else Cut.PREFIX


def _latency_of(state: TableState, given: Latency | None) -> int:
    found = data_latency_ms(state, given)
    if found is None:
        why = no_latency_reason(state, given) or f"the table has no data latency: {STATE_A_LATENCY}"
        raise InvalidInput(f"The SLO needs a data latency, and {why}.", where=state.storage.base)
    return found


def _written(state: TableState) -> tuple[_Written, ...]:
    """When each delta commit was completed, by the table's clock and the true one, and the log files that it wrote."""
    return state.derive(_delta_commits)


def _delta_commits(state: TableState) -> tuple[_Written, ...]:
    tag = TableTimes(state).tag if state.config.event_time_field else None
    found = []
    for instant in state.timeline.completed(Action.DELTA_COMMIT):
        commit = state.commit(instant)
        true = completed_ms(state, instant)
        at = commit.clock_time if state.config.clock == "commit" else true
        if at is not None:
            own = commit.extra.get(EVENT_TIME) == tag
            logs = [stat for stat in commit.stats if stat.log_version is not None]
            found.append((at, true, tuple(s if own else s._replace(min_event_time=None) for s in logs)))
    return tuple(found)
