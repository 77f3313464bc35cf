"""What rows in no view mean for the promise: it stops below them, as long as they are not back (`table.files.hidden`).

A hidden log file counts by its event times as one that remains does. Where it was cleaned, the write stat of our commit
states them; of another engine's all records may lack one, and the data latency bounds them by their commit.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_assets.engine.event_time.freshness import lowest_of
from hudi_assets.engine.model import HiddenRows, LogFile
from hudi_assets.engine.model.log_summary import LogSummary, Since, Summaries, Undated
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.files.hidden import Hidden, hidden_logs
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.table.state import TableState


def hidden_files(state: TableState) -> Mapping[LogFile, Hidden]:
    """The log files of what is hidden, there or gone."""
    return state.derive(_hidden_files)


def _hidden_files(state: TableState) -> Mapping[LogFile, Hidden]:
    found = {}
    for hidden in hidden_logs(state):
        size = state.sizes.get(hidden.path, hidden.stat.size)
        log = state.layout.parse_log_file(FileInfo(hidden.path, size), hidden.stat.partition)
        if log is not None:
            found[log] = hidden
    return found


def of_a_gone_file(hidden: Hidden) -> LogSummary:
    """What is known of a hidden log file that was cleaned, where no stat of ours tells its event times."""
    instant = hidden.delta_commit.timestamp
    reason = f"it is in no view and was cleaned; state {WRITTEN_AGAIN}={instant} once its rows are written again"
    since = Since(instant)
    return LogSummary(None, None, None, reason=reason, undated=Undated(since, since))


def hidden_rows(
    state: TableState, summaries: Summaries, data_latency_ms: int | None
) -> tuple[tuple[HiddenRows, ...], str | None]:
    """What is hidden, by delta commit and base file; and why the event times of some are unknown."""
    by: dict[tuple[str, str], list[LogFile]] = {}
    for log, hidden in hidden_files(state).items():
        by.setdefault((hidden.delta_commit.timestamp, hidden.behind.timestamp), []).append(log)
    rows, unknown = [], None
    for (instant, behind), logs in by.items():
        lowest, reason = lowest_of(logs, summaries, data_latency_ms)
        rows.append(HiddenRows(instant, behind, len(logs), lowest))
        unknown = unknown or reason
    return tuple(rows), unknown
