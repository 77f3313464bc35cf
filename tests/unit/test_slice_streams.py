"""Slices read from their files for a merge: dictionaries as such, and of Avro blocks the chosen records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.codec import chosen_records, decode_records, encode_records
from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema
from hudi_assets.engine.format.log_file.codec import HeaderKey
from hudi_assets.engine.merging.merge import Rows
from hudi_assets.engine.queries.query import read_task, slice_reader
from hudi_assets.engine.table.slices.streams import StoredSlice
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("rider", pa.string()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)
ROWS = 4_000
MANY = 1 << 30


def rows(step: int) -> pa.Table:
    """Steps overlap but for a tenth; riders repeat, some are null, notes do not repeat."""
    numbers = np.arange(ROWS) + step * (ROWS // 10)
    columns = {
        "id": [f"key-{number:08d}" for number in numbers],
        "ts": numbers * 7919 % 1000 + step * 500,
        "rider": [None if number % 11 == 0 else f"rider-{(number + step) % 50}" for number in numbers],
        "note": [f"{number * 2654435761 + step:032x}" for number in numbers.tolist()],
        "tags": [[f"tag-{number % 3}"] * (number % 4) for number in numbers],
    }
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(params=["parquet", "avro"])
def table(request: pytest.FixtureRequest, tmp_path: Path, session: LocalSession) -> HudiTable:
    """A base file and four log blocks, most of whose records lose."""
    HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, data_latency="0s")
    made = HudiTable.open(str(tmp_path / "t"), settings={"hoodie.logfile.data.block.format": request.param})
    made.bulk_insert(session, session.frame(rows(0)))
    for step in range(1, 5):
        made.upsert(session, session.frame(rows(step)))
    return made


def stored(table: HudiTable, dictionaries: bool) -> StoredSlice:
    state = table.state()
    slice_ = state.view.latest[0]
    assert slice_.base_file is not None
    logs = tuple(log.path for log in slice_.log_files)
    return StoredSlice.open(slice_reader(state), slice_.base_file.path, logs, dictionaries)


def decoded(found: pa.Table) -> pa.Table:
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in found.columns]
    return pa.table(dict(zip(found.schema.names, columns, strict=True)))


def dictionaries(found: pa.Table) -> set[str]:
    return {field.name for field in found.schema if pa.types.is_dictionary(field.type)}


def test_texts_that_repeat_come_as_dictionaries_where_that_is_asked(table: HudiTable) -> None:
    plain, quick = stored(table, False), stored(table, True)
    names = plain.schema.names
    (one,), (other,) = plain.base(names, MANY), quick.base(names, MANY)
    assert dictionaries(one) == set()
    repeating = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "rider"}
    assert dictionaries(other) == repeating
    assert decoded(other).equals(decoded(one))
    for number in range(4):
        first, second = plain.block(number, names), quick.block(number, names)
        assert isinstance(first, Rows)
        assert isinstance(second, Rows)
        assert decoded(second.table).equals(decoded(first.table))
        assert dictionaries(first.table) == set()
        assert dictionaries(second.table) == (set() if quick.reads_chosen(number) else repeating)


def test_chosen_records_are_those_of_the_whole_block(table: HudiTable) -> None:
    slice_ = stored(table, True)
    for number in range(4):
        whole = slice_.block(number, slice_.schema.names)
        assert isinstance(whole, Rows)
        chosen = np.arange(len(whole.table)) % 7 == number
        assert slice_.reads_chosen(number) == (table.config.log_block_format == "avro")
        if slice_.reads_chosen(number):
            some = slice_.block(number, slice_.schema.names, chosen)
            assert isinstance(some, Rows)
            assert some.table.equals(whole.table.filter(pa.array(chosen)))


def test_a_compaction_changes_no_row_of_the_snapshot(table: HudiTable, session: LocalSession) -> None:
    def shown() -> pa.Table:
        batches = [batch for task in table.snapshot_tasks() for batch in read_task(task)]
        return pa.Table.from_batches(batches).drop_columns(["_hoodie_file_name"]).sort_by("id")

    before = shown()
    compact(table, session, data_latency="0s")
    assert table.state().view.latest[0].log_files == ()
    assert shown().equals(before)
    base = table.state().view.latest[0].base_file
    assert base is not None
    file = pq.ParquetFile(Path(table.path, base.path))
    assert all(not pa.types.is_dictionary(kind) for kind in file.schema_arrow.types)
    assert set(file.read().column("_hoodie_file_name").to_pylist()) == {base.path}


AVRO = arrow_to_avro_schema(SCHEMA, "t_record", "hoodie.t")
CONTENT = encode_records(rows(0), AVRO)


@pytest.mark.parametrize("every", [1, 2, 999, ROWS])
def test_chosen_records_are_a_block_of_their_own(every: int) -> None:
    chosen = np.arange(ROWS) % every == every - 1
    found = decode_records(chosen_records(CONTENT, chosen), AVRO)
    assert found.equals(decode_records(CONTENT, AVRO).filter(pa.array(chosen)))


def test_records_that_are_not_where_their_lengths_say_are_damage() -> None:
    chosen = np.ones(ROWS, np.bool_)
    for damaged in (CONTENT[:-1], CONTENT[:8] + b"\x7f" + CONTENT[9:]):
        with pytest.raises(CorruptTable, match="lengths"):
            chosen_records(damaged, chosen)
    with pytest.raises(CorruptTable, match="a moment ago"):
        chosen_records(CONTENT, chosen[1:])


def test_positions_count_in_their_base_file_alone(table: HudiTable) -> None:
    """As Hudi goes by keys once a block has none, or has those of another base file."""
    slice_ = stored(table, False)
    assert slice_.base_file is not None
    assert not slice_.by_positions
    instant = slice_.base_file.rpartition("_")[2].removesuffix(".parquet")
    positions, base = HeaderKey.RECORD_POSITIONS, HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS

    def given(*headers: dict[int, str]) -> StoredSlice:
        blocks = [
            replace(one, block=replace(one.block, header={**one.block.header, **more}))
            for one, more in zip(slice_.found.blocks, headers, strict=True)
        ]
        return replace(slice_, found=replace(slice_.found, blocks=blocks))

    right: dict[int, str] = {positions: "AAAA", base: instant}
    assert given(*[right] * 4).by_positions
    assert not given(*[right] * 3, {}).by_positions
    assert not given(*[right] * 3, {positions: "AAAA", base: "20200101000000000"}).by_positions
    assert not given(*[right] * 3, {base: instant}).by_positions
    assert not replace(given(*[right] * 4), base_file=None).by_positions
