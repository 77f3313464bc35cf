"""A block's header says what its records' event times are: no log file of ours is read for them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.event_time import table_times as table_times_module
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.format.log_file.block_times import BlockTimes, block_times, with_block_times
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, LogBlock, encode_block, read_blocks
from hudi_assets.engine.model import MergeMode, Plan
from hudi_assets.engine.model.log_summary import LogSummary, from_json, to_json
from hudi_assets.engine.table.log_files.summaries import scan_summary
from tests.tables.local_session import LocalSession
from tests.tables.steps import with_properties

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("seq", pa.int64()), ("v", pa.int64())])
SCRATCH = ".hoodie/.aux/hudi_assets"


def create(path: Path, **options: Any) -> HudiTable:
    defaults: dict[str, Any] = {"record_key": ["id"], "ordering_field": "ts", "event_time_field": "ts", "buckets": 1}
    options = defaults | options
    own = options.pop("own", {})
    return with_properties(HudiTable.create(str(path), SCHEMA, **options), own)


def rows(session: LocalSession, *found: tuple[str, int, int]) -> Any:
    return session.rows([{"id": key, "ts": ts, "seq": seq, "v": ts} for key, ts, seq in found], SCHEMA)


def gone(session: LocalSession, ordering: str | None, *found: tuple[str, int | None]) -> Any:
    names = ["id", *([ordering] if ordering else [])]
    table = pa.Table.from_pylist([{"id": key, ordering or "ts": value} for key, value in found], SCHEMA)
    return session.frame(table.select(names))


def logs(table: HudiTable) -> list[Path]:
    return sorted(Path(table.path).glob("**/.*.log.*"))


def test_a_beaten_row_of_a_batch_is_remembered_by_the_header_alone(tmp_path: Path, session: LocalSession) -> None:
    """Statistics archived, memory lost: the newest row of the key is all that the data has."""
    table = create(tmp_path / "t", data_latency="1s", own={"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6})
    table.upsert(session, rows(session, ("a", 20_000, 1), ("a", 30_000, 2)))
    for number in range(8):
        table.upsert(session, rows(session, ("b", 40_000 + number, 1)))
    assert table.freshness().freshness == 19_999
    written = len(table.state().timeline.instants)
    table.archive()
    assert len(table.state().timeline.instants) < written - 1
    assert table.freshness().freshness == 19_999
    shutil.rmtree(tmp_path / "t" / SCRATCH)
    assert table.freshness().freshness == 19_999


def blank_contents(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for block in read_blocks(bytes(data)):
        data[block.content_offset : block.content_offset + block.content_size] = bytes(block.content_size)
    path.write_bytes(data)


KINDS: Mapping[str, dict[str, Any]] = {
    "event time": {},
    "Avro": {"log_block_format": "avro"},
    "another field orders": {"ordering_field": "seq"},
    "commit time": {"ordering_field": None, "merge_mode": MergeMode.COMMIT_TIME_ORDERING},
    "version 9": {"table_version": 9},
    "residue logs": {"own": {"hudi_assets.table.services": "ours", "hudi_assets.writers": "stopped"}},
    "exact split": {"exact_split": True, "own": {"hudi_assets.writers": "stopped"}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_content_of_ours_is_read_and_headers_say_what_the_stats_say(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    options = dict(KINDS[kind])
    ordering = options.get("ordering_field", "ts")
    table = create(tmp_path / "t", **{"data_latency": "1s", **options})
    table.upsert(session, rows(session, ("a", 20_000, 1), ("a", 30_000, 2), ("b", 10_000, 9)))
    table.delete(session, gone(session, None, ("b", None)))
    if ordering:
        table.delete(session, gone(session, ordering, ("a", 90_000), ("b", 40_000)))
        table.delete(session, gone(session, ordering, ("a", 60_000), ("b", None)))
    if kind in ("residue logs", "exact split"):
        table.upsert(session, rows(session, ("c", 70_000, 1)))
        plan = table.plan_compaction(threshold=65_000)  # a delete in commit order that remained would take all along
        assert isinstance(plan, Plan)
        table.execute_compaction(session, plan.instant)
        assert [log.name for log in logs(table) if log.name.endswith(f"{plan.instant}.log.1_0-0-0")], "a residue log"
    by_stats, fresh = dict(TableTimes(table.state()).summaries), table.freshness()
    scanned = _scanned(table)
    for log in logs(table):
        blank_contents(log)
    monkeypatch.setattr(table_times_module, "_own_stats", lambda *_: {})
    shutil.rmtree(tmp_path / "t" / SCRATCH)
    by_headers = TableTimes(table.state()).summaries
    for path, told in by_headers.items():
        known = by_stats[path]
        assert (told.min_event_time, told.max_event_time) == (known.min_event_time, known.max_event_time), path
        assert told.deletes == known.deletes
        # What the data alone says is never wider, and counts deletes alike.
        assert (told.deletes, told.barriers, told.undated is None) == (
            scanned[path].deletes,
            scanned[path].barriers,
            scanned[path].undated is None,
        ), path
        assert told.lowest <= scanned[path].lowest
        assert told.highest >= scanned[path].highest
    shown = table.freshness()
    assert (shown.min_event_time, shown.bounds) == (fresh.min_event_time, fresh.bounds)


def _scanned(table: HudiTable) -> dict[str, LogSummary]:
    """By the data alone: as if another writer had written it."""
    found = {}
    for log in table.state().remaining_logs:
        path = Path(table.path) / log.path
        kept = path.read_bytes()
        path.write_bytes(_rewritten(kept, lambda schema: {k: v for k, v in schema.items() if "event.time" not in k}))
        column, unit = TableTimes(table.state()).column
        found[log.path] = scan_summary(
            table._table.storage, log.path, column, unit, table.config.ordering_fields, table.state().schema
        ).summary
        path.write_bytes(kept)
    return found


def _rewritten(data: bytes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """The same blocks with other properties in their schemas."""
    parts = []
    for block in read_blocks(data):
        schema = json.dumps(change(json.loads(block.schema or "{}")))
        parts.append(encode_block(block.type, {**block.header, HeaderKey.SCHEMA: schema}, block.content))
    return b"".join(parts)


def _one_log(tmp_path: Path, session: LocalSession) -> tuple[HudiTable, Path]:
    """A log file whose header says 20,000 (a row that was beaten), and whose data says 30,000."""
    table = create(tmp_path / "t", data_latency="1s")
    table.upsert(session, rows(session, ("a", 20_000, 1), ("a", 30_000, 2)))
    (log,) = logs(table)
    return table, log


@pytest.mark.parametrize(
    ("change", "lowest"),
    [
        (lambda s: s, 20_000),
        # Of another column or unit, or taken over from another block: the data tells.
        (lambda s: s | {"hoodie.min.event.time": 10_000, "hudi_assets.event.time": "seq:ms"}, 30_000),
        (lambda s: s | {"hoodie.min.event.time": 10_000, "hudi_assets.event.time": "ts:s"}, 30_000),
        (lambda s: s | {"hoodie.min.event.time": 10_000, "hudi_assets.instant": "20200101"}, 30_000),
        (lambda s: {k: v for k, v in s.items() if "min" not in k}, 30_000),
        # Damaged: as if it were not there; the minimum counts where it can only lower what the data says.
        (lambda s: s | {"hudi_assets.deletes": "many"}, 20_000),
        (lambda s: s | {"hudi_assets.deletes": -1}, 20_000),
        (lambda s: s | {"hudi_assets.rows.without.event.time": True}, 20_000),
        (lambda s: s | {"hoodie.min.event.time": 31_000, "hoodie.max.event.time": 30_000}, 30_000),
        (lambda s: s | {"hoodie.max.event.time": 2**63}, 20_000),
        # Written before the maximum stood beside it.
        (lambda s: {k: v for k, v in s.items() if not k.startswith("hudi_assets") and "max" not in k}, 20_000),
    ],
)
def test_a_header_is_believed_where_it_is_whole_and_of_this_block_and_column(
    tmp_path: Path, session: LocalSession, change: Callable[[dict[str, Any]], dict[str, Any]], lowest: int
) -> None:
    table, log = _one_log(tmp_path, session)
    # A byte more than the write stat says: the file itself is asked.
    log.write_bytes(_rewritten(log.read_bytes(), lambda s: change(s) | {"doc": "longer"}))
    (summary,) = TableTimes(table.state()).summaries.values()
    assert (summary.min_event_time, summary.max_event_time) == (lowest, 30_000)


def test_another_event_time_column_is_read_from_the_data(tmp_path: Path, session: LocalSession) -> None:
    _one_log(tmp_path, session)
    other = HudiTable.open(str(tmp_path / "t"), settings={"hoodie.payload.event.time.field": "v"})
    (summary,) = TableTimes(other.state()).summaries.values()
    assert (summary.min_event_time, summary.max_event_time) == (30_000, 30_000)
    renamed = HudiTable.open(str(tmp_path / "t"), settings={"hoodie.payload.event.time.field": "seq"})
    (summary,) = TableTimes(renamed.state()).summaries.values()
    assert (summary.min_event_time, summary.max_event_time) == (2, 2)


def test_properties_come_back_and_are_none_where_there_are_none() -> None:
    for times in (BlockTimes("ts:ms"), BlockTimes("ts:us", -5, 7, 1, 2, 3, 4, 99)):
        block = LogBlock(
            BlockType.DELETE,
            {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: with_block_times('{"type":"record"}', times, "1")},
            b"",
            {},
            0,
            0,
        )
        assert block_times(block, times.column) == times
        assert block_times(block, "other:ms") is None
    assert block_times(LogBlock(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, b"", {}, 0, 0), "ts:ms") is None


def test_summaries_are_kept_whole_but_for_their_bound(tmp_path: Path, session: LocalSession) -> None:
    table = create(tmp_path / "t", data_latency="1s")
    table.upsert(session, rows(session, ("a", 20_000, 1)))
    table.delete(session, gone(session, "ts", ("a", None), ("b", 5_000)))
    for summary in TableTimes(table.state()).summaries.values():
        assert from_json(json.loads(json.dumps(to_json(summary)))) == summary
    with pytest.raises(ValueError, match="unpack"):
        from_json([1, 2, 0, 0, None, None])


def with_null_times(data: bytes) -> bytes:
    """A Parquet data block whose first row has no event time, as another writer leaves it."""
    (block,) = read_blocks(data)
    table = pq.read_table(io.BytesIO(bytes(block.content)))
    column = table.schema.get_field_index("ts")
    first = pa.array([number == 0 for number in range(len(table))])
    values = pc.if_else(first, pa.scalar(None, pa.int64()), table.column("ts"))
    pq.write_table(table.set_column(column, pa.field("ts", pa.int64()), values), out := io.BytesIO())
    schema = json.loads(block.schema or "{}")
    # Longer than the write stat says: the file itself is asked.
    plain = {"type": "record", "name": "n", "fields": schema["fields"], "doc": "x" * 4096}
    return encode_block(block.type, {**block.header, HeaderKey.SCHEMA: json.dumps(plain)}, out.getvalue())
