"""What rows in no view mean for the promise: it stops below them, as long as they are not back (`table.files.hidden`).

A hidden log file counts by its event times as one that remains does. Where it was cleaned, the write stat of our commit
states them; of another engine's all records may lack one, and the data latency bounds them by their commit. So it is
with a hidden base file, cleaned or not: most of its rows are in the view. Apache Hudi's own event times in write stats
are not believed: a record without one, or with one that has neither ten nor thirteen digits, is passed over in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_assets.engine.event_time.freshness import lowest_of
from hudi_assets.engine.model import BaseFile, HiddenRows, LogFile
from hudi_assets.engine.model.log_summary import LogSummary, Since, Summaries, Undated
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.files.hidden import Hidden, hidden_files
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.table.state import TableState


def hidden_by_file(state: TableState) -> Mapping[LogFile | BaseFile, Hidden]:
    """The log and base files of what is hidden, there or gone."""
    return state.derive(_hidden_by_file)


def _hidden_by_file(state: TableState) -> Mapping[LogFile | BaseFile, Hidden]:
    found = {}
    for hidden in hidden_files(state):
        size = state.sizes.get(hidden.path, hidden.stat.size)
        file = state.layout.parse_file(FileInfo(hidden.path, size), hidden.stat.partition)
        if file is not None:
            found[file] = hidden
    return found


def of_an_unread_file(hidden: Hidden) -> LogSummary:
    """What is known of a hidden file that is not read for event times, where no stat of ours tells them."""
    instant = hidden.delta_commit.timestamp
    why = "was cleaned" if hidden.gone else "its commit states none"
    reason = f"it is in no view and {why}; state {WRITTEN_AGAIN}={instant} once its rows are written again"
    since = Since(instant)
    return LogSummary(None, None, None, reason=reason, undated=Undated(since, since))


def hidden_rows(
    state: TableState, summaries: Summaries, data_latency_ms: int | None
) -> tuple[tuple[HiddenRows, ...], str | None]:
    """What is hidden, by delta commit and base file; and why the event times of some are unknown."""
    by: dict[tuple[str, str], list[LogFile | BaseFile]] = {}
    for file, hidden in hidden_by_file(state).items():
        by.setdefault((hidden.delta_commit.timestamp, hidden.behind.timestamp), []).append(file)
    rows, unknown = [], None
    for (instant, behind), files in by.items():
        lowest, reason = lowest_of(files, summaries, data_latency_ms)
        rows.append(HiddenRows(instant, behind, len(files), lowest))
        unknown = unknown or reason
    return tuple(rows), unknown
