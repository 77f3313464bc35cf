"""Writing the archived timeline of versions 8 and 9, as org.apache.hudi.client.timeline.LSMTimelineWriter does.

The order is: Parquet file → manifest → `_version_`. Until the manifest is there the file counts for nothing, and until
`_version_` names the manifest that one does not either: what a crash left is overwritten by the next attempt. On a
store each overwrites only what it has read, so a request that arrives late overwrites nothing of another's. When a
layer has enough files, the oldest become one file of the next layer; then old manifests go, and files that none names.
Call everything here under the lock that archivers share.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import Conflict, CorruptTable, UnsupportedTable
from hudi_assets.engine.model import Action, Instant, Plan, State
from hudi_assets.engine.model.settings import whole_number
from hudi_assets.engine.storage import Storage, change, read_to_change, write_over
from hudi_assets.engine.timeline.archive.kind import TimelineFile
from hudi_assets.engine.timeline.archive.v8 import (
    HISTORY,
    SCHEMA,
    VERSION_FILE,
    ArchivedInstant,
    HistoryFile,
    Manifest,
    archived_names,
    archived_plans,
    completion_times,
    manifest_of,
    manifest_path,
    manifest_versions,
    read_history_file,
    read_manifest,
    version_in,
)
from hudi_assets.engine.timeline.compaction_plan import decode_plan

BATCH_SIZE: Final = "hoodie.timeline.compaction.batch.size"
MOST_BYTES: Final = "hoodie.timeline.compaction.target.file.max.bytes"
_MANIFESTS_KEPT: Final = 3
_LAST_LAYER: Final = 9


@dataclass(frozen=True, slots=True)
class Layering:
    """So many files of a layer become one of the next; none above so many bytes is made from more."""

    files: int
    most_bytes: int


def layering_of(properties: Mapping[str, str], where: str) -> Layering:
    """The table's settings, else Hudi's defaults."""
    files = whole_number(properties, BATCH_SIZE, 10, where=where, least=2)
    return Layering(files, whole_number(properties, MOST_BYTES, 1000 * 1024 * 1024, where=where))


def add_instants(storage: Storage, instants: Sequence[ArchivedInstant]) -> str:
    """Archive instants as one file of layer 0; its path. It holds them in their order by time."""
    ordered = sorted(instants, key=lambda i: i.timestamp)
    columns = {
        "instantTime": [i.timestamp for i in ordered],
        "completionTime": [i.completion for i in ordered],
        "action": [i.action for i in ordered],
        "metadata": [i.metadata for i in ordered],
        "plan": [i.plan for i in ordered],
        "version": [1] * len(ordered),
    }
    manifest = read_manifest(storage)
    path = f"{HISTORY}/{ordered[0].timestamp}_{ordered[-1].timestamp}_0.parquet"
    file = _write(storage, path, pa.table(columns, schema=SCHEMA))
    # The same instants again, after a crash of ours or Hudi's: the new file takes the place of the old one.
    _publish(storage, manifest, [f for f in manifest.files if f.name != file.name] + [file])
    return path


def merge_layers(storage: Storage, layering: Layering) -> None:
    """Turn files of a full layer into one of the next, as far as that goes; then delete what is obsolete."""
    manifest = read_manifest(storage)
    merged, layer = 0, 0
    while layer < _LAST_LAYER:
        chosen = _to_merge([f for f in sorted(manifest.files) if f.layer == layer], layering)
        if not chosen:
            break
        manifest = _merge(storage, manifest, chosen)
        merged, layer = merged + 1, layer + 1
    _delete_obsolete(storage, _MANIFESTS_KEPT + merged)


def _to_merge(files: Sequence[HistoryFile], layering: Layering) -> list[HistoryFile]:
    """The oldest files that make one of the next layer; a file that is too large for that is passed over."""
    if len(files) < layering.files:
        return []
    chosen: list[HistoryFile] = []
    for file in files:
        chosen.append(file)
        if len(chosen) == layering.files:
            break
        if sum(f.size for f in chosen) > layering.most_bytes:
            if len(chosen) > 1:
                break
            chosen = []
    return chosen if len(chosen) > 1 else []


def _merge(storage: Storage, manifest: Manifest, chosen: Sequence[HistoryFile]) -> Manifest:
    table = pa.concat_tables([read_history_file(storage, file) for file in chosen])
    # Not from the names: those of Hudi's upgrade from version 6 say the wrong range (tried with 1.2.0).
    instants = table.column("instantTime").to_pylist()
    path = f"{HISTORY}/{min(instants)}_{max(instants)}_{chosen[0].layer + 1}.parquet"
    file = _write(storage, path, table.cast(SCHEMA))
    gone = {f.name for f in chosen}
    return _publish(storage, manifest, [f for f in manifest.files if f.name not in gone] + [file])


def _write(storage: Storage, path: str, table: pa.Table) -> HistoryFile:
    out = io.BytesIO()
    pq.write_table(table, out, compression="gzip")
    data = out.getvalue()
    # Whatever is there was left by a crash, or holds the same.
    write_over(storage, path, data)
    first, last, layer = path.rsplit("/", 1)[-1].removesuffix(".parquet").split("_")
    return HistoryFile(first, last, int(layer), len(data))


def _publish(storage: Storage, before: Manifest, files: Sequence[HistoryFile]) -> Manifest:
    after = Manifest(before.version + 1, tuple(files))
    write_over(storage, manifest_path(after.version), after.to_json())
    _point_to(storage, before, after)
    return after


def _point_to(storage: Storage, before: Manifest, after: Manifest) -> None:
    """Make this the newest manifest; `Conflict` where another archiver has named one since `before` was read."""
    newest = str(after.version).encode()
    try:
        said, version = read_to_change(storage, VERSION_FILE)
    except FileNotFoundError:
        write_over(storage, VERSION_FILE, newest)
        return
    # What cannot be read is a crash's.
    if version_in(said) not in (None, before.version):
        hint = "Look at the table again before going on."
        raise Conflict("Another process archives.", where=f"{storage.base}: {VERSION_FILE}", hint=hint)
    change(storage, VERSION_FILE, newest, version)


def _delete_obsolete(storage: Storage, manifests: int) -> None:
    """Keep the newest manifests and what they name: a reader may be at work with an older one."""
    versions = manifest_versions(storage)
    kept, old = versions[-manifests:], versions[:-manifests]
    if not old:
        return
    named = {file.name for version in kept for file in _files_of(storage, version)}
    for version in old:
        storage.delete(manifest_path(version))
    for listed in storage.list_files(HISTORY):
        if listed.name.endswith(".parquet") and not listed.name.startswith(".") and listed.name not in named:
            storage.delete(listed.path)


def _files_of(storage: Storage, version: int) -> tuple[HistoryFile, ...]:
    try:
        return manifest_of(storage, version).files
    except CorruptTable:
        return ()  # nobody reads by it; the newest one has just been written


# ------------------------------------------------------------------------------ as the engine asks for it


@dataclass(frozen=True, slots=True)
class ArchivedLayers:
    """The archived timeline of versions 8 and 9 (`kind.Archive`)."""

    def refuse_unknown(self, properties: Mapping[str, str], where: str) -> None:
        layering_of(properties, where)
        for key, default in _FOLDERS.items():
            folder = properties.get(key) or default
            if folder != default:
                raise UnsupportedTable(f"{key} is {folder!r}: only the default is supported.", where=where)

    def is_there(self, storage: Storage) -> bool:
        return bool(read_manifest(storage).files)

    def completions(self, storage: Storage) -> Mapping[str, str]:
        return completion_times(storage)

    def brought_rows(self, storage: Storage) -> Mapping[str, str]:
        bringing = (Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
        names = archived_names(storage, None)
        times = completion_times(storage)  # asked last: an archiver may add some meanwhile
        return {instant: times[instant] for instant, action in names if action in bringing}

    def completed(self, storage: Storage, wanted: Collection[str]) -> frozenset[str]:
        return frozenset(completion_times(storage, wanted))

    def newest_replace(self, storage: Storage) -> str:
        replacing = (Action.REPLACE_COMMIT, Action.CLUSTERING)
        return max((t for t, action in archived_names(storage, None) if action in replacing), default="")

    def plans(self, storage: Storage, wanted: Collection[str]) -> tuple[Plan, ...]:
        where = f"{storage.base}: {HISTORY}"
        return tuple(decode_plan(instant, plan, where) for instant, plan in archived_plans(storage, wanted))

    def archived(self, storage: Storage, files: Iterable[Instant]) -> frozenset[str]:
        listed = tuple(files)
        held = archived_names(storage, {i.timestamp for i in listed})
        return frozenset(i.file_name for i in listed if (i.timestamp, completes_as(i.action)) in held)

    def add(self, storage: Storage, files: Sequence[TimelineFile]) -> str:
        whole: dict[tuple[str, Action], list[TimelineFile]] = {}
        for file in files:
            whole.setdefault((file.instant.timestamp, completes_as(file.instant.action)), []).append(file)
        return add_instants(storage, [_archived_instant(*key, states) for key, states in whole.items()])

    def settle(self, storage: Storage, properties: Mapping[str, str]) -> None:
        merge_layers(storage, layering_of(properties, storage.base))


def completes_as(action: Action) -> Action:
    """The action under which a completed instant is on the timeline."""
    return _COMPLETES_AS.get(action, action)


def _archived_instant(timestamp: str, action: Action, states: Sequence[TimelineFile]) -> ArchivedInstant:
    """As MetadataConversionUtils.createLSMTimelineInstant makes it of an instant's files."""
    done = next(file for file in states if file.instant.is_completed)
    plan = None
    for file in sorted(states, key=lambda f: f.instant.state is State.INFLIGHT):
        # A replacecommit's inflight file, where it holds something, stands for its plan.
        if (file.instant.action, file.instant.state) in _PLANS and file.data:
            plan = file.data
    return ArchivedInstant(timestamp, done.instant.completion, action, done.data, plan)


_COMPLETES_AS: Final = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
_PLANS: Final = frozenset(
    {
        (Action.CLEAN, State.REQUESTED),
        (Action.COMPACTION, State.REQUESTED),
        (Action.LOG_COMPACTION, State.REQUESTED),
        *((a, s) for a in (Action.REPLACE_COMMIT, Action.CLUSTERING) for s in (State.REQUESTED, State.INFLIGHT)),
    }
)
_FOLDERS: Final = {"hoodie.timeline.path": "timeline", "hoodie.timeline.history.path": "history"}
