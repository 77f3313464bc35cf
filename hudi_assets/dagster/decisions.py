"""What a table needs, by one look at it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_assets.engine import Freshness, NoPlan, Plan, StartNow, TriggerName, WaitUntil, duration, iso


@dataclass(frozen=True)
class Compact:
    """Plan (or go on with the pending plan), execute, publish the freshness.

    `warning`: what the plan means for running queries, where they have too little time. `threshold`: up to where, epoch
    ms; None: the clock less the data latency.
    """

    why: str
    warning: str | None = None
    threshold: int | None = None


@dataclass(frozen=True)
class PublishFreshness:
    """Only publish: the promise in the catalog is no longer true, and nothing is to be compacted now."""

    why: str


@dataclass(frozen=True)
class Recover:
    """Mend what a dead process left; nothing else is due."""

    why: str


@dataclass(frozen=True)
class Wait:
    why: str


Decision = Compact | PublishFreshness | Recover | Wait


def decide(
    *,
    pending: Plan | None,
    due: Plan | NoPlan,
    last_threshold: int | None,
    freshness: int | None,
    published: int | None,
    now: int,
    compact_every: int,
    slo: int | None,
    trigger: TriggerName = TriggerName.EVENT_TIME,
    reach: int | None = None,
    promised: int | None = None,
    held: bool = False,
    proposal: StartNow | WaitUntil | None = None,
) -> Decision:
    """What the table needs. Pure; times are epoch ms, durations ms.

    `freshness` is the table's now, `published` the one that readers find in the catalog. Late data makes the
    first fall below the second: that is published at once, and compacted at once where the SLO is broken.
    `reach`: how far event time could be compacted, where bounds let a single plan do less. `promised` is the highest
    freshness that readers were told: where the fall is published already, the late data is compacted all the same.
    `held`: rows in no view hold the freshness where it is, so that no compaction moves it.
    `proposal`: what the SLO needs, in place of `compact_every`; `due` follows it.
    """
    if pending is not None:
        return Compact(f"compaction {pending.instant} is planned and was not finished")
    fallen = published is not None and (freshness is None or freshness < published)
    publish = _publish(freshness, published, now, slo)
    if isinstance(due, NoPlan):
        return publish or Wait(due.reason)
    warning = due.query_time.warning if due.query_time else None
    if isinstance(proposal, StartNow):
        return Compact(proposal.why, warning, proposal.threshold)
    if trigger is not TriggerName.EVENT_TIME or due.claims is None:
        return Compact(f"a compaction of {len(due.operations)} file groups is due by {trigger}", warning)
    if last_threshold is None:
        return Compact(f"first compaction, up to {iso(due.threshold)}", warning)
    helps = promised is not None and (freshness is None or freshness < min(promised, due.claims))
    if (fallen or helps) and not held and slo is not None and (freshness is None or now - freshness > slo):
        words = _fallen(freshness, published if fallen else promised)
        return Compact(f"{words}, more than {duration(slo)} behind the clock", warning)
    moved = max(due.claims, due.claims if reach is None else reach) - last_threshold
    if moved >= compact_every:
        return Compact(f"the threshold moves from {iso(last_threshold)} to {iso(due.threshold)}", warning)
    return publish or Wait(
        f"The threshold would move by {duration(moved)}, to {iso(due.threshold)}; "
        f"a compaction is due when it moves by {duration(compact_every)}."
    )


def or_recover(decision: Wait, leftovers: Sequence[str]) -> Wait | Recover:
    """A run to mend what dead processes left, if there is any."""
    if not leftovers:
        return decision
    more = f" (and {len(leftovers) - 1} more)" if len(leftovers) > 1 else ""
    return Recover(f"{leftovers[0]}{more}: a dead process left it")


def is_held_by_hidden_rows(promise: Freshness) -> bool:
    """Whether rows in no view, and no log file that a compaction would take, keep the freshness where it is."""
    lows = [rows.min_event_time for rows in promise.hidden]
    known = [low for low in lows if low is not None]
    if len(known) < len(lows):
        return True  # the event times of some are unknown, so there is no freshness until they are back
    return bool(known) and promise.freshness is not None and promise.freshness >= min(known) - 1


def _publish(freshness: int | None, published: int | None, now: int, slo: int | None) -> PublishFreshness | None:
    """Where what is published is too much, or stands still for most of the SLO while the table's own moves on."""
    if published is None:
        return None
    if freshness is None or freshness < published:
        return PublishFreshness(_fallen(freshness, published))
    if slo is None or now - published <= slo - slo // 10 or freshness - published < slo // 10:
        return None
    return PublishFreshness(
        f"the published freshness lies {duration(now - published)} behind the clock, the table's own "
        f"{duration(now - freshness)}"
    )


def _fallen(freshness: int | None, told: int | None) -> str:
    now = iso(freshness) if freshness is not None else "unknown"
    return f"the freshness has fallen back from {iso(told)} to {now}"
