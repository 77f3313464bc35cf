"""The archived timeline on versions 8 and 9: Parquet files of instants in `.hoodie/timeline/history`, in layers.

As org.apache.hudi.common.table.timeline.LSMTimeline has it: `_version_` holds the number N of the newest `manifest_N`,
which names the files that count, `<first>_<last>_<layer>.parquet`; a file holds HoodieLSMTimelineInstant records.
Without a `_version_` that can be read the greatest manifest counts. `layers` writes it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final, TypeVar

import pyarrow as pa

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.parquet_reader import read_parquet
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.timeline.whole_files import read_settled

HISTORY: Final = ".hoodie/timeline/history"
VERSION_FILE: Final = f"{HISTORY}/_version_"
_FILE: Final = re.compile(r"(\d+)_(\d+)_(\d)\.parquet", re.ASCII)
_MANIFEST: Final = re.compile(r"manifest_(\d{1,9})", re.ASCII)
# The metadata table has instants with a suffix too.
_INSTANT: Final = re.compile(r"\d{14,20}", re.ASCII)
_LOOKS: Final = 5
_TIMES: Final = ("instantTime", "completionTime")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant. `metadata` is what its completed file held, `plan` what its requested one did.

    Both are None where only the times were read, and where there was nothing.
    """

    timestamp: str
    completion: str | None
    action: str = ""
    metadata: bytes | None = None
    plan: bytes | None = None


@dataclass(frozen=True, slots=True, order=True)
class HistoryFile:
    """A file that a manifest names; `first` and `last` are instants, `size` bytes. Ordered by instants.

    Hudi's upgrade from version 6 names files after their first and last row, and those are in no order (tried with
    1.2.0): `first` may be after `last` there.
    """

    first: str
    last: str
    layer: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.first}_{self.last}_{self.layer}.parquet"

    @property
    def path(self) -> str:
        return f"{HISTORY}/{self.name}"

    def may_hold(self, instant: str) -> bool:
        return self.first <= instant <= self.last or self.last < self.first


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot of the archived timeline. `version` is 0 before the first one."""

    version: int = 0
    files: tuple[HistoryFile, ...] = ()

    def to_json(self) -> bytes:
        files = [{"fileName": file.name, "fileLen": file.size} for file in self.files]
        return json.dumps({"files": files}, indent=2).encode()


def history_file(name: str, size: int, where: str) -> HistoryFile:
    """A name in a manifest as a value. Raises `CorruptTable`."""
    match = _FILE.fullmatch(name)
    if match is None or size < 0:
        raise CorruptTable(f"The archived timeline's manifest names {name!r:.100}.", where=where)
    return HistoryFile(match[1], match[2], int(match[3]), size)


def manifest_path(version: int) -> str:
    return f"{HISTORY}/manifest_{version}"


# ------------------------------------------------------------------------------------------- manifests


def read_manifest(storage: Storage) -> Manifest:
    """The newest snapshot. Raises `CorruptTable` where it cannot be read."""
    for _ in range(_LOOKS):
        version = newest_version(storage)
        if version == 0:
            return Manifest()
        try:
            return manifest_of(storage, version)
        except FileNotFoundError:
            continue  # another archiver went on meanwhile, and deleted it
    raise CorruptTable(
        "The archived timeline's manifest is missing.",
        where=f"{storage.base}: {manifest_path(newest_version(storage))}",
    )


def manifest_of(storage: Storage, version: int) -> Manifest:
    path = manifest_path(version)
    return read_settled(storage, path, lambda data: _parse(version, data, f"{storage.base}: {path}"))


def _parse(version: int, data: bytes, where: str) -> Manifest:
    try:
        body = json.loads(data)
        files = tuple(history_file(str(f["fileName"]), int(f["fileLen"]), where) for f in body["files"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTable(
            f"The archived timeline's manifest cannot be parsed: {error!r:.200}.", where=where
        ) from error
    return Manifest(version, files)


def newest_version(storage: Storage) -> int:
    """The number of the newest manifest; 0 where there is none."""
    try:
        if (said := version_in(storage.read(VERSION_FILE))) is not None:
            return said
    except FileNotFoundError:
        pass  # a crash left none, or another archiver is between deleting and writing it
    return max(manifest_versions(storage), default=0)


def version_in(text: bytes) -> int | None:
    """The number that `_version_` holds; None where it cannot be read."""
    return int(text) if 0 < len(text) < 10 and text.isdigit() else None


def manifest_versions(storage: Storage) -> tuple[int, ...]:
    """The numbers of all manifests, ascending."""
    listed = (_MANIFEST.fullmatch(file.name) for file in storage.list_files(HISTORY))
    return tuple(sorted(int(match[1]) for match in listed if match))


# ---------------------------------------------------------------------------------------------- reading


def completion_times(storage: Storage, wanted: Iterable[str] | None = None) -> Mapping[str, str]:
    """When each of the wanted instants (None: every one) was completed, of those that are archived.

    What has no completion time of its own (an instant from before version 8) was completed at its own time.
    """
    instants = None if wanted is None else frozenset(wanted)
    found: dict[str, str] = {}
    for times in _of_files(storage, instants, partial(_times_in, storage)):
        found |= times if instants is None else {i: times[i] for i in instants & times.keys()}
    return found


@lru_cache(maxsize=1_000)
def _times_in(storage: Storage, file: HistoryFile) -> Mapping[str, str]:
    """A file's instants with their completion times. A file that counts never changes: a process reads it once."""
    table = read_history_file(storage, file, _TIMES)
    times = zip(table.column("instantTime").to_pylist(), table.column("completionTime").to_pylist(), strict=True)
    return {instant: completion or instant for instant, completion in times}


def archived_instants(storage: Storage) -> Iterator[ArchivedInstant]:
    """Every archived instant with what its files held, oldest file first."""
    for table in _of_files(storage, None, partial(read_history_file, storage)):
        yield from instants_of(table)


def archived_plans(storage: Storage, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(instant, plan) of the wanted compactions that are archived."""
    read = partial(read_history_file, storage, columns=("instantTime", "action", "plan"))
    for table in _of_files(storage, frozenset(wanted), read):
        for row in table.to_pylist():
            if row["instantTime"] in wanted and row["action"] == "commit" and row["plan"]:
                yield row["instantTime"], row["plan"]


def archived_names(storage: Storage, wanted: Iterable[str] | None) -> frozenset[tuple[str, str]]:
    """(instant, action) of the wanted instants (None: of all) that are archived. A compaction's action is `commit`."""
    instants = None if wanted is None else frozenset(wanted)
    found = chain.from_iterable(_of_files(storage, instants, partial(_names_in, storage)))
    return frozenset((instant, action) for instant, action in found if instants is None or instant in instants)


@lru_cache(maxsize=1_000)
def _names_in(storage: Storage, file: HistoryFile) -> tuple[tuple[str, str], ...]:
    """A file's instants with their actions. It never changes either."""
    table = read_history_file(storage, file, ("instantTime", "action"))
    return tuple(zip(table.column("instantTime").to_pylist(), table.column("action").to_pylist(), strict=True))


def instants_of(table: pa.Table) -> Iterator[ArchivedInstant]:
    for row in table.to_pylist():
        yield ArchivedInstant(
            row["instantTime"], row["completionTime"], row["action"] or "", row["metadata"] or None, row["plan"] or None
        )


def read_history_file(storage: Storage, file: HistoryFile, columns: Sequence[str] | None = None) -> pa.Table:
    """A file's rows in HoodieLSMTimelineInstant's columns. Raises `CorruptTable`, FileNotFoundError."""
    where = f"{storage.base}: {file.path}"
    try:
        table = read_parquet(io.BytesIO(storage.read(file.path)), columns)
        wanted = [field for field in SCHEMA if columns is None or field.name in columns]
        table = table.select([field.name for field in wanted]).cast(pa.schema(wanted).remove_metadata())
    except CorruptTable as error:
        raise CorruptTable(error.what, where=where) from error
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise CorruptTable(f"A file of the archived timeline cannot be read: {error}.", where=where) from error
    times = [table.column(name).to_pylist() for name in _TIMES if name in table.column_names]
    if None in times[0] or not all(t is None or _INSTANT.fullmatch(t) for column in times for t in column):
        raise CorruptTable("A file of the archived timeline holds what is no instant.", where=where)
    return table


def _of_files(
    storage: Storage, wanted: frozenset[str] | None, read: Callable[[HistoryFile], _Read]
) -> tuple[_Read, ...]:
    """What `read` makes of the files that may hold one of the wanted instants (None: all), of one snapshot."""
    for look in range(_LOOKS):
        files = read_manifest(storage).files if wanted is None or wanted else ()
        chosen = [f for f in sorted(files) if wanted is None or any(map(f.may_hold, wanted))]
        try:
            return tuple(read(file) for file in chosen)
        except FileNotFoundError as error:
            if look == _LOOKS - 1:
                raise CorruptTable(
                    "A file of the archived timeline is missing.", where=f"{storage.base}: {error.filename}"
                ) from error
    raise AssertionError("unreachable")


def _avro_schema() -> str:
    """HoodieLSMTimelineInstant, which Hudi's Parquet reader finds in the footer."""
    text = {"type": "string", "avro.java.string": "String"}
    types = {"instantTime": text, "completionTime": text, "action": text, "metadata": "bytes", "plan": "bytes"}
    fields: list[dict[str, object]] = [
        {"name": name, "type": ["null", kind], "default": None} for name, kind in types.items()
    ]
    fields.append({"name": "version", "type": "int", "default": 1})
    return json.dumps(
        {
            "type": "record",
            "name": "HoodieLSMTimelineInstant",
            "namespace": "org.apache.hudi.avro.model",
            "fields": fields,
        }
    )


SCHEMA: Final = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ],
    metadata={"parquet.avro.schema": _avro_schema(), "writer.model.name": "avro"},
)
