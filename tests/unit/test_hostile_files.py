"""Files that are well-formed and meant badly: they are refused before anything is allocated, linked or deleted."""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.container import checked
from hudi_assets.engine.format.parquet_reader import read_parquet
from hudi_assets.engine.model import CarryOver, Operation, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.checked_json import seal, unseal
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.compaction_plan import decode_plan, encode_plan
from tests.races.player import SCHEMA, create, rows_of
from tests.tables.local_session import LocalSession

OUTSIDE = ("/etc", "../x", "a/../../x", "..", "p\0q", ".hoodie", ".hoodie/archived")


def container(schema: object, body: bytes, count: int, *, codec: str = "null", size: int | None = None) -> bytes:
    """An Avro container of one block, as nobody's library would write it."""
    entries = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    head = b"Obj\x01" + _zigzag(len(entries))
    for key, value in entries.items():
        head += _zigzag(len(key)) + key.encode() + _zigzag(len(value)) + value
    sync = b"s" * 16
    return head + b"\0" + sync + _zigzag(count) + _zigzag(len(body) if size is None else size) + body + sync


def _zigzag(number: int) -> bytes:
    value, out = ((number << 1) ^ (number >> 63)) & (2**64 - 1), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def record(*types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(types)]}


RECURSIVE = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
NESTED: Any = "long"
for _ in range(200):
    NESTED = {"type": "array", "items": NESTED}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (container(record({"type": "array", "items": "null"}), _zigzag(2**60) + b"\0", 1), "empty"),
        (container(record({"type": "array", "items": record()}), _zigzag(2**60), 1), "without fields"),
        (container(record({"type": "fixed", "name": "F", "size": 0}), b"", 2**40), "without a size"),
        (container(record("null"), b"", 2**60), "empty"),
        (container(RECURSIVE, b"\x02" * 1_000_000, 1), "recursive"),
        (container(record(NESTED), b"\0", 1), "nested too deeply"),
        (container(record("long"), b"\0", 2**60), "do not fit"),
        (container(record("long"), b"\0", -1), "do not fit"),
        (container(record("long"), b"\0", 1, size=2**62), "does not fit"),
        (container(record("long"), b"\0", 1, size=-5), "does not fit"),
        (container(record("long"), b"\0", 1, codec="snappy"), "codec"),
        (b"Obj\x01" + _zigzag(2**62), "do not fit"),
        (b"Obj\x01" + b"\xff" * 40, "does not end"),
        (b"Obj\x01\x02\x16avro.schema" + _zigzag(6) + b"[" * 6 + b"\0", "cannot be parsed"),
    ],
)
def test_hostile_containers_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(CorruptTable, match=words):
        checked(data, "plan", "t")


def test_a_compressed_block_that_holds_too_much_is_refused_without_being_held() -> None:
    import tracemalloc

    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = b"".join(deflate.compress(bytes(1 << 20)) for _ in range(300)) + deflate.flush()
    data = container(record("long"), body, 1, codec="deflate")
    assert len(data) < 1 << 20
    tracemalloc.start()
    with pytest.raises(CorruptTable, match="holds more than"):
        checked(data, "plan", "t")
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_sound_containers_pass(codec: str) -> None:
    item = record({"type": "map", "values": ["null", "string"]}, "boolean")
    schema = fastavro.parse_schema({**record({"type": "array", "items": {**item, "name": "I"}}, "double"), "name": "O"})
    out = io.BytesIO()
    rows = [{"f0": [{"f0": {"k": None, "l": "v"}, "f1": True}], "f1": 1.5}]
    fastavro.writer(out, schema, rows * 500, codec=codec)
    assert list(fastavro.reader(io.BytesIO(checked(out.getvalue(), "plan", "t")))) == rows * 500


# -- paths ------------------------------------------------------------------------------------------


def plan(
    partition: str = "", file_id: str = "g", link: str = ".g_2.log.1_0-0-0", log: str = ".g_1.log.1_0-0-0"
) -> Plan:
    carried = (CarryOver(link, ".g_1.log.2_0-0-0"),)
    return Plan("2", 5, (Operation(partition, file_id, "1", None, (log,), carried, {}),), "s", {})


@pytest.mark.parametrize("partition", OUTSIDE)
def test_a_plan_stays_inside_the_table(partition: str) -> None:
    with pytest.raises(CorruptTable, match="outside"):
        decode_plan("2", encode_plan(plan(partition)), "t")


@pytest.mark.parametrize("name", ["hoodie.properties", ".other_2.log.1_0-0-0", ".g_3.log.1_0-0-0", "", "x"])
def test_a_plan_links_log_files_of_its_own_slice_only(name: str) -> None:
    with pytest.raises(CorruptTable, match="names a file"):
        decode_plan("2", encode_plan(plan(link=name)), "t")


@pytest.mark.parametrize("text", ["x", "9" * 40, "1e3", ""])
def test_a_plan_with_another_threshold_than_a_number_is_refused(text: str) -> None:
    data = encode_plan(plan()).replace(b"\x26hudi_assets.threshold\x02" + b"5", b"")
    assert data == encode_plan(plan()) or decode_plan("2", data, "t")
    record_ = next(iter(fastavro.reader(io.BytesIO(encode_plan(plan())))))
    assert isinstance(record_, dict)
    record_["extraMetadata"]["hudi_assets.threshold"] = text
    out = io.BytesIO()
    reader = fastavro.reader(io.BytesIO(encode_plan(plan())))
    assert reader.writer_schema is not None
    fastavro.writer(out, reader.writer_schema, [record_])
    with pytest.raises(CorruptTable, match="threshold"):
        decode_plan("2", out.getvalue(), "t")


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("key", ["path", "partitionPath"])
def test_a_commit_stays_inside_the_table(key: str, path: str) -> None:
    body = {"partitionToWriteStats": {"": [{"fileId": "g", key: path}]}}
    with pytest.raises(CorruptTable, match="outside") as refused:
        CommitMetadata.from_json(json.dumps(body).encode(), "the_commit")
    assert "the_commit" in str(refused.value)


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63, True, 1.5, "1", [1], {"a": 1}])
def test_a_commit_with_another_number_than_64_bits_is_refused(value: object) -> None:
    body = {"partitionToWriteStats": {"": [{"fileSizeInBytes": value}]}}
    with pytest.raises(CorruptTable, match="fileSizeInBytes"):
        CommitMetadata.from_json(json.dumps(body).encode(), "t")


def _a_table(session: LocalSession, tmp_path: Path) -> tuple[HudiTable, Path]:
    table = create(tmp_path / "t")
    table.upsert(session, session.rows([{"id": "a", "ts": 1, "v": 1}], SCHEMA))
    return table, min((tmp_path / "t").glob(".*.log.*"))


@pytest.mark.parametrize("absolute", [True, False])
def test_a_symbolic_link_that_leads_out_is_refused(session: LocalSession, tmp_path: Path, absolute: bool) -> None:
    table, log = _a_table(session, tmp_path)
    outside = tmp_path / log.name
    log.rename(outside)
    log.symlink_to(outside if absolute else Path("..", outside.name))
    with pytest.raises(CorruptTable, match="leads out of the table"):
        rows_of(table)
    # By way of another link too.
    log.unlink()
    (log.parent / "hop").symlink_to(outside)
    log.symlink_to("hop")
    with pytest.raises(CorruptTable, match="leads out of the table"):
        rows_of(table)


def test_a_link_inside_the_table_is_read_and_one_to_itself_refused(session: LocalSession, tmp_path: Path) -> None:
    table, log = _a_table(session, tmp_path)
    kept = log.with_name("kept")
    log.rename(kept)
    log.symlink_to(kept)
    assert rows_of(table) == {"a": (1, 1)}
    (path,) = (file for file in LocalStorage(table.path).list_files("") if file.name == log.name)
    assert path.link_target == "kept"
    loop = log.with_name(log.name.replace(".log.1", ".log.2"))
    loop.symlink_to(loop.name)
    with pytest.raises(CorruptTable, match=re.escape(loop.name)):
        rows_of(table)
    loop.rename(loop.with_name("no name of Hudi's"))
    assert rows_of(table) == {"a": (1, 1)}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "nul\0nul"])
def test_storage_refuses_paths_that_lead_out(tmp_path: Path, path: str) -> None:
    storage = LocalStorage(str(tmp_path))
    for ask in (
        storage.read,
        storage.delete,
        storage.exists,
        storage.list_files,
        storage.open_new,
        storage.modified_ms,
    ):
        with pytest.raises(CorruptTable, match="leads out"):
            ask(path)


# -- Parquet ----------------------------------------------------------------------------------------


def _parquet(table: pa.Table, **options: Any) -> pa.BufferReader:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return pa.BufferReader(out.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_parquet_that_claims_more_than_a_table_with_keys_can_is_refused(compression: str) -> None:
    many = pa.table({"v": pa.repeat(pa.scalar(7), 12_000_000)})
    with pytest.raises(CorruptTable, match="claim to hold 12000000 rows"):
        read_parquet(_parquet(many, compression=compression))
    wide = pa.table({"v": ["x" * (120 << 20)]})
    with pytest.raises(CorruptTable, match="claim to hold 1 rows"):
        read_parquet(_parquet(wide, compression=compression, use_dictionary=False))


def test_rows_with_keys_are_far_from_that() -> None:
    keys = pa.array([f"k{n:09}" for n in range(1_500_000)])
    same = pa.table({"key": keys, "v": pa.repeat(pa.scalar("a constant"), len(keys))})
    assert len(read_parquet(_parquet(same, compression="zstd"))) == len(keys)


def test_text_that_is_no_utf8_is_refused() -> None:
    data = bytearray(_parquet(pa.table({"v": ["abcdefgh" * 4]}), compression="none").read_buffer().to_pybytes())
    at = data.find(b"abcdefgh")
    while at >= 0:
        data[at] = 0xFF
        at = data.find(b"abcdefgh")
    with pytest.raises(CorruptTable):
        read_parquet(pa.BufferReader(bytes(data)))


def test_what_is_sealed_is_believed_whole_or_not_at_all() -> None:
    data = seal({"a": [1, None, "ü"]})
    assert unseal(data) == {"a": [1, None, "ü"]}
    for at in range(len(data)):
        with pytest.raises(ValueError):
            unseal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ValueError):
            unseal(data[:at])


def test_a_fifo_in_a_partition_is_no_file(session: LocalSession, tmp_path: Path) -> None:
    table, log = _a_table(session, tmp_path)
    os.mkfifo(log.with_name(log.name.replace(".log.1", ".log.2")))
    assert rows_of(table) == {"a": (1, 1)}
