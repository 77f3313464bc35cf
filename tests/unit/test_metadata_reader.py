"""The metadata table's files partition: which blocks count, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.hfile.file import Flavour, write_hfile
from hudi_assets.engine.format.log_file.codec import (
    BlockType,
    DeleteRecord,
    HeaderKey,
    OrderingType,
    encode_block,
    encode_deletes,
    encode_rollback_block,
    read_blocks,
)
from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.table.metadata.own_timeline import ROOT
from hudi_assets.engine.table.metadata.reader import newest_schema, read_files
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import FilesRecord, encode, partition_files, partition_list
from hudi_assets.engine.timeline.instants import Timeline
from tests.unit.test_hfile import GOLDEN

V6, V8 = LayoutV6(), LayoutV8()
LAYOUTS = pytest.mark.parametrize("layout", [V6, V8], ids=["v6", "v8"])
SCHEMA = record_schema(Flavour.HBASE)
INIT = "00000000000000010"
FILES = f"{ROOT}/files"
Change = tuple[Mapping[str, int], Iterable[str]]


def at(second: int) -> str:
    return f"20260101{second:06d}000"


class Table:
    """A metadata table made by hand, file by file; its own instants complete half a second after they begin."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.storage = LocalStorage(str(path))
        self.layout = layout
        self.data: list[Instant] = []

    def own(self, timestamp: str, action: Action = Action.DELTA_COMMIT, state: State = State.COMPLETED) -> None:
        states = [State.REQUESTED, State.INFLIGHT, State.COMPLETED]
        for each in states[: states.index(state) + 1]:
            completion = timestamp[:14] + "500" if self.layout.names_completion_times else None
            path = self.layout.instant_path(timestamp, action, each, completion)
            self.storage.create(f"{ROOT}/{path}", b"")

    def of_data(self, timestamp: str, action: Action, state: State) -> None:
        self.data.append(Instant(timestamp, action, state, f"{timestamp}.{action}"))

    def base(self, timestamp: str, *records: FilesRecord) -> str:
        name = f"files-0000-0_0-1-2_{timestamp}.hfile"
        entries = [encode(record, SCHEMA, base_file=name) for record in records]
        self.storage.create(f"{FILES}/{name}", write_hfile(entries, schema=SCHEMA, flavour=Flavour.HBASE))
        return name

    def log(self, named: str, version: int, *blocks: bytes) -> str:
        path = f"{FILES}/{self.layout.log_file_name('files-0000-0', named, version, '0-0-0')}"
        self.storage.create(path, b"".join(blocks))
        return path

    def delta(self, timestamp: str, version: int, *blocks: bytes, base: str = INIT) -> str:
        """A log file of a delta commit: on version 6 it bears the instant of its slice."""
        return self.log(base if self.layout is V6 else timestamp, version, *blocks)

    def listing(self) -> dict[str, dict[str, int]]:
        return read_files(self.storage, self.layout, Timeline(tuple(self.data))).listing


def block(timestamp: str, *records: FilesRecord) -> bytes:
    content = write_hfile([encode(record, SCHEMA) for record in records], schema=SCHEMA, flavour=Flavour.HBASE)
    return encode_block(BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: timestamp, HeaderKey.SCHEMA: SCHEMA}, content)


@pytest.fixture
def table(tmp_path: Path, layout: Layout) -> Table:
    """With partition p and file `a` in the base file, and `b` in a delta commit that counts."""
    made = Table(tmp_path, layout)
    made.own(INIT)
    made.base(INIT, partition_list(["p"]), partition_files("p", {"a": 1}))
    made.own(at(1))
    made.delta(at(1), 1, block(at(1), partition_files("p", {"b": 2})))
    return made


@LAYOUTS
def test_base_file_and_log_blocks_are_merged(table: Table) -> None:
    table.own(at(2))
    table.delta(at(2), 2, block(at(2), partition_files("p", {"c": 3, "b": 4}, ["a"])))
    assert table.listing() == {"p": {"b": 4, "c": 3}}


@LAYOUTS
def test_partitions_come_and_go(table: Table) -> None:
    table.own(at(2))
    table.delta(at(2), 2, block(at(2), partition_list([""], ["p"]), partition_files("", {"x": 9})))
    assert table.listing() == {"": {"x": 9}}


@LAYOUTS
@pytest.mark.parametrize("state", [None, State.REQUESTED, State.INFLIGHT])
def test_a_delta_commit_that_is_not_completed_does_not_count(table: Table, state: State | None) -> None:
    if state:
        table.own(at(2), state=state)
    table.delta(at(2), 2, block(at(2), partition_files("p", {"c": 3})))
    assert table.listing() == {"p": {"a": 1, "b": 2}}


@LAYOUTS
@pytest.mark.parametrize("action", [Action.DELTA_COMMIT, Action.COMPACTION, Action.CLEAN, Action.ROLLBACK])
def test_a_completed_one_does_not_count_while_the_data_tables_instant_is_pending(table: Table, action: Action) -> None:
    table.own(at(2))
    table.delta(at(2), 2, block(at(2), partition_files("p", {"c": 3})))
    table.of_data(at(2), action, State.INFLIGHT)
    assert table.listing() == {"p": {"a": 1, "b": 2}}
    table.data.clear()
    table.of_data(at(2), action, State.COMPLETED)
    assert table.listing() == {"p": {"a": 1, "b": 2, "c": 3}}


@LAYOUTS
def test_a_pending_savepoint_says_nothing_of_its_commit(table: Table) -> None:
    table.of_data(at(1), Action.DELTA_COMMIT, State.COMPLETED)
    table.of_data(at(1), Action.SAVEPOINT, State.INFLIGHT)
    assert table.listing() == {"p": {"a": 1, "b": 2}}


@LAYOUTS
def test_what_is_older_than_the_own_timeline_counts(table: Table) -> None:
    for file in table.storage.list_files(f"{ROOT}/{table.layout.timeline_folder}"):
        table.storage.delete(file.path)
    table.own(at(5))
    assert table.listing() == {"p": {"a": 1, "b": 2}}


def test_a_rollback_block_removes_its_targets_blocks_on_version_6(tmp_path: Path) -> None:
    table = Table(tmp_path, V6)
    table.own(INIT)
    table.base(INIT, partition_list(["p"]), partition_files("p", {"a": 1}))
    for second in (1, 2):
        table.own(at(second))
        table.log(INIT, second, block(at(second), partition_files("p", {f"x{second}": second})))
    table.log(INIT, 3, encode_rollback_block(at(3), at(1)))
    assert table.listing() == {"p": {"a": 1, "x2": 2}}


@LAYOUTS
def test_a_torn_block_is_passed_over(table: Table) -> None:
    table.own(at(2))
    table.delta(at(2), 2, block(at(2), partition_files("p", {"c": 3}))[:-9])
    assert table.listing() == {"p": {"a": 1, "b": 2}}


@LAYOUTS
def test_a_whole_block_that_cannot_be_read_is_named(table: Table) -> None:
    content = b"no HFile at all"
    table.own(at(2))
    damaged = encode_block(BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: at(2), HeaderKey.SCHEMA: SCHEMA}, content)
    path = table.delta(at(2), 2, damaged)
    with pytest.raises(CorruptTable) as caught:
        table.listing()
    assert caught.value.where == f"{table.storage.base}: {path}"
    assert caught.value.hint


@LAYOUTS
def test_a_damaged_base_file_is_named(table: Table) -> None:
    base = next(file for file in table.storage.list_files(FILES) if file.name.endswith(".hfile"))
    table.storage.replace(base.path, table.storage.read(base.path)[:-1])
    with pytest.raises(CorruptTable) as caught:
        table.listing()
    assert caught.value.where == f"{table.storage.base}: {base.path}"


@LAYOUTS
def test_an_uncommitted_base_file_is_passed_over(table: Table) -> None:
    """A compaction of the metadata table that died: the slice below is read on."""
    table.base(at(3), partition_list(["p"]), partition_files("p", {"wrong": 1}))
    table.own(at(3), Action.COMPACTION, State.INFLIGHT)
    assert table.listing() == {"p": {"a": 1, "b": 2}}


@LAYOUTS
def test_log_files_behind_a_pending_compaction_are_read_with_the_slice_below(table: Table) -> None:
    pending = f"{at(1)}001" if table.layout is V6 else at(3)
    table.own(pending, Action.COMPACTION, State.REQUESTED)
    table.own(at(4))
    table.delta(at(4), 1, block(at(4), partition_files("p", {"c": 3})), base=pending)
    assert table.listing() == {"p": {"a": 1, "b": 2, "c": 3}}


@LAYOUTS
def test_a_completed_compaction_opens_a_slice(table: Table) -> None:
    compacted = f"{at(1)}001" if table.layout is V6 else at(3)
    table.own(compacted, Action.COMPACTION)
    table.base(compacted, partition_list(["p"]), partition_files("p", {"folded": 7}))
    table.own(at(4))
    table.delta(at(4), 1, block(at(4), partition_files("p", {"c": 3})), base=compacted)
    assert table.listing() == {"p": {"folded": 7, "c": 3}}
    found = read_files(table.storage, table.layout, Timeline(())).slice_
    assert (found.instant, len(found.logs)) == (compacted, 1)


@LAYOUTS
def test_archived_log_files_of_a_slice_that_is_not_cleaned_yet_do_not_count_again(table: Table) -> None:
    compacted = f"{at(1)}001" if table.layout is V6 else at(3)
    for file in table.storage.list_files(f"{ROOT}/{table.layout.timeline_folder}"):
        table.storage.delete(file.path)
    table.own(compacted, Action.COMPACTION)
    table.base(compacted, partition_list(["p"]), partition_files("p", {"b was cleaned": 7}))
    assert table.listing() == {"p": {"b was cleaned": 7}}


def test_a_log_file_that_completes_after_a_compaction_was_requested_is_in_its_slice(tmp_path: Path) -> None:
    table = Table(tmp_path, V8)
    table.own(INIT)
    table.base(INIT, partition_list(["p"]), partition_files("p", {"a": 1}))
    table.storage.create(f"{ROOT}/.hoodie/timeline/{at(1)}_{at(9)}.deltacommit", b"")
    table.log(at(1), 1, block(at(1), partition_files("p", {"late": 5})))
    table.own(at(3), Action.COMPACTION)
    table.base(at(3), partition_list(["p"]), partition_files("p", {"a": 1}))
    assert table.listing() == {"p": {"a": 1, "late": 5}}


@LAYOUTS
def test_an_empty_delete_block_is_passed_over_and_any_other_refused(table: Table) -> None:
    """Hudi opens a file group by a log file with an empty one."""
    header = {HeaderKey.INSTANT_TIME: INIT}
    table.own(at(2))
    table.delta(at(2), 2, encode_block(BlockType.DELETE, header, encode_deletes(())))
    assert table.listing() == {"p": {"a": 1, "b": 2}}
    deletes = encode_deletes((DeleteRecord("p", "files", 0, OrderingType.INT),))
    table.own(at(3))
    table.delta(at(3), 3, encode_block(BlockType.DELETE, header, deletes))
    with pytest.raises(UnsupportedTable, match="deletes"):
        table.listing()


@LAYOUTS
def test_blocks_of_log_compaction_are_refused_by_name(table: Table) -> None:
    table.own(at(2))
    found = read_blocks(block(at(2), partition_files("p", {"c": 3})))[0]
    header = {**found.header, HeaderKey.COMPACTED_BLOCK_TIMES: at(1)}
    table.delta(at(2), 2, encode_block(BlockType.HFILE_DATA, header, found.content))
    with pytest.raises(UnsupportedTable, match="log compaction"):
        table.listing()


@LAYOUTS
def test_a_files_partition_without_files_is_no_listing(tmp_path: Path, layout: Layout) -> None:
    """It must never read as a table without files."""
    with pytest.raises(CorruptTable, match="0 file groups"):
        Table(tmp_path, layout).listing()


@LAYOUTS
def test_the_newest_schema_is_that_of_the_last_block_or_the_base_file(table: Table) -> None:
    def newest() -> str | None:
        return newest_schema(table.storage, read_files(table.storage, table.layout, Timeline(())).slice_)

    assert newest() == SCHEMA
    other = json.dumps(json.loads(SCHEMA))[:-1] + ', "doc": "a newer one"}'
    content = write_hfile([encode(partition_files("p", {"c": 3}), other)], schema=other, flavour=Flavour.NATIVE)
    table.own(at(2))
    header = {HeaderKey.INSTANT_TIME: at(2), HeaderKey.SCHEMA: other}
    path = table.delta(at(2), 2, encode_block(BlockType.HFILE_DATA, header, content))
    assert newest() == other
    for file in table.storage.list_files(FILES):
        if ".log." in file.name:
            table.storage.delete(file.path)
    assert not table.storage.exists(path)
    assert newest() == SCHEMA


# ------------------------------------------------------------------------------------------------ by Hudi

EXPECTED = json.loads((GOLDEN / "hfiles.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_hudi_wrote_lists_what_its_folders_listed(tmp_path: Path, name: str) -> None:
    table = Table(tmp_path, V6 if name.endswith("v6") else V8)
    for file in (GOLDEN / name).iterdir():
        table.storage.create(f"{FILES}/{file.name}", file.read_bytes())
    for file_name in EXPECTED[name]["timeline"]:
        table.storage.create(f"{ROOT}/{table.layout.timeline_folder}/{file_name}", b"")
    assert table.listing() == EXPECTED[name]["listing"]
