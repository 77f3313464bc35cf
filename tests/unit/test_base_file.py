"""Writing a base file part by part: one file, whole or not there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.avro.schema import META_COLUMNS, arrow_to_avro_schema
from hudi_assets.engine.compaction.base_file import FILE_NAME, BaseFileWriter, write_base_file
from hudi_assets.engine.indexes.bloom import BloomSettings
from hudi_assets.engine.storage import LocalStorage

SCHEMA = pa.schema([*((name, pa.string()) for name in META_COLUMNS), ("v", pa.int64())])
AVRO = arrow_to_avro_schema(SCHEMA, "t_record", "hoodie.t")


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    texts = {name: [f"{name}-{number:05d}" for number in numbers] for name in META_COLUMNS}
    return pa.table({**texts, "v": list(numbers)}, schema=SCHEMA)


def footer(path: Path) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = pq.read_metadata(path).metadata
    return found


def test_parts_are_one_file_with_the_footer_of_all_of_them(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with BaseFileWriter(storage, "a.parquet", SCHEMA, AVRO, BloomSettings(), row_group_bytes=1) as writer:
        writer.write(rows(500, 1000))
        writer.write(rows(0, 0))
        writer.write(rows(0, 500).drop_columns([FILE_NAME]))
    size = write_base_file(
        storage, "b.parquet", pa.concat_tables([rows(500, 1000), rows(0, 500)]), AVRO, BloomSettings()
    )
    assert (writer.rows, writer.sync()) == (1000, (tmp_path / "a.parquet").stat().st_size)
    one, other = pq.read_table(tmp_path / "a.parquet"), pq.read_table(tmp_path / "b.parquet")
    assert one.drop_columns([FILE_NAME]).equals(other.drop_columns([FILE_NAME]))
    assert set(one.column(FILE_NAME).to_pylist()) == {"a.parquet"}
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 2
    assert size == (tmp_path / "b.parquet").stat().st_size
    names = footer(tmp_path / "a.parquet")
    assert names[b"hoodie_min_record_key"] == b"_hoodie_record_key-00000"
    assert names[b"hoodie_max_record_key"] == b"_hoodie_record_key-00999"
    assert {k: v for k, v in names.items() if k != b"ARROW:schema"} == {
        k: v for k, v in footer(tmp_path / "b.parquet").items() if k != b"ARROW:schema"
    }


def test_a_file_without_rows_is_a_file(tmp_path: Path) -> None:
    with BaseFileWriter(LocalStorage(str(tmp_path)), "a.parquet", SCHEMA, AVRO, None):
        pass
    assert pq.read_table(tmp_path / "a.parquet").equals(SCHEMA.empty_table())
    assert footer(tmp_path / "a.parquet")[b"hoodie_min_record_key"] == b""


def test_what_an_error_interrupts_is_not_there(tmp_path: Path) -> None:
    def interrupted() -> None:
        with BaseFileWriter(LocalStorage(str(tmp_path)), "a.parquet", SCHEMA, AVRO, None, row_group_bytes=1) as writer:
            writer.write(rows(0, 10))
            raise ValueError("a damaged log block")

    with pytest.raises(ValueError, match="damaged"):
        interrupted()
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_the_error_that_shows(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").symlink_to("/dev/full")

    def fill() -> None:
        with BaseFileWriter(LocalStorage(str(tmp_path)), "a.parquet", SCHEMA, AVRO, None) as writer:
            writer.write(rows(0, 100_000))

    with pytest.raises(OSError, match="No space left"):
        fill()
    assert not (tmp_path / "a.parquet").is_symlink()
