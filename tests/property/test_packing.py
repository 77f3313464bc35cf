"""Rows in parcels come out as they went in: by file group, in their order, whatever Spark does with the pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.writing import exchange, packing
from hudi_assets.engine.actions.writing import parcels as pieces
from hudi_assets.engine.actions.writing.exchange import Note, Parcel
from hudi_assets.engine.actions.writing.packing import Packing, groups_of
from hudi_assets.engine.table.record_keys import java_hash
from hudi_assets.engine.table.settings.config import TableConfig

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("words", pa.list_(pa.string()))])
Rows = list[tuple[str, str, int]]


@pytest.fixture(scope="module", params=[False, True], ids=["flat", "partitioned"])
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TableConfig:
    table = HudiTable.create(
        str(tmp_path_factory.mktemp("t") / "t"),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        event_time_unit="ms",
        partition_fields=["p"] if request.param else [],
        buckets=5,
    )
    return table.config


def slow_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    total = 0
    for at in range(0, len(units), 2):
        total = (total * 31 + int.from_bytes(units[at : at + 2])) % (1 << 32)
    return total - (1 << 32) if total >= 1 << 31 else total


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(st.lists(st.one_of(texts, st.text("ab", min_size=9, max_size=9), st.text("é😀", max_size=300))), st.data())
def test_hashes_are_javas(values: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    assert java_hash(pa.array(values, pa.string()).slice(start)).tolist() == [slow_hash(v) for v in values[start:]]


def batches_of(rows: Rows, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        part = [{"id": i, "p": p, "ts": ts, "words": [i, p]} for i, p, ts in rows[start : start + size]]
        yield pa.RecordBatch.from_pylist(part, SCHEMA)


def bucket(key: str) -> int:
    return ((31 + slow_hash(key)) % (1 << 31)) % 5


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.text("abcé", min_size=1, max_size=4), st.sampled_from(["x", "y", "z"]), st.integers(0, 99))
    ),
    size=st.integers(1, 7),
    most=st.sampled_from([64, 500, 1 << 20]),
    piece=st.sampled_from([7, 100, 1 << 14]),
    data=st.data(),
)
def test_rows_come_out_by_file_group(
    config: TableConfig, rows: Rows, size: int, most: int, piece: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_PARCEL_BYTES", most)
        patch.setattr(pieces, "PIECE", piece)
        plan = Packing(config, ("ts",), pa.schema([]))
        made = list(exchange.packing(plan.pack, batches_of(rows, size), 4, 3))
    table = pa.Table.from_batches(made)
    sent = table.filter(pa.compute.is_valid(table["data"]))
    order = data.draw(st.permutations(range(len(sent)))) if len(sent) < 60 else list(reversed(range(len(sent))))
    arrived = sent.take(pa.array(order, pa.int64())).select(["stream", "piece", "data"])
    cut = data.draw(st.integers(1, 20))
    found = {
        (partition, number): [(r["id"], r["p"], r["ts"]) for r in part.to_pylist()]
        for partition, number, part in groups_of(pieces.parcels_of(arrived.to_batches(max_chunksize=cut)), config)
    }
    expected: dict[tuple[str, int], Rows] = {}
    for row in rows:
        expected.setdefault((f"p={row[1]}" if config.partitioned else "", bucket(row[0])), []).append(row)
    assert found == expected


def test_a_group_s_rows_have_key_and_partition_path_in_front(config: TableConfig) -> None:
    plan = Packing(config, (), pa.schema([]))
    made = list(plan.pack(batches_of([("a", "x", 1), ("b", "x", 2)], 1), 4))
    ((*_, first), *_) = groups_of([one.rows for one in made if isinstance(one, Parcel)], config)
    assert first.schema.names == ["_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]
    assert first.schema.metadata is None
    (note,) = [one.value for one in made if isinstance(one, Note)]
    assert note.rows == 2
    assert len(note.groups) == 2


def test_faulty_rows_are_counted_over_all_batches(config: TableConfig) -> None:
    plan = Packing(config, ("ts",), pa.schema([]))
    rows = [{"id": i, "p": "x", "ts": ts} for i, ts in [("a", 1), ("", 2), (None, 3), ("b", None), ("c", 1)]]
    batches = pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=1)
    notes = [one.value for one in plan.pack(iter(batches), 4) if isinstance(one, Note)]
    assert [(note.rows, dict(note.faults)) for note in notes] == [
        (5, {"record key (null or empty id)": 2, "ts (null)": 1})
    ]


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 200), st.integers(1, 1 << 30), min_size=1), st.integers(1, 8))
def test_tasks_are_alike_in_bytes(sizes: dict[int, int], cores: int) -> None:
    homes, tasks = exchange.assign(sizes, cores)
    loads = [0] * tasks
    for slot, home in homes.items():
        loads[home] += sizes[slot]
    assert homes.keys() == sizes.keys()
    assert tasks == len(sizes) or tasks % cores == 0
    assert min(loads) > 0
    assert max(loads) - min(loads) <= max(sizes.values())
