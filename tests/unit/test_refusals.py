"""What would be read wrongly is refused by name: kinds of data files, of log blocks and of rows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, CorruptTable, UnsupportedTable
from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block, read_blocks
from hudi_assets.engine.model import Operation, Plan
from hudi_assets.engine.timeline.compaction_plan import decode_plan, encode_plan
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> HudiTable:
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1)
    table.upsert(session, session.rows([{"id": "a", "ts": 1}], SCHEMA))
    return table


def refused_everywhere(table: HudiTable, session: LocalSession, words: str, *, looked_at: bool) -> None:
    """Every query, and planning, refuses; nothing is written. A look answers, but where files cannot be listed."""
    table = HudiTable.open(table.path, settings={"hudi_assets.data.latency": "0s"})
    before = sorted(Path(table.path).rglob("*"))
    calls: list[Callable[[], object]] = [
        lambda: table.snapshot(session).toArrow(),
        lambda: table.incremental(session, "000").toArrow(),
        table.plan_compaction,
    ]
    looks: list[Callable[[], object]] = [table.freshness, table.stats, table.due_compaction]
    for look in looks if looked_at else ():
        look()
    for look in calls if looked_at else [*calls, *looks]:
        with pytest.raises(UnsupportedTable, match=words) as refused:
            look()
        assert (refused.value.where or "").startswith(f"{table.path}: ")
        assert (refused.value.where or "").count(table.path) == 1
        assert refused.value.next_step
    assert [f for f in sorted(Path(table.path).rglob("*")) if ".aux" not in f.parts] == [
        f for f in before if ".aux" not in f.parts
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("00000000-aaaa-bbbb-cccc-dddddddddddd-0_0-1-1_20260101000000000.orc", "ORC base files"),
        ("00000000-aaaa-bbbb-cccc-dddddddddddd-0_0-1-1_20260101000000000.hfile", "HFile base files"),
    ],
)
def test_data_files_of_other_kinds(table: HudiTable, session: LocalSession, name: str, words: str) -> None:
    (Path(table.path) / name).write_bytes(b"")
    refused_everywhere(table, session, words, looked_at=False)


@pytest.mark.parametrize("token", ["_0-1-1", ""])
def test_change_data_is_passed_over(table: HudiTable, session: LocalSession, token: str) -> None:
    """What it says of rows is in log and base files too."""
    name = f".00000000-aaaa-bbbb-cccc-dddddddddddd-0_20260101000000000.log.1{token}.cdc"
    (Path(table.path) / name).write_bytes(b"")
    assert table.snapshot(session).count() == 1
    assert table.validate() == ()


def test_other_files_are_no_data_files(table: HudiTable, session: LocalSession) -> None:
    for name in ("notes.orc", ".x.log.1.cdc.crc", "_SUCCESS", "model.hfile"):
        (Path(table.path) / name).write_bytes(b"")
    assert table.snapshot(session).count() == 1


Change = Callable[[BlockType, dict[int, str], bytes], tuple[BlockType, dict[int, str], bytes]]


def _header(key: HeaderKey, value: str) -> Change:
    return lambda kind, header, content: (kind, {**header, key: value}, content)


def _kind(new: BlockType) -> Change:
    return lambda kind, header, content: (new, header, content)


def _columns(change: Callable[[pa.Table], pa.Table]) -> Change:
    def changed(kind: BlockType, header: dict[int, str], content: bytes) -> tuple[BlockType, dict[int, str], bytes]:
        out = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(content))), out)
        # As another writer's: its header says nothing of event times.
        return kind, {**header, HeaderKey.SCHEMA: arrow_to_avro_schema(SCHEMA, "t", "t")}, out.getvalue()

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_header(HeaderKey.COMPACTED_BLOCK_TIMES, "20260101000000000"), "log compaction"),
        (_kind(BlockType.HFILE_DATA), "HFILE_DATA"),
        (_kind(BlockType.CDC), "CDC"),
        (_columns(lambda t: t.append_column("_hoodie_operation", pa.array(["I"]))), "_hoodie_operation"),
        (_columns(lambda t: t.drop_columns([c for c in t.column_names if c.startswith("_hoodie")])), "no Hudi meta"),
        (_columns(lambda t: t.select([c for c in t.column_names if c.startswith("_hoodie")])), "meta columns alone"),
    ],
)
def test_log_blocks_of_other_kinds(table: HudiTable, session: LocalSession, change: Change, words: str) -> None:
    log = min(Path(table.path).glob(".*.log.1_*"))
    block = read_blocks(log.read_bytes())[0]
    kind, header, content = change(block.type, dict(block.header), bytes(block.content))
    # A block of its own behind the first: the file has grown, so its write stat does not tell its range.
    log.write_bytes(log.read_bytes() + encode_block(kind, header, content))
    refused_everywhere(table, session, words, looked_at=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.append_column("_hoodie_operation", pa.array(["I"])), "_hoodie_operation"),
        (lambda t: t.drop_columns([c for c in t.column_names if c.startswith("_hoodie")]), "no Hudi meta"),
        (lambda t: t.select([c for c in t.column_names if c.startswith("_hoodie")]), "meta columns alone"),
    ],
)
def test_base_files_of_other_kinds(
    table: HudiTable, session: LocalSession, change: Callable[[pa.Table], pa.Table], words: str
) -> None:
    compact(table, session, 1)
    base = min(Path(table.path).glob("*.parquet"))
    whole = base.stat().st_size
    # As long as the commit says, so that it is not refused for being short.
    pq.write_table(change(pq.read_table(base)).replace_schema_metadata({"filler": "x" * whole}), base)
    with pytest.raises(UnsupportedTable, match=words):
        table.snapshot(session).toArrow()


def test_a_plan_with_a_bootstrap_base_file() -> None:
    op = Operation("", "f", "1", None, (".f_1.log.1_0-0-0",), (), {})
    data = encode_plan(Plan("2", 0, (op,), "s", {}))
    reader = fastavro.reader(io.BytesIO(data))
    schema, records = reader.writer_schema, list(reader)
    records[0]["operations"][0]["bootstrapFilePath"] = "/elsewhere/f.parquet"  # type: ignore[index, call-overload]
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    with pytest.raises(UnsupportedTable, match="bootstrap"):
        decode_plan("2", out.getvalue(), "here")


def without_schema(table: HudiTable) -> HudiTable:
    properties = Path(table.path) / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("hoodie.table.create.schema", "hoodie.table.checksum"))]
    assert len(kept) < len(lines)
    properties.write_text("\n".join(kept) + "\n")
    return HudiTable.open(table.path, settings={"hudi_assets.data.latency": "0s"})


def test_a_table_whose_first_commit_is_still_to_come(session: LocalSession, tmp_path: Path) -> None:
    """Apache Hudi's writers make the table before their first commit, and put no schema into hoodie.properties."""
    made = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1)
    table = without_schema(made)
    for look in (table.snapshot_tasks, table.plan_compaction):
        with pytest.raises(Conflict, match="nothing was committed"):
            look()


def test_commits_without_a_schema(table: HudiTable, session: LocalSession) -> None:
    (commit,) = Path(table.path).glob(".hoodie/*.deltacommit")
    metadata = json.loads(commit.read_text())
    del metadata["extraMetadata"]["schema"]
    commit.write_text(json.dumps(metadata))
    with pytest.raises(CorruptTable, match="Neither a commit nor"):
        without_schema(table).snapshot_tasks()


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ("hoodie.table.keygenerator.class=org.apache.hudi.keygen.TimestampBasedKeyGenerator", "TimestampBased"),
        ("hoodie.table.keygenerator.type=CUSTOM", "CUSTOM"),
        ("hoodie.table.keygenerator.type=USER_PROVIDED", "USER_PROVIDED"),
    ],
)
def test_other_partition_paths_are_read_and_not_written(
    stated: str, named: str, table: HudiTable, session: LocalSession
) -> None:
    """A row of ours would be in another partition than its key's."""
    properties = Path(table.path) / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.keygenerator")]
    properties.write_text("\n".join([*lines, stated]))
    other = HudiTable.open(table.path)
    before = sorted(Path(table.path).rglob("*"))
    rows = session.rows([{"id": "b", "ts": 2}], SCHEMA)
    for write in (other.upsert, other.bulk_insert, other.delete):
        with pytest.raises(UnsupportedTable, match=f"partition paths are made by .*{named}"):
            write(session, rows)
    assert sorted(Path(table.path).rglob("*")) == before
    assert len(other.snapshot(session).toArrow()) == 1


@pytest.mark.parametrize("kind", ["SIMPLE", "COMPLEX", "NON_PARTITION", "simple", "SIMPLE_AVRO", "COMPLEX_AVRO"])
def test_a_key_generator_stated_by_its_type(kind: str, table: HudiTable, session: LocalSession) -> None:
    properties = Path(table.path) / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.keygenerator")]
    properties.write_text("\n".join([*lines, f"hoodie.table.keygenerator.type={kind}"]))
    assert HudiTable.open(table.path).upsert(session, session.rows([{"id": "b", "ts": 2}], SCHEMA)).rows == 1
