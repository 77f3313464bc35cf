"""Writing a base file part by part: one file, whole or not there."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.avro.schema import META_COLUMNS, arrow_to_avro_schema
from hudi_assets.engine.format.bloom import BloomSettings
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.base_file_writer import FILE_NAME, BaseFileWriter, write_base_file
from hudi_assets.engine.table.settings.parquet import BLOCK_SIZE, CODEC, ParquetSettings, parse_parquet_settings
from hudi_assets.engine.table.settings.parquet import DICTIONARY as DICTIONARY_KEY

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
def test_a_full_disk_is_the_error_that_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = io.FileIO("/dev/full", "wb")
    monkeypatch.setattr("hudi_assets.engine.storage.named_file.io.FileIO", lambda path, mode: full)

    def fill() -> None:
        with BaseFileWriter(LocalStorage(str(tmp_path)), "a.parquet", SCHEMA, AVRO, None) as writer:
            writer.write(rows(0, 100_000))

    with pytest.raises(OSError, match="No space left"):
        fill()
    assert full.closed
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ dictionaries


def with_riders(first: int, last: int, kind: pa.DataType) -> pa.Table:
    """Rows whose partition paths, many of them the same, are of a type."""
    column = pa.array([None if n % 7 == 0 else f"partition-{n % 3}" for n in range(first, last)]).cast(kind)
    return rows(first, last).set_column(3, "_hoodie_partition_path", column)


DICTIONARY = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize("kinds", [(DICTIONARY, pa.string()), (pa.string(), DICTIONARY), (DICTIONARY, DICTIONARY)])
@pytest.mark.parametrize("row_group_bytes", [1, 1 << 20])
def test_dictionaries_are_written_as_the_texts_they_stand_for(
    tmp_path: Path, kinds: tuple[pa.DataType, pa.DataType], row_group_bytes: int
) -> None:
    storage = LocalStorage(str(tmp_path))
    with BaseFileWriter(storage, "a.parquet", SCHEMA, AVRO, None, row_group_bytes) as writer:
        writer.write(with_riders(0, 100, kinds[0]))
        writer.write(with_riders(100, 300, kinds[1]))
    plain = pa.concat_tables([with_riders(0, 100, pa.string()), with_riders(100, 300, pa.string())])
    write_base_file(storage, "b.parquet", plain, AVRO, None)
    one, other = pq.read_table(tmp_path / "a.parquet"), pq.read_table(tmp_path / "b.parquet")
    assert one.schema == SCHEMA
    assert one.drop_columns([FILE_NAME]).equals(other.drop_columns([FILE_NAME]))
    assert footer(tmp_path / "a.parquet") == footer(tmp_path / "b.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").equals(SCHEMA, check_metadata=True)
    for group in range(pq.read_metadata(tmp_path / "a.parquet").num_row_groups):
        chunk = pq.read_metadata(tmp_path / "a.parquet").row_group(group).column(3)
        assert (chunk.statistics.min, chunk.statistics.max) == ("partition-0", "partition-2")


# ------------------------------------------------------------------------------------------ settings


def written(tmp_path: Path, settings: ParquetSettings) -> pq.FileMetaData:
    write_base_file(LocalStorage(str(tmp_path)), "a.parquet", with_riders(0, 1000, pa.string()), AVRO, None, settings)
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column("v").to_pylist() == list(range(1000))
    assert table.column(3).equals(with_riders(0, 1000, pa.string()).column(3))
    return pq.read_metadata(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("stated", "codec"),
    [
        (None, "ZSTD"),
        ("ZSTD", "ZSTD"),
        ("gzip", "GZIP"),
        ("Snappy", "SNAPPY"),
        ("LZ4_RAW", "LZ4"),
        ("uncompressed", "UNCOMPRESSED"),
        ("", "UNCOMPRESSED"),
    ],
)
def test_base_files_have_the_codec_that_is_stated(tmp_path: Path, stated: str | None, codec: str) -> None:
    settings = parse_parquet_settings({} if stated is None else {CODEC: stated}, "t")
    group = written(tmp_path, settings).row_group(0)
    assert {group.column(number).compression for number in range(group.num_columns)} == {codec}


def test_row_groups_have_the_size_that_is_stated(tmp_path: Path) -> None:
    size = with_riders(0, 1000, pa.string()).nbytes
    assert written(tmp_path, parse_parquet_settings({}, "t")).num_row_groups == 1
    found = written(tmp_path, parse_parquet_settings({BLOCK_SIZE: str(size // 4)}, "t"))
    assert 4 <= found.num_row_groups <= 6


def test_dictionaries_can_be_switched_off(tmp_path: Path) -> None:
    for stated, expected in (("true", True), ("false", False)):
        group = written(tmp_path, parse_parquet_settings({DICTIONARY_KEY: stated}, "t")).row_group(0)
        chunks = [group.column(number) for number in range(group.num_columns)]
        assert {chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page} == (
            {FILE_NAME, "_hoodie_partition_path"} if expected else set()
        )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((CODEC, text) for text in ("lzo", "lz4", "brotli", "zstd9")),
        *((BLOCK_SIZE, text) for text in ("0", "-1", "", "9MB")),
        (DICTIONARY_KEY, "yes"),
    ],
)
def test_what_is_no_setting_is_refused_by_its_name(key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"{key} is {value!r}")):
        parse_parquet_settings({key: value}, "t")
