"""A log file that ends within its last block, and one whose frames are damaged: what is lost is exactly what
docs/reference/log_format.md says, and everything else is read."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.codec import arrow_to_avro_schema, encode_records
from hudi_assets.engine.format.log_file.codec import (
    MAGIC,
    BlockType,
    DeleteRecord,
    HeaderKey,
    LogBlock,
    encode_block,
    encode_deletes,
    encode_rollback_block,
    read_blocks,
    read_headers,
)
from hudi_assets.engine.model import Action
from tests.fuzz.table import Fuzzed, build, forget, snapshot
from tests.tables.local_session import LocalSession

ROWS = pa.table({"_hoodie_record_key": [f"k{n}" for n in range(5)], "ts": list(range(5))})
AVRO = arrow_to_avro_schema(ROWS.schema, "t", "n")
SAMPLE = 61  # of a table's cuts, every 61st and the ends


def _header(instant: str) -> dict[HeaderKey, str]:
    return {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: AVRO}


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(ROWS, out)
    return out.getvalue()


BLOCKS = {
    "avro": encode_block(BlockType.AVRO_DATA, _header("1"), encode_records(ROWS, AVRO)),
    "delete": encode_block(BlockType.DELETE, _header("2"), encode_deletes([DeleteRecord("k1", "", 7)])),
    "parquet": encode_block(BlockType.PARQUET_DATA, _header("3"), _parquet()),
    "rollback": encode_rollback_block("4", "1"),
}


def facts(block: LogBlock) -> tuple[object, ...]:
    return block.type, dict(block.header), bytes(block.content), block.offset, block.size


def part(data: bytes, at: int, size: int) -> bytes:
    return data[at : at + size]


@pytest.mark.parametrize("last", BLOCKS)
def test_each_cut_of_the_last_block_leaves_the_earlier_ones(last: str) -> None:
    before = b"".join(BLOCKS.values())
    whole = [facts(block) for block in read_blocks(before)]
    assert len(whole) == len(BLOCKS)
    for cut in range(len(BLOCKS[last])):
        data = before + BLOCKS[last][:cut]
        read = read_blocks(data)
        assert [facts(block) for block in read[: len(whole)]] == whole, cut
        # Fewer bytes than a magic are passed over without a word, as Hudi does; more are shown as damage.
        assert [block.is_corrupt for block in read[len(whole) :]] == ([True] if cut >= len(MAGIC) else []), cut
        assert not any(block.framed for block in read[len(whole) :]), cut
        headers = list(read_headers(partial(part, data), len(data)))
        assert [(b.offset, b.size, b.is_corrupt) for b in headers] == [(b.offset, b.size, b.is_corrupt) for b in read]


HOSTILE = (b"\x00", b"\x7f", b"\xff", b"\x80", b"#")


def test_damage_in_a_frame_costs_its_block_and_the_one_that_its_magic_ends() -> None:
    """Every byte of every magic, block size and total length, each with several values."""
    blocks = list(BLOCKS.values())
    data = b"".join(blocks)
    starts = [sum(map(len, blocks[:n])) for n in range(len(blocks))]
    cases = 0
    for number, start in enumerate(starts):
        end = start + len(blocks[number])
        for at in (*range(start, start + len(MAGIC) + 8), *range(end - 8, end)):
            for byte in HOSTILE:
                damaged = data[:at] + byte + data[at + 1 :]
                if damaged == data:
                    continue
                cases += 1
                if at < len(MAGIC):
                    with pytest.raises(CorruptTable, match="magic"):
                        read_blocks(damaged)
                    continue
                found = {block.offset: facts(block) for block in read_blocks(damaged) if not block.is_corrupt}
                # A block counts as damaged where no magic follows it.
                lost = {number, number - 1} if at < start + len(MAGIC) else {number}
                whole = {block.offset: facts(block) for block in read_blocks(data)}
                kept = [offset for n, offset in enumerate(starts) if n not in lost]
                assert found == {offset: whole[offset] for offset in kept}, (number, at - start, byte)
    assert cases > 300


def test_a_torn_append_changes_no_answer(session: LocalSession, tmp_path: Path) -> None:
    """A writer that appends to a log file (as on HDFS) and dies: the table answers as if it had not begun."""
    fuzzed = build(tmp_path / "table", session)
    log = fuzzed.files(lambda name: ".log." in name)[-1]
    before = log.read_bytes()
    for block in BLOCKS.values():
        cuts = {*range(0, len(block), SAMPLE), 1, len(MAGIC), len(block) - 1}
        for cut in sorted(cuts):
            with fuzzed.damaged(log, before + block[:cut]):
                _same_answer(fuzzed)


def _same_answer(fuzzed: Fuzzed) -> None:
    forget()
    table = HudiTable.open(str(fuzzed.path))
    assert snapshot(table) == fuzzed.rows
    assert table.stats().remaining_log_files > 0


def test_a_log_file_that_was_torn_after_its_commit_is_refused(session: LocalSession, tmp_path: Path) -> None:
    """Its block alone could be passed over; but the commit says how long the file is, and rows would be lost."""
    fuzzed = build(tmp_path / "table", session)
    table = HudiTable.open(str(fuzzed.path))
    last = table.state().timeline.completed(Action.DELTA_COMMIT)[-2].timestamp
    commit = json.loads((fuzzed.path / f".hoodie/{last}.deltacommit").read_text())
    stats = [stat for group in commit["partitionToWriteStats"].values() for stat in group]
    log = fuzzed.path / stats[0]["path"]
    whole = log.read_bytes()
    for cut in (0, 1, len(MAGIC), 20, len(whole) // 2, len(whole) - 1):
        with fuzzed.damaged(log, whole[:cut]):
            forget()
            with pytest.raises(CorruptTable, match=f"{cut} of the {len(whole)} bytes"):
                snapshot(HudiTable.open(str(fuzzed.path)))
