"""Tables whose writers tell deletes by a marker, AWS DMS's among them: Hudi writes, we compact, Hudi's answers stay.

Hudi's writers write a marked row into a delete block. In a data block its readers and its compaction take it for a row.
`INTEROP_SEEDS` and `INTEROP_SEED` as in `test_random_merges`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan, UnsupportedTable
from hudi_assets.engine.model import MergeMode
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key, differences, read_with_hudi_rs
from tests.interop.tables import copy_of
from tests.interop.test_merge import MODEL, SETTINGS, Short, options, short
from tests.interop.test_random_merges import Life, lived, seeds
from tests.tables.local_session import Frame, LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

SCHEMA = pa.schema({"id": pa.string(), "ts": pa.int64(), "v": pa.string(), "Op": pa.string()})
MARKER = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
STATED = {f"hoodie.record.merge.property.{key}": value for key, value in MARKER.items()}
DEFAULT, DMS = f"{MODEL}DefaultHoodieRecordPayload", f"{MODEL}AWSDmsAvroPayload"


def rows(*said: tuple[str, int, str, str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": k, "ts": ts, "v": v, "Op": op} for k, ts, v, op in said], SCHEMA)


def writer(version: int, payload: str, blocks: str = "avro") -> dict[str, str]:
    return {
        **options(payload, "ts"),
        **({} if payload == DMS else MARKER),
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
    }


@dataclass
class Marked(Life):
    """One random table of version 8 or 9."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # On version 8 AWSDmsAvroPayload decides by itself.
        self.version, payload = self.random.choice([(8, DEFAULT), (9, DEFAULT), (9, DMS)])
        blocks = self.options["hoodie.logfile.data.block.format"]
        self.options = writer(self.version, payload, blocks) | {"hoodie.bucket.index.num.buckets": "2"}
        self.done = [f"version {self.version}, seed {self.seed}, {blocks}, {payload.rpartition('.')[2]}"]

    def write(self, operation: str, said: list[tuple[int, int, bool]]) -> None:
        self.done.append(f"{operation} " + " ".join(f"k{n}{'-' if gone else '@'}{at}" for n, at, gone in said))
        mark = str(len(self.done))
        table = rows(*((f"k{n}", at, mark, "D" if gone else "U") for n, at, gone in said))
        mode = "append" if self.path.exists() else "overwrite"
        self.hudi.write(self.path, table, {**self.options, "hoodie.datasource.write.operation": operation}, mode)


@pytest.mark.parametrize("seed", seeds(4))
def test_marked_tables(seed: int, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    lived(Marked(hudi_1_2, session, path, seed))


def restated(path: Path, marked: bool) -> None:
    """hoodie.properties with or without the marker."""
    file = path / ".hoodie/hoodie.properties"
    kept = [x for x in file.read_text().splitlines() if not x.startswith((*STATED, "hoodie.table.checksum"))]
    (path / ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)
    file.write_text("\n".join([*kept, *(f"{k}={v}" for k, v in STATED.items() if marked)]) + "\n")


@pytest.mark.parametrize(
    ("version", "blocks", "payload"),
    [
        (9, "parquet", DEFAULT),
        pytest.param(9, "avro", DMS, marks=pytest.mark.slow),
        pytest.param(8, "avro", DEFAULT, marks=pytest.mark.slow),
    ],
)
def test_a_marked_row_in_a_data_block_is_a_row(
    version: int, blocks: str, payload: str, path: Path, session: LocalSession, hudi_1_2: Hudi
) -> None:
    """To Hudi's readers and its compaction. It is there where a writer did not know of the marker."""
    given = writer(version, payload, blocks)
    base = rows(*((key, 10, "base", "I") for key in "abcd"), ("m", 10, "base", "D"))
    hudi_1_2.write(path, base, {**given, "hoodie.datasource.write.operation": "bulk_insert"}, "overwrite")
    hudi_1_2.write(path, rows(("a", 20, "gone", "D"), ("e", 20, "never", "D")), given)
    restated(path, marked=False)
    unaware = {key: value for key, value in given.items() if key not in MARKER}
    if payload == DMS:  # As such it marks by itself: the mode that it became.
        unaware = {k: v for k, v in unaware.items() if "payload" not in k and "precombine" not in k}
        unaware |= {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    hudi_1_2.write(path, rows(("b", 20, "row", "D"), ("c", 20, "row", "U"), ("f", 20, "row", "D")), unaware)
    restated(path, marked=True)
    table = HudiTable.open(str(path), settings=SETTINGS)
    marker = table.config.merging.delete_marker
    assert marker is not None
    assert (marker.column, marker.value) == ("Op", "D")
    assert (table.config.merging.mode is MergeMode.COMMIT_TIME_ORDERING) == (payload == DMS)
    expected: Short = {
        "b": (20, "row"), "c": (20, "row"), "d": (10, "base"), "f": (20, "row"), "m": (10, "base"),
    }  # fmt: skip
    copy = copy_of(path)
    assert hudi_1_2.compaction(copy, "run", **{"hoodie.write.table.version": str(version)})
    assert short(by_key(hudi_1_2.read(path))) == expected
    assert short(by_key(hudi_1_2.read(copy, "read_optimized"))) == expected
    told = {"hoodie.metadata.enable": "false", **MARKER}
    assert short(by_key(hudi_1_2.read(path, options=told))).keys() == {"c", "d", "m"}
    assert short(by_key(table.snapshot(session).toArrow())) == expected
    if version == 9:  # Where a row is marked, hudi-rs goes by the table's properties.
        assert short(by_key(read_with_hudi_rs(str(path), "snapshot"))).keys() == {"c", "d", "m"}
    plan = table.plan_compaction(threshold=100)
    assert isinstance(plan, Plan)
    table.execute_compaction(session, plan.instant)
    assert short(by_key(table.read_optimized(session).toArrow())) == expected
    assert not differences(by_key(hudi_1_2.read(copy)), by_key(hudi_1_2.read(path)))


def test_our_writer_leaves_rows_to_hudi_and_deletes(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    given = writer(9, DEFAULT)
    hudi_1_2.write(path, rows(("a", 10, "base", "I"), ("b", 10, "base", "I")), given, "overwrite")
    table = HudiTable.open(str(path), settings=SETTINGS | {"hoodie.bucket.index.num.buckets": "1"})
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(UnsupportedTable, match="A row whose Op is 'D' is a delete to Hudi's writers"):
            write(session, Frame(rows(("a", 20, "gone", "D"))))
    table.delete(session, Frame(rows(("a", 20, "", "")).select(["id", "ts"])))
    assert short(by_key(hudi_1_2.read(path))) == {"b": (10, "base")}
