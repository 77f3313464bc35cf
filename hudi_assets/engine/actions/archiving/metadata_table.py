"""Archiving the metadata table's own timeline, where only we write: it gets an instant for each of the data table's.

What leaves it is older than its last compaction, which has folded those log files, and older than the data table's
first active instant, as Hudi's archiver has it (TimelineArchiverV2, getEarliestInstantForMetadataArchival). Cleans and
rollbacks before that go along. The order is that of `archive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_assets.engine.model import Action, Instant
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnInstant, OwnTimeline
from hudi_assets.engine.timeline.archive.kind import TimelineFile
from hudi_assets.engine.timeline.instants import format_instant

_KEEP: Final = {"hoodie.metadata.keep.min.commits": 20, "hoodie.metadata.keep.max.commits": 30}
_WRITES: Final = (Action.DELTA_COMMIT, Action.COMMIT)
_MOVED: Final = frozenset({*_WRITES, Action.COMPACTION, Action.CLEAN, Action.ROLLBACK})


@dataclass(frozen=True)
class FolderStorage:
    """A folder of a table's storage, as if it were the table: what archives ask of one."""

    whole: Storage
    folder: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    @property
    def base(self) -> str:
        return f"{self.whole.base}/{self.folder}"

    def _at(self, path: str) -> str:
        return f"{self.folder}/{path}"

    def list_files(self, directory: str) -> list[FileInfo]:
        found = self.whole.list_files(self._at(directory))
        return [file._replace(path=file.path.removeprefix(f"{self.folder}/")) for file in found]

    def read(self, path: str) -> bytes:
        return self.whole.read(self._at(path))

    def size(self, path: str) -> int:
        return self.whole.size(self._at(path))

    def modified_ms(self, path: str) -> int | None:
        return self.whole.modified_ms(self._at(path))

    def create(self, path: str, data: bytes) -> None:
        self.whole.create(self._at(path), data)

    def replace(self, path: str, data: bytes) -> None:
        self.whole.replace(self._at(path), data)

    def delete(self, path: str) -> bool:
        return self.whole.delete(self._at(path))


def archive_metadata_table(
    storage: Storage, layout: Layout, properties: Mapping[str, str], *, data_start: str | None, timezone: str
) -> tuple[str, ...]:
    """Archive what is due of it; the instants, oldest first. Call it under the write lock."""
    least, most = (whole_number(properties, key, default, where=storage.base) for key, default in _KEEP.items())
    own = OwnTimeline.read(storage, layout)
    going = _due(own, least, most, data_start)
    if not going:
        return ()
    archive = layout.archive({})  # its settings are its own, and name the default
    folder: Any = FolderStorage(storage, ROOT)
    files = {_as_instant(file): file for file in going}
    held = archive.archived(folder, files)
    new = [TimelineFile(i, storage.read(f.path), _changed(storage, f, timezone), f.path) for i, f in files.items()]
    new = [file for file in new if file.instant.file_name not in held]
    if new:
        archive.add(folder, new)
    for file in (*(f for f in going if not f.is_completed), *(f for f in going if f.is_completed)):
        storage.delete(file.path)
    archive.settle(folder, {})
    return tuple(dict.fromkeys(file.timestamp for file in going))


def _due(own: OwnTimeline, least: int, most: int, data_start: str | None) -> list[OwnInstant]:
    """The files of the instants that go, oldest first."""
    writes = own.completed(*_WRITES)
    compaction = own.last_compaction
    if len(writes) <= most or compaction is None or data_start is None:
        return []
    stays = [writes[-least].timestamp, compaction.timestamp, data_start, *(i.timestamp for i in own.unfinished)]
    # A log file that was completed after the compaction's instant is not in its base file.
    stays += [i.timestamp for i in writes if (i.completion or i.timestamp) >= compaction.timestamp]
    stays += [i.timestamp for i in own.files if i.action not in _MOVED]
    return [file for file in own.files if file.timestamp < min(stays)]


def _as_instant(file: OwnInstant) -> Instant:
    name = file.path.rsplit("/", 1)[-1]
    return Instant(file.timestamp, Action(file.action), file.state, name, file.completion)


def _changed(storage: Storage, file: OwnInstant, timezone: str) -> str | None:
    changed = storage.modified_ms(file.path)
    return format_instant(changed, timezone) if changed is not None else None
