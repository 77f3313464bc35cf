"""Up to which event time a compaction goes: given, or the table's clock less its data latency."""

from __future__ import annotations

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.commit_bound import bounded_summaries
from hudi_assets.engine.event_time.lateness import data_latency_ms, no_latency_reason
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import NoPlan
from hudi_assets.engine.model.units import Latency, Time, parse_time
from hudi_assets.engine.table.settings.config import NAME_A_COLUMN, STATE_A_LATENCY
from hudi_assets.engine.table.state import TableState


def choose_threshold(
    state: TableState, threshold: Time | None, data_latency: Latency | None, *, unchecked: bool = False
) -> int | NoPlan | None:
    """Epoch ms, or why there is none; None for Hudi's own strategies, which take none.

    With EVENT_TIME_TRIGGER it decides when one of them is due, and follows from the data latency alone: none of their
    plans promises a threshold. Raises `InvalidInput` for both at once, for a threshold that the table's clock has not
    reached, and where nobody can tell the event times' unit. `unchecked`: not for that. It asks for all log files, and
    the planner does too, under its lock.
    """
    where = state.storage.base
    if threshold is not None and data_latency is not None:
        raise InvalidInput("Give a threshold or a data latency, not both.")
    compaction = state.config.compaction
    if not compaction.by_event_time:
        if threshold is not None or (data_latency is not None and not compaction.due_by_event_time):
            raise InvalidInput(
                f"{compaction.strategy} takes no event time into account.",
                where=where,
                hint="Leave threshold and latency out, or take the event-time strategy (hoodie.compaction.strategy).",
            )
        if not compaction.due_by_event_time:
            return None
    now = state.now_ms
    if threshold is None:
        latency = data_latency_ms(state, data_latency)
        if latency is None:
            asks = (
                f"which {compaction.trigger} goes by" if compaction.due_by_event_time else "and no threshold was given"
            )
            unknown = f"the table has no data latency, {asks}: {STATE_A_LATENCY}"
            if state.config.event_time_field is None:
                unknown += f". Nor is an event-time column known: {NAME_A_COLUMN}"
            return NoPlan(no_latency_reason(state, data_latency) or unknown)
        return now - latency if unchecked else _unless_in_doubt(state, now - latency)
    limit = parse_time(threshold)
    if limit > now:
        raise InvalidInput(
            f"The threshold {threshold} is in the future of the table's clock.",
            where=where,
            hint="Give one at or before now: records up to it may still arrive. A number is epoch milliseconds.",
        )
    return limit if unchecked else _unless_in_doubt(state, limit)


def _unless_in_doubt(state: TableState, limit: int) -> int | NoPlan:
    """The threshold, where the event times that are compared with it are known."""
    return in_doubt(state) or limit


def in_doubt(state: TableState) -> NoPlan | None:
    """None where the event times are known. Else it raises the refusal, unless no log file remains to be chosen."""
    doubt = TableTimes(state).doubt
    if doubt is None:
        return None
    if not state.view.number_of_logs:
        return NoPlan("no log file remains")
    raise doubt.refusal(state.storage.base)


def is_due(state: TableState, threshold: int, latency: Latency | None) -> bool:
    """Whether a remaining log file counts from the threshold (epoch ms) or before, or of unknown event time."""
    summaries = bounded_summaries(state, latency)
    known = (summaries[log.path] for log in state.remaining_logs)
    times = [log.counts_from for log in known if not log.holds_nothing]
    return any(time is None or time <= threshold for time in times)
