"""What a query of the past reads where slices are cut by completion times (versions 8 and 9). Pure.

There a log file is in the slice of the greatest base instant at or below its *completion*. So a write that was
requested before a compaction's instant and completed after it is in the new slice, though it counts before that
slice begins. As of a moment the answer is therefore: of each group the newest base file that counts, and of all log
files since, in whichever slice, those of writes that count. No compaction, whenever it completes, changes that: a
base file at C holds what was completed by C, and no other log file is in a slice before it.

When a write counts is not the same for the two queries (as in Hudi 1.2.0): in time travel from its requested time
on, which is its rows' `_hoodie_commit_time`; in an incremental query from its completion on, so that who asks for
consecutive ranges misses nothing. A compaction only moves rows: its base file counts from its instant on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_assets.engine.model import FileSlice
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.slices.file_view import FileView


@dataclass(frozen=True, slots=True)
class Since:
    """From which moment on a write's base files, and its log files, count; both take its instant."""

    base: Callable[[str], str]
    log: Callable[[str], str]


def _itself(instant: str) -> str:
    return instant


def at_its_own_time() -> Since:
    """A write counts from its requested time on."""
    return Since(_itself, _itself)


def slices_across(
    view: FileView, replaced: Mapping[GroupKey, str], t: str, since: Since
) -> Mapping[GroupKey, tuple[FileSlice, ...]]:
    """Per file group the one slice that answers as of t, its log files taken from every slice since its base file."""
    found = {
        key: _across(slices, t, since)
        for key, slices in view.groups.items()
        if not (key in replaced and since.base(replaced[key]) <= t)
    }
    return {key: (slice_,) for key, slice_ in found.items() if slice_.base_file or slice_.log_files}


def _across(slices: tuple[FileSlice, ...], t: str, since: Since) -> FileSlice:
    bases = [n for n, s in enumerate(slices) if s.base_file and since.base(s.base_instant) <= t]
    first = slices[bases[-1]] if bases else slices[0]
    logs = [log for s in slices[bases[-1] if bases else 0 :] for log in s.log_files if since.log(log.base_instant) <= t]
    return FileSlice(
        first.partition,
        first.file_id,
        first.base_instant,
        first.base_file if bases else None,
        tuple(sorted(logs, key=lambda log: log.order)),
    )
