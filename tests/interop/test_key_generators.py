"""Tables whose partition paths are not the partition fields' values: maintained and read here, not written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, UnsupportedTable
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.readers import Readers
from tests.interop.tables import compacted, frame, hudi_options, rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.bucket.index.num.buckets": "1",
}
PARTS_OF_A_DAY = {
    "hoodie.datasource.write.partitionpath.field": "text",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
BY_FIELD = {
    "hoodie.datasource.write.partitionpath.field": "p:SIMPLE,region:SIMPLE",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
}


def with_days(numbers: Iterable[int], start: int, mark: int) -> pa.Table:
    """Rows whose text is a day, the key's own."""
    made = rows(numbers, lambda n: start + n, mark)
    days = pa.array([f"2023-11-0{1 + int(key[1:]) % 3}" for key in made["id"].to_pylist()])
    return made.set_column(made.schema.get_field_index("text"), made.schema.field("text"), days)


def without_days(answer: Rows) -> Rows:
    """Hudi shows the path in place of the day that the row has."""
    return {key: {name: value for name, value in row.items() if name != "text"} for key, row in answer.items()}


@pytest.mark.parametrize(
    ("release", "version", "generator"),
    [
        pytest.param("0.15.0", {}, PARTS_OF_A_DAY, id="timestamp-0.15.0"),
        pytest.param(
            "1.2.0", {"hoodie.write.table.version": "6"}, PARTS_OF_A_DAY, id="timestamp-v6", marks=pytest.mark.slow
        ),
        pytest.param("1.2.0", {"hoodie.write.table.version": "9"}, PARTS_OF_A_DAY, id="timestamp-v9"),
        pytest.param("1.2.0", {"hoodie.write.table.version": "9"}, BY_FIELD, id="custom-v9", marks=pytest.mark.slow),
    ],
)
def test_other_partition_paths(
    release: str, version: dict[str, str], generator: dict[str, str], path: Path, readers: Readers
) -> None:
    hudi = readers.hudi[release]
    options = {**hudi_options(name="t", buckets=1), **version, **generator}
    for mark, (numbers, start) in enumerate([(range(9), 0), ([0, 1, 2, 9], 30), ([3, 4], 60)]):
        hudi.write(path, with_days(numbers, start, mark), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    assert table.validate() == ()
    before = readers.ours(table, "snapshot")
    assert len(before) == 10

    with pytest.raises(UnsupportedTable, match=r"partition paths are made by .*(Timestamp|Custom|TIMESTAMP|CUSTOM)"):
        table.upsert(readers.spark, frame(readers.spark, with_days([0], 90, 5)))
    assert compacted(table, readers.spark, 40).logs_remaining > 0
    assert not differences(before, readers.ours(table, "snapshot"))
    hudi.write(path, with_days([5, 10], 100, 6), options)
    for view, count in (("snapshot", 11), ("read_optimized", 10)):
        ours, theirs = (without_days(a) for a in (readers.ours(table, view), by_key(hudi.read(path, view))))
        assert not differences(ours, theirs), view
        assert len(ours) == count
    # The path is not the day: nothing is left out by it.
    assert table.snapshot(readers.spark).where("text = '2023-11-01'").count() == 4
