"""A look never refuses: tables that are not merged here answer by their timeline, files and event times."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, NoPlan, Plan, UnsupportedTable
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block, read_blocks
from hudi_assets.engine.model import Action, MergeMode
from hudi_assets.engine.model.log_summary import LogSummary, Since, Undated, from_json, to_json
from hudi_assets.engine.transaction.clean import CleanResult
from tests.tables.local_session import Frame, LocalSession

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("n", pa.int64())])
HOUR = 3_600_000
HUDI = {"hudi_assets.executor": "hudi"}
_MODEL = "org.apache.hudi.common.model."
_MERGER = "hoodie.record.merge.property.hoodie.payload.delete."
# What a table states (None: it does not), and what says why it is not merged here.
RULES: Mapping[str, tuple[int, Mapping[str, str | None], str]] = {
    "partial payload of version 6": (
        6,
        {"hoodie.compaction.payload.class": f"{_MODEL}PartialUpdateAvroPayload"},
        "PartialUpdateAvroPayload",
    ),
    "custom payload": (6, {"hoodie.compaction.payload.class": "com.example.Ours"}, "com.example.Ours"),
    "custom merger": (6, {"hoodie.compaction.record.merger.strategy": "my-own"}, "record merger is my-own"),
    "delete marker": (
        6,
        {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
        "told by a column of the payload's own",
    ),
    "partial updates": (9, {"hoodie.table.partial.update.mode": "KEEP_VALUES"}, "partial updates"),
    "no marker": (9, {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"}, "partial updates"),
    "partial updates of version 8": (8, {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, "partial updates"),
    "partial updates by several ordering fields": (
        9,
        {"hoodie.table.ordering.fields": "ts,n", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
        "several ordering fields",
    ),
    "custom mode": (9, {"hoodie.record.merge.mode": "CUSTOM"}, "merge mode is CUSTOM"),
    "properties of the merger": (9, {"hoodie.record.merge.property.mine": "x"}, "properties of its own"),
    "half a marker": (9, {f"{_MERGER}marker": "D"}, "properties of its own"),
    "a marker of version 6": (6, {f"{_MERGER}field": "Op", f"{_MERGER}marker": "D"}, "properties of its own"),
    "several ordering fields of version 6": (
        6,
        {"hoodie.table.precombine.field": None, "hoodie.table.ordering.fields": "ts,n"},
        "several ordering fields",
    ),
    "no ordering field": (9, {"hoodie.table.ordering.fields": None}, "needs one"),
    "an ordering field that is no column": (
        9,
        {"hoodie.table.ordering.fields": "nobody", "hoodie.table.partial.update.mode": "KEEP_VALUES"},
        "partial updates",
    ),
}
FILES: Mapping[str, tuple[int, Mapping[str, str | None], str]] = {
    "no meta columns": (9, {"hoodie.populate.meta.fields": "false"}, "no Hudi meta columns"),
    "bootstrapped": (6, {"hoodie.bootstrap.base.path": "/elsewhere"}, "bootstrapped"),
    "partition columns dropped": (
        9,
        {"hoodie.datasource.write.drop.partition.columns": "true"},
        "partition columns are dropped",
    ),
    "changelog": (9, {"hoodie.allow.operation.metadata.field": "true"}, "_hoodie_operation"),
    "a contradiction": (
        9,
        {"hoodie.compaction.payload.class": f"{_MODEL}OverwriteWithLatestAvroPayload"},
        "contradicts",
    ),
}


def stating(table: HudiTable, stated: Mapping[str, str | None]) -> None:
    file = Path(table.path) / ".hoodie/hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if line.split("=")[0] not in stated]
    file.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in stated.items() if value is not None)]))


def opened(table: HudiTable, **more: str) -> HudiTable:
    settings = {"hudi_assets.data.latency": "1h", "hudi_assets.query.grace": "0s", "hudi_assets.writers": "stopped"}
    return HudiTable.open(table.path, settings={**settings, **more})


def made(session: LocalSession, path: Path, version: int) -> HudiTable:
    """Two slices of a base file and two log files each: event times of 1, 2 and 5 hours, in this order."""
    table = HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        event_time_field="ts",
        partition_fields=["p"],
        buckets=1,
        table_version=version,
    )
    table = opened(table)
    table.upsert(session, rows(session, 0))
    first = table.plan_compaction(threshold=10)
    assert isinstance(first, Plan)
    table.execute_compaction(session, first.instant)
    for hours in (2, 1, 5):
        table.upsert(session, rows(session, hours))
    return table


def rows(session: LocalSession, hours: int) -> Frame:
    return session.rows([{"id": k, "ts": hours * HOUR + n, "p": k, "n": n} for n, k in enumerate("ab")], SCHEMA)


def files(table: HudiTable) -> list[str]:
    return sorted(str(file) for file in Path(table.path).rglob("*") if ".aux" not in file.parts)


def every_look(table: HudiTable) -> None:
    """Each answers; the freshness is that of the oldest record in a log file."""
    before = files(table)
    assert table.freshness().freshness == HOUR - 1
    stats = table.stats()
    assert (stats.remaining_log_files, stats.min_event_time) == (6, HOUR)
    assert table.validate() == ()
    looks: list[Callable[[], object]] = [
        table.profile,
        table.metrics,
        table.log_bars,
        table.carried_over,
        table.leftovers,
        table.past_freshness,
        table.past_compactions,
        table.lateness,
        table.observed_latency,
        table.cost_curve,
        table.savepoints,
        table.view_digest,
        table.event_time_unit,
        lambda: table.late_records(2 * HOUR),
        lambda: list(table.log_event_times()),
    ]
    for look in looks:
        look()
    assert files(table) == before


def refused(table: HudiTable, session: LocalSession, words: str) -> None:
    """Our merge, our writer and our queries of log files, by name; nothing is written."""
    before = files(table)
    calls: list[Callable[[], object]] = [
        table.plan_compaction,
        lambda: table.snapshot(session),
        lambda: table.incremental(session, "000"),
        lambda: table.time_travel(session, "20990101000000000"),
        lambda: table.upsert(session, rows(session, 6)),
        lambda: table.delete(session, rows(session, 6)),
        lambda: table.bulk_insert(session, rows(session, 6)),
    ]
    for call in calls:
        with pytest.raises(UnsupportedTable, match=words):
            call()
    assert files(table) == before


@pytest.mark.parametrize("name", RULES)
def test_rules_that_are_not_known(name: str, session: LocalSession, tmp_path: Path) -> None:
    version, stated, words = RULES[name]
    stating(made(session, tmp_path / "t", version), stated)
    table = opened(made_at(tmp_path))
    every_look(table)
    refused(table, session, words)
    due = table.look().due
    assert isinstance(due, NoPlan)
    assert table.look().refused == due.reason
    assert ("its plans take whole file slices, and Apache Hudi executes them" in due.reason) == (RULES[name][0] == 6)
    assert words in due.reason
    assert "hudi_assets.executor=hudi" in due.reason
    assert table.read_optimized(session).count() == 2
    assert len(table.publication().groups) == 1
    shown = table.due_compaction()
    assert isinstance(shown, Plan)
    with pytest.raises(UnsupportedTable, match=r"hudi_assets\.executor=hudi"):
        table.refuse_execution(shown)
    by_hudi = opened(made_at(tmp_path), **HUDI)
    assert isinstance(by_hudi.look().due, Plan)
    assert by_hudi.look().refused is None
    plan = by_hudi.plan_compaction()
    assert isinstance(plan, Plan)
    assert RULES[name][0] != 6 or not any(op.carried_over for op in plan.operations)  # as the hint says
    assert by_hudi.pending_plan() == plan
    before = files(table)
    with pytest.raises(UnsupportedTable, match=words):
        table.execute_compaction(session, plan.instant)
    assert files(table) == before


def made_at(tmp_path: Path) -> HudiTable:
    return HudiTable.open(str(tmp_path / "t"))


@pytest.mark.parametrize("name", FILES)
def test_files_of_another_kind_are_looked_at_alone(name: str, session: LocalSession, tmp_path: Path) -> None:
    version, stated, words = FILES[name]
    stating(made(session, tmp_path / "t", version), stated)
    for more in ({}, HUDI):
        table = opened(made_at(tmp_path), **more)
        every_look(table)
        refused(table, session, words)
        views = (lambda: table.read_optimized(session), table.publication, table.read_optimized_groups)  # noqa: B023
        for call in (*views, table.clean, table.archive, table.savepoint):
            with pytest.raises(UnsupportedTable, match=words):
                call()
        due = table.look().due
        assert isinstance(due, NoPlan)
        assert "hudi_assets.executor=hudi" not in due.reason


@pytest.mark.parametrize(
    "name",
    [
        "partial updates",
        "custom mode",
        "properties of the merger",  # with event-time ordering: a row may be a delete
        "custom payload",
        # Hudi's execution carries nothing over.
        "several ordering fields of version 6",
    ],
)
def test_a_plan_takes_whole_slices_where_the_order_of_records_is_not_known(
    name: str, session: LocalSession, tmp_path: Path
) -> None:
    version, stated, _ = RULES[name]
    stating(made(session, tmp_path / "t", version), stated)
    plan = opened(made_at(tmp_path), **HUDI).plan_compaction(threshold=2 * HOUR + 10)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [3] * 2
    assert not any(op.carried_over for op in plan.operations)


def test_files_of_change_data_are_cleaned_with_their_slice(session: LocalSession, tmp_path: Path) -> None:
    """Hudi's writers and compactions leave them beside the base file that they write."""
    table = made(session, tmp_path / "t", 9)
    stating(table, {"hoodie.table.cdc.enabled": "true"})
    old, new = [beside(base.path) for base in table.state().view.base_files], []
    for path in old:
        Path(table.path, path).write_bytes(b"changes")
    plan = opened(table).plan_compaction()
    assert isinstance(plan, Plan)
    opened(table).execute_compaction(session, plan.instant)
    for base in opened(table).state().view.base_files:
        new.append(beside(base.path))
        Path(table.path, new[-1]).write_bytes(b"changes")
    assert opened(table).validate() == ()
    cleaned = opened(table).clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert isinstance(cleaned, CleanResult)
    assert set(old) <= set(cleaned.deleted)
    assert [Path(table.path, path).exists() for path in (*old, *new)] == [False, False, True, True]
    assert opened(table).validate() == ()


def beside(base_file: str) -> str:
    """The name of a file of change data beside a base file."""
    folder, _, name = base_file.rpartition("/")
    file_id, _, instant = name.removesuffix(".parquet").split("_")
    return f"{folder}/.{file_id}_{instant}.log.1_0-1-2.cdc"


def test_hudi_is_not_given_plans_of_version_6_that_we_merge(session: LocalSession, tmp_path: Path) -> None:
    """Such a plan may carry log files over, which Hudi's commit does not list."""
    table = made(session, tmp_path / "t", 6)
    with pytest.raises(UnsupportedTable, match="table version 6"):
        opened(table, **HUDI).plan_compaction()


# What a table states, of which versions, and why our writer refuses it.
NOT_WRITTEN: Mapping[str, tuple[Mapping[str, str | None], tuple[int, ...], str]] = {
    "generated keys": ({"hoodie.table.recordkey.fields": None}, (6, 9), "names no record key"),
    "change data": ({"hoodie.table.cdc.enabled": "true"}, (6, 9), "keeps change data"),
    "delete marker": ({f"{_MERGER}field": "p", f"{_MERGER}marker": "a"}, (8, 9), "A row whose p is 'a' is a delete"),
}


@pytest.mark.parametrize(
    ("name", "version"), [(name, version) for name, (_, of, _) in NOT_WRITTEN.items() for version in of]
)
def test_merged_and_not_written(name: str, version: int, session: LocalSession, tmp_path: Path) -> None:
    stated, _, words = NOT_WRITTEN[name]
    table = made(session, tmp_path / "t", version)
    before = table.snapshot(session).toArrow().sort_by("id")
    stating(table, stated)
    table = opened(made_at(tmp_path))
    every_look(table)
    deletes = () if name == "delete marker" else (table.delete,)  # a delete is one, whatever marks it
    for write in (table.upsert, table.bulk_insert, *deletes):
        with pytest.raises(UnsupportedTable, match=words):
            write(session, rows(session, 6))
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    table.execute_compaction(session, plan.instant)
    after = table.snapshot(session).toArrow().sort_by("id")
    assert after.drop_columns(["_hoodie_file_name"]) == before.drop_columns(["_hoodie_file_name"])


def other_writers_block(
    table: HudiTable,
    header: Mapping[int, str],
    columns: list[str] | None = None,
    folder: str = "p=a",
    changed: Mapping[str, int | str | None] | None = None,
    alone: bool = False,
) -> Path:
    """A block of another writer behind the newest log file's: its header says nothing of event times.

    `alone`: what was there is of no commit.
    """
    log = max(Path(table.path, folder).glob(".*.log.*"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    block = read_blocks(log.read_bytes())[0]
    content = bytes(block.content)
    if columns is not None or changed:
        kept = parquet_of(content)
        kept = kept.select(columns or kept.schema.names)
        for name, value in (changed or {}).items():
            at = kept.schema.get_field_index(name)
            kept = kept.set_column(at, kept.schema.field(at), pa.array([value] * len(kept), kept.schema.field(at).type))
        content = parquet_bytes(kept)
    written = {**block.header, HeaderKey.SCHEMA: avro_of(parquet_of(content)), **header}
    before = log.read_bytes()
    if alone:
        other = {**block.header, HeaderKey.INSTANT_TIME: "20990101000000000"}
        before = encode_block(block.type, other, bytes(block.content))
    log.write_bytes(before + encode_block(block.type, written, content))
    return log


def parquet_of(content: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(content))


def parquet_bytes(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def avro_of(table: pa.Table) -> str:
    return arrow_to_avro_schema(table.schema, "t", "t")


PARTIAL: Mapping[int, str] = {HeaderKey.IS_PARTIAL: "true"}
COMPACTED: Mapping[int, str] = {HeaderKey.COMPACTED_BLOCK_TIMES: "20250101000000000"}


def test_a_partial_update_with_its_event_time_counts_by_it(session: LocalSession, tmp_path: Path) -> None:
    table = opened(made(session, tmp_path / "t", 9))
    other_writers_block(table, PARTIAL)
    assert table.freshness().freshness == HOUR - 1


def test_log_compactions_are_not_merged_here(session: LocalSession, tmp_path: Path) -> None:
    table = opened(made(session, tmp_path / "t", 9))
    log = other_writers_block(table, COMPACTED)
    assert table.freshness().freshness == HOUR - 1
    plan = table.due_compaction()
    assert isinstance(plan, Plan)
    with pytest.raises(UnsupportedTable, match="log compaction") as refusal:
        table.plan_compaction()
    assert log.name in (refusal.value.where or "")
    assert "hudi_assets.executor=hudi" in str(refusal.value)
    assert not table.pending_plan()
    assert isinstance(opened(table, **HUDI).plan_compaction(), Plan)


def test_nobody_is_sent_to_hudi_where_hudi_is_not_given_the_plan(session: LocalSession, tmp_path: Path) -> None:
    table = opened(made(session, tmp_path / "t", 6))
    other_writers_block(table, COMPACTED)
    with pytest.raises(UnsupportedTable, match="log compaction") as refusal:
        table.plan_compaction()
    assert "Let the engine that wrote it compact it" in str(refusal.value)
    assert "hudi_assets.executor" not in str(refusal.value)
    with pytest.raises(UnsupportedTable, match="table version 6"):
        opened(table, **HUDI).plan_compaction()


def test_partial_updates_are_not_merged_as_hudi_0_x_merges(session: LocalSession, tmp_path: Path) -> None:
    """Nor where a merge leaves deletes to a log file of their own. Version 6 has both."""
    table = made(session, tmp_path / "t", 6)
    other_writers_block(table, PARTIAL)
    for more in ({"hudi_assets.merge.rules": "0.x"}, {"hudi_assets.table.services": "ours"}):
        stating(table, more)
        with pytest.raises(UnsupportedTable, match="partial updates"):
            opened(table).plan_compaction()
        stating(table, dict.fromkeys(more))


@pytest.mark.parametrize("key", [HeaderKey.IS_PARTIAL, HeaderKey.COMPACTED_BLOCK_TIMES])
def test_a_slice_with_other_blocks_is_taken_whole(key: HeaderKey, session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", 9)
    for folder in ("p=a", "p=b"):
        other_writers_block(table, {key: "true"}, folder=folder)
    for _ in range(2):  # the second time from what was kept beside the table
        plan = opened(table).plan_compaction(threshold=2 * HOUR + 10, dry_run=True)
        assert isinstance(plan, Plan)
        assert [len(op.log_files) for op in plan.operations] == [3, 3]


@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_partial_updates_are_merged(mode: str, session: LocalSession, tmp_path: Path) -> None:
    """The newest log file updates key and ordering value, and the other columns stay."""
    table = made(session, tmp_path / "t", 9)
    stating(table, {"hoodie.record.merge.mode": mode, "hoodie.record.merge.strategy.id": None})
    columns = ["_hoodie_commit_time", "_hoodie_record_key", "ts"]
    log = other_writers_block(table, PARTIAL, columns, changed={"ts": 9 * HOUR}, alone=True)
    expected = {"id": "a", "ts": 9 * HOUR, "p": "a", "n": 0}
    instant = read_blocks(log.read_bytes())[-1].instant_time
    before = table.state().timeline.completed(Action.DELTA_COMMIT)[-2].completion or ""

    def shown(rows: Frame) -> list[dict[str, object]]:
        found = rows.toArrow().select(SCHEMA.names).to_pylist()
        return [row for row in found if row["id"] == "a"]

    def answers(table: HudiTable) -> list[list[dict[str, object]]]:
        return [
            shown(table.snapshot(session)),
            shown(table.snapshot(session, columns=["id", "ts", "p", "n"])),
            shown(table.time_travel(session, instant)),
            shown(table.incremental(session, "000")),
            shown(table.incremental(session, before)),  # the rows that fill it lie before this range
        ]

    assert answers(opened(table)) == [[expected]] * 5
    plan = opened(table).plan_compaction()
    assert isinstance(plan, Plan)
    opened(table).execute_compaction(session, plan.instant)
    assert answers(opened(table)) == [[expected]] * 5
    assert shown(opened(table).read_optimized(session)) == [expected]


def test_a_partial_update_without_its_ordering_value_is_not_merged_here(session: LocalSession, tmp_path: Path) -> None:
    """Nothing is published that could not be executed. The file is no damaged one."""
    table = opened(made(session, tmp_path / "t", 9))
    log = other_writers_block(table, PARTIAL, ["_hoodie_commit_time", "_hoodie_record_key", "n"])
    calls: list[Callable[[], object]] = [table.plan_compaction, lambda: table.snapshot(session).toArrow()]
    for call in calls:
        with pytest.raises(UnsupportedTable, match="lacks the ordering field ts") as refusal:
            call()
        assert log.name in (refusal.value.where or "")
        assert "hudi_assets.executor=hudi" in str(refusal.value)
    assert not table.pending_plan()
    assert isinstance(opened(table, **HUDI).plan_compaction(), Plan)


def test_partial_updates_with_several_ordering_fields_are_not_merged_here(
    session: LocalSession, tmp_path: Path
) -> None:
    """SQL of 1.2.0 makes no such table."""
    table = made(session, tmp_path / "t", 9)
    stating(table, {"hoodie.table.ordering.fields": "ts,n"})
    other_writers_block(table, PARTIAL, ["_hoodie_commit_time", "_hoodie_record_key", "ts", "n"])
    for call in (opened(table).plan_compaction, lambda: opened(table).snapshot(session).toArrow()):
        with pytest.raises(UnsupportedTable, match="Partial updates of a table with several ordering fields"):
            call()
    assert isinstance(opened(table, **HUDI).plan_compaction(), Plan)


COMMIT_TIME: Mapping[str, str | None] = {
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.record.merge.strategy.id": None,
}


def test_no_commit_bounds_a_partial_update_without_the_event_time_column(session: LocalSession, tmp_path: Path) -> None:
    """The row that it changes keeps its event time, and the read-optimized view shows it as it was."""
    table = made(session, tmp_path / "t", 9)
    stating(table, COMMIT_TIME)
    other_writers_block(table, PARTIAL, ["_hoodie_commit_time", "_hoodie_record_key", "n"], changed={"n": 777})
    for _ in range(2):  # the second time from what was kept beside the table
        promise = opened(table).freshness()
        assert (promise.freshness, promise.bounds) == (None, ())
        assert "without the column ts" in (promise.reason or "")
        assert "until it is compacted" in (promise.reason or "")
    plan = opened(table).plan_compaction(threshold=1)
    assert isinstance(plan, Plan)
    assert [(op.partition, len(op.log_files)) for op in plan.operations] == [("p=a", 3)]
    opened(table).execute_compaction(session, plan.instant)
    assert opened(table).freshness().freshness == HOUR  # of p=b, of which a file of 1 hour and 1 ms remains
    shown = opened(table).read_optimized(session).toArrow().select(["id", "n"]).to_pylist()
    assert {"id": "a", "n": 777} in shown


def test_its_commit_bounds_a_partial_update_whose_event_time_is_null(session: LocalSession, tmp_path: Path) -> None:
    table = made(session, tmp_path / "t", 9)
    stating(table, COMMIT_TIME)
    other_writers_block(table, PARTIAL, ["_hoodie_commit_time", "_hoodie_record_key", "ts"], changed={"ts": None})
    promise = opened(table).freshness()
    assert promise.freshness == HOUR - 1
    assert [bound.log_files for bound in promise.bounds] == [1]
    # Without a latency nobody knows when such a record happened.
    unknown = HudiTable.open(table.path).freshness()
    assert unknown.freshness is None
    assert "without event time" in (unknown.reason or "")


NULL_MAY_KEEP = (
    "partial payload of version 6",
    "custom payload",
    "custom merger",
    "partial updates",
    "no marker",
    "partial updates of version 8",
    "partial updates by several ordering fields",
    "custom mode",
    "an ordering field that is no column",
)


@pytest.mark.parametrize("name", RULES)
def test_no_commit_bounds_a_null_that_may_leave_the_event_time_as_it_is(
    name: str, session: LocalSession, tmp_path: Path
) -> None:
    version, stated, _ = RULES[name]
    table = made(session, tmp_path / "t", version)
    other_writers_block(table, {}, changed={"ts": None})
    stating(table, stated)
    promise = opened(table).freshness()
    if name in NULL_MAY_KEEP:
        assert (promise.freshness, promise.bounds) == (None, ())
        assert "a null may leave the event time" in (promise.reason or "")
    else:
        assert promise.freshness == HOUR - 1
        assert [bound.log_files for bound in promise.bounds] == [1]


@pytest.mark.parametrize("damage", ["a text that is no time", "a damaged block"])
def test_unknown_event_times_hide_nothing_else_of_a_log_file(
    damage: str, session: LocalSession, tmp_path: Path
) -> None:
    """Its slice is taken whole all the same, and what is not merged is refused before a plan is published."""
    schema = pa.schema([*SCHEMA, ("when", pa.string())])
    table = HudiTable.create(
        str(tmp_path / "t"),
        schema,
        record_key=["id"],
        ordering_field="ts",
        event_time_field="when",
        partition_fields=["p"],
        buckets=1,
        table_version=9,
    )
    for hour in (2, 1, 5):
        row = {"id": "a", "ts": hour, "p": "a", "n": 0, "when": f"2025-01-01T0{hour}:00:00Z"}
        opened(table).upsert(session, session.rows([row], schema))
    log = min(Path(table.path, "p=a").glob(".*.log.*"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    block = read_blocks(log.read_bytes())[0]
    header = {**block.header, HeaderKey.SCHEMA: avro_of(parquet_of(bytes(block.content)))}
    rows = parquet_of(bytes(block.content))
    at = rows.schema.get_field_index("when")
    wrong = parquet_bytes(rows.set_column(at, rows.schema.field(at), pa.array(["unknown"])))
    first = encode_block(block.type, header, wrong)
    if damage == "a damaged block":
        first = first[:20] + bytes([0, 0, 0, 77]) + first[24:]
    target = {HeaderKey.TARGET_INSTANT_TIME: "1", HeaderKey.COMMAND_BLOCK_TYPE: "0"}
    rollback = encode_block(BlockType.COMMAND, {HeaderKey.INSTANT_TIME: block.instant_time, **target}, b"")
    partial = encode_block(block.type, {**header, **PARTIAL}, parquet_bytes(rows))
    compacted = encode_block(block.type, {**header, **COMPACTED}, parquet_bytes(rows))
    log.write_bytes(first + rollback + partial + compacted)
    path = str(log.relative_to(table.path))
    summary = TableTimes(opened(table).state()).ranges[path]
    assert (summary.min_event_time, summary.deletes, summary.rollbacks, summary.partial) == (None, None, 1, True)
    assert "log compaction" in (summary.not_merged or "")
    assert ("ISO-8601" if damage == "a text that is no time" else "damaged") in (summary.reason or "")
    with pytest.raises(UnsupportedTable, match="log compaction"):
        opened(table).plan_compaction()
    assert not opened(table).pending_plan()


@pytest.mark.parametrize(
    ("version", "ordering", "bounded"), [(6, "ts,n", False), (9, "nobody", False), (9, "ts,n", True), (9, "ts", True)]
)
def test_a_delete_with_several_ordering_values_has_an_event_time(
    version: int, ordering: str, bounded: bool, session: LocalSession, tmp_path: Path
) -> None:
    """The owner's word that deletes without one count at their commit does not bound it, where it is not read."""
    table = made(session, tmp_path / "t", version)
    keys = session.rows([{"id": "a", "p": "a"}], pa.schema([("id", pa.string()), ("p", pa.string())]))
    opened(table).delete(session, keys)
    mode = {"hoodie.record.merge.mode": "CUSTOM"} if ordering == "nobody" else {}
    fields = {"hoodie.table.ordering.fields": None if ordering == "nobody" else ordering}
    stating(table, {"hoodie.table.precombine.field": None, **fields, **mode})
    word = {"hudi_assets.deletes.event.time": "commit"}
    promise = HudiTable.open(table.path, settings=word).freshness()
    assert (promise.min_event_time is not None) == bounded
    assert opened(table, **word).freshness().freshness == HOUR - 1


@pytest.mark.parametrize("version", [6, 9])
def test_a_query_of_a_block_that_is_not_read_says_who_can(version: int, session: LocalSession, tmp_path: Path) -> None:
    """The settings say nothing, and so on version 6 Hudi is given no plan of such a table."""
    table = made(session, tmp_path / "t", version)
    other_writers_block(table, COMPACTED)
    words = r"On versions 8 and 9 .*hudi_assets\.executor=hudi.* On version 6 let the engine that wrote it compact it"
    with pytest.raises(UnsupportedTable, match=words):
        opened(table).snapshot(session).count()
    by_hudi = opened(table, **HUDI)
    if version == 6:
        with pytest.raises(UnsupportedTable, match="does not execute this project's plans on table version 6"):
            by_hudi.plan_compaction()
    else:
        assert isinstance(by_hudi.plan_compaction(), Plan)


@pytest.mark.parametrize("partial", [False, True])
def test_a_block_that_is_not_read_is_bounded_by_its_commit(
    partial: bool, session: LocalSession, tmp_path: Path
) -> None:
    """But not where it holds partial updates, which may lack the event-time column."""
    table = made(session, tmp_path / "t", 9)
    log = max(Path(table.path, "p=a").glob(".*.log.*"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    block = read_blocks(log.read_bytes())[0]
    header = {**block.header, HeaderKey.SCHEMA: avro_of(parquet_of(bytes(block.content)))}
    header |= PARTIAL if partial else {}
    log.write_bytes(log.read_bytes() + encode_block(BlockType.HFILE_DATA, header, b"not read"))
    promise = opened(table).freshness()
    expected = (None, []) if partial else (HOUR - 1, [1])
    assert (promise.freshness, [bound.log_files for bound in promise.bounds]) == expected
    unknown = HudiTable.open(table.path).freshness()
    assert unknown.freshness is None
    assert "HFILE_DATA" in (unknown.reason or "")
    with pytest.raises(UnsupportedTable, match="HFILE_DATA"):
        opened(table).plan_compaction()


def test_what_is_not_merged_is_kept_beside_the_table(session: LocalSession, tmp_path: Path) -> None:
    """The second look reads no log file, and says the same."""
    table = made(session, tmp_path / "t", 9)
    other_writers_block(table, COMPACTED)
    for _ in range(2):
        with pytest.raises(UnsupportedTable, match="log compaction"):
            opened(table).plan_compaction()


def test_a_summary_comes_back_as_it_was_kept() -> None:
    plain = LogSummary(1, 2, 0)
    other = LogSummary(None, None, None, reason="r", undated=Undated(Since("1"), None), not_merged="why")
    partial = LogSummary(1, 2, 0, partial=True)
    assert [from_json(to_json(one)) for one in (plain, other, partial)] == [plain, other, partial]
    assert len(to_json(plain)) == 8, "earlier versions of this project read the same cache"
    with pytest.raises(ValueError, match="too many"):
        from_json([*to_json(LogSummary(1, 2, 0, nulls=True)), None])


def test_an_exact_split_of_such_a_table_is_refused(session: LocalSession, tmp_path: Path) -> None:
    stating(made(session, tmp_path / "t", 6), RULES["custom payload"][1])
    given = {"hudi_assets.exact.split": "true", "hudi_assets.table.services": "ours"}
    with pytest.raises(InvalidInput, match=str(MergeMode.EVENT_TIME_ORDERING)):
        opened(made_at(tmp_path), **given).plan_compaction()
