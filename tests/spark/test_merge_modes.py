"""Tables of each merge mode, made and compacted by the engine; what is no mode is refused before anything is made."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import Frame, HudiTable, Session
from hudi_assets.engine.errors import HudiAssetsError, InvalidInput, UnsupportedTable
from hudi_assets.engine.model import MergeMode, Plan
from hudi_assets.engine.table.settings.java_properties import dump_properties
from hudi_assets.engine.table.settings.merging import COMMIT_TIME_MERGER_ID, EVENT_TIME_MERGER_ID
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, planned

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)
Row = tuple[str, int, str]


def make(path: Path, mode: str, **options: object) -> HudiTable:
    arguments: dict[str, object] = {"record_key": ["id"], "buckets": 1, "clock": "commit", "data_latency": "1s"}
    if mode != "COMMIT_TIME_ORDERING":
        arguments["ordering_field"] = "ts"
    arguments |= {"event_time_field": "ts", "merge_mode": mode, **options}
    return HudiTable.create(str(path), SCHEMA, **arguments)  # type: ignore[arg-type]


def upsert(
    table: HudiTable, session: LocalSession, *rows: Row | tuple[str, int, str, bool], clock: int = 100_000
) -> None:
    values = [dict(zip(SCHEMA.names, (*row, None)[:4], strict=True)) for row in rows]
    table.upsert(session, session.rows(values, SCHEMA), clock_time=at(clock))


def delete(table: HudiTable, session: LocalSession, *keys: tuple[str, int | None], clock: int = 100_000) -> None:
    with_ts = any(ts is not None for _, ts in keys)
    frame = pa.table({"id": [k for k, _ in keys], **({"ts": [t for _, t in keys]} if with_ts else {})})
    table.delete(session, session.frame(frame), clock_time=at(clock))


def snapshot(table: HudiTable, session: LocalSession) -> set[Row]:
    return shown(table.snapshot(session).toArrow())


def read_optimized(table: HudiTable, session: LocalSession) -> set[Row]:
    return shown(table.read_optimized(session).toArrow())


def shown(rows: pa.Table) -> set[Row]:
    assert len(rows) == len(set(rows["id"].to_pylist())), "a key came twice"
    return {(r["id"], r["ts"], r["v"]) for r in rows.to_pylist()}


ANSWERS = {
    "EVENT_TIME_ORDERING": {("a", 20, "2"), ("b", 10, "1"), ("c", 10, "1"), ("g", 10, "1"), ("h", 20, "3")},
    "COMMIT_TIME_ORDERING": {
        ("a", 15, "3"), ("b", 5, "2"), ("c", 3, "3"), ("e", 15, "3"), ("g", 5, "4"), ("h", 20, "3"),
    },
    "OVERWRITE_WITH_LATEST": {
        ("a", 20, "2"), ("b", 5, "2"), ("c", 5, "2"), ("e", 15, "3"), ("g", 5, "4"), ("h", 20, "3"),
    },
}  # fmt: skip


def compact(table: HudiTable, session: Session[Frame], threshold: int) -> Plan:
    """The plan that was executed."""
    plan = planned(table, threshold)
    table.execute_compaction(session, plan.instant)
    return plan


@pytest.mark.parametrize("mode", list(ANSWERS))
@pytest.mark.parametrize("log_block_format", ["parquet", "avro"])
def test_a_table_of_each_mode(session: LocalSession, tmp_path: Path, mode: str, log_block_format: str) -> None:
    table = make(tmp_path / "t", mode, log_block_format=log_block_format)
    upsert(table, session, *[(key, 10, "1") for key in "abcdegh"])
    assert compact(table, session, 10).operations
    upsert(table, session, ("a", 20, "2"), ("b", 5, "2"), ("c", 5, "2"), ("h", 20, "2"))
    delete(table, session, ("d", 15), ("e", 20))
    upsert(table, session, ("a", 15, "3"), ("c", 3, "3"), ("e", 15, "3"), ("h", 20, "3"))
    delete(table, session, ("g", None))
    upsert(table, session, ("g", 5, "4"))
    assert snapshot(table, session) == ANSWERS[mode]
    compact(table, session, 20)
    assert snapshot(table, session) == read_optimized(table, session) == ANSWERS[mode]
    assert HudiTable.open(str(tmp_path / "t")).config.merging.mode is MergeMode(mode)


@pytest.mark.parametrize(
    ("mode", "winner"),
    [
        ("EVENT_TIME_ORDERING", ("a", 9, "first")),
        ("OVERWRITE_WITH_LATEST", ("a", 9, "first")),
        ("COMMIT_TIME_ORDERING", ("a", 3, "last")),
    ],
)
def test_rows_of_a_key_in_one_batch(session: LocalSession, tmp_path: Path, mode: str, winner: Row) -> None:
    table = make(tmp_path / "t", mode)
    # The watermark lies between them, so they would go to log files of their own.
    upsert(table, session, ("a", 9, "first"), ("a", 3, "last"), ("b", 9, "b"), clock=1_005)
    assert snapshot(table, session) == {winner, ("b", 9, "b")}
    # Whichever row counts, the other one came too: nothing is promised before both are in a base file.
    assert table.stats().min_event_time == 3
    compact(table, session, 3 if mode == "COMMIT_TIME_ORDERING" else 5)
    assert snapshot(table, session) == {winner, ("b", 9, "b")}


def test_a_row_that_a_later_one_of_its_batch_replaced_counts(session: LocalSession, tmp_path: Path) -> None:
    """With commit-time ordering the row at 3 is in no file, and the promise is about it too."""
    table = make(tmp_path / "t", "COMMIT_TIME_ORDERING")
    upsert(table, session, ("a", 3, "first"), ("a", 9, "last"))
    assert table.stats().min_event_time == 3
    compact(table, session, 3)
    assert read_optimized(table, session) == {("a", 9, "last")}


@pytest.mark.parametrize("mode", list(ANSWERS))
def test_a_partial_compaction_changes_no_answer(session: LocalSession, tmp_path: Path, mode: str) -> None:
    table = make(tmp_path / "t", mode)
    upsert(table, session, ("a", 1, "1"), ("b", 2, "1"))
    upsert(table, session, ("a", 2, "2"), ("c", 2, "2"))
    upsert(table, session, ("b", 2, "3"), ("c", 6, "3"))
    upsert(table, session, ("a", 9, "4"), ("d", 7, "4"))
    before = snapshot(table, session)
    plan = compact(table, session, 2)
    assert len(plan.operations[0].carried_over) == 1
    assert snapshot(table, session) == before
    assert read_optimized(table, session) == {("a", 2, "2"), ("b", 2, "3"), ("c", 6, "3")}
    compact(table, session, 9)
    assert snapshot(table, session) == before


def test_a_late_row_makes_the_overwriting_mode_take_the_whole_slice(session: LocalSession, tmp_path: Path) -> None:
    """Merged before it, the newer row would be a base row, and the late one would overwrite that."""
    table = make(tmp_path / "t", "OVERWRITE_WITH_LATEST")
    upsert(table, session, ("a", 5, "1"), ("b", 1, "1"))
    upsert(table, session, ("a", 3, "2"))
    before = snapshot(table, session)
    assert ("a", 5, "1") in before
    plan = compact(table, session, 1)
    assert plan.operations[0].carried_over == ()
    assert snapshot(table, session) == before


@pytest.mark.spark
def test_a_commit_time_table_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", "COMMIT_TIME_ORDERING")
    for rows in ([("a", 1, "1", None), ("b", 2, "1", None)], [("a", 9, "2", None)], [("a", 4, "3", None)]):
        frame = spark.createDataFrame(rows, "id string, ts long, v string, _hoodie_is_deleted boolean")
        table.upsert(spark, frame, clock_time=at(100_000))
    table.delete(spark, spark.createDataFrame([("b",)], "id string"), clock_time=at(100_000))
    assert shown(table.snapshot(spark).toArrow()) == {("a", 4, "3")}
    compact(table, spark, 9)
    # The delete has no event time: by the latency it happened at 99 s or later.
    assert shown(table.read_optimized(spark).toArrow()) == {("a", 4, "3"), ("b", 2, "1")}
    compact(table, spark, 99_000)
    assert shown(table.read_optimized(spark).toArrow()) == {("a", 4, "3")}


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"merge_mode": "NEWEST"}, "no merge mode 'NEWEST'"),
        ({"merge_mode": "COMMIT_TIME_ORDERING", "ordering_field": "ts"}, "takes no ordering field"),
        ({"merge_mode": "OVERWRITE_WITH_LATEST", "ordering_field": None}, "needs an ordering field"),
        ({"merge_mode": "COMMIT_TIME_ORDERING", "ordering_field": None, "event_time_field": None}, "event_time_field"),
    ],
)
def test_modes_that_make_no_table(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(tmp_path / "t", "EVENT_TIME_ORDERING", **options)
    assert not (tmp_path / "t").exists()


MODEL = "org.apache.hudi.common.model."
EVENT_TIME = {"hoodie.compaction.payload.class": f"{MODEL}DefaultHoodieRecordPayload"}
OVERWRITE = {"hoodie.compaction.payload.class": f"{MODEL}OverwriteWithLatestAvroPayload"}
NO_FIELD = {"hoodie.table.precombine.field": ""}


def amended(path: Path, properties: dict[str, str]) -> HudiTable:
    """A table whose hoodie.properties state something else, as another writer would have made it."""
    make(path, "EVENT_TIME_ORDERING")
    file = path / ".hoodie/hoodie.properties"
    file.write_bytes(dump_properties({**javaproperties.loads(file.read_text("latin-1")), **properties}))
    return HudiTable.open(str(path))


@pytest.mark.parametrize(
    ("properties", "mode", "ordering"),
    [
        (EVENT_TIME, "EVENT_TIME_ORDERING", "ts"),
        ({"hoodie.compaction.payload.class": f"{MODEL}EventTimeAvroPayload"}, "EVENT_TIME_ORDERING", "ts"),
        ({**EVENT_TIME, **NO_FIELD, "hoodie.table.ordering.fields": "ts"}, "EVENT_TIME_ORDERING", "ts"),
        (OVERWRITE, "OVERWRITE_WITH_LATEST", "ts"),
        ({**OVERWRITE, **NO_FIELD}, "COMMIT_TIME_ORDERING", ""),
        # As Hudi 1.2.0 writes a table of version 6: 0.15.0 sees no ordering field in it.
        ({**OVERWRITE, **NO_FIELD, "hoodie.table.ordering.fields": "ts"}, "COMMIT_TIME_ORDERING", ""),
        ({**OVERWRITE, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "COMMIT_TIME_ORDERING", ""),
        ({**OVERWRITE, "hoodie.record.merge.strategy.id": COMMIT_TIME_MERGER_ID}, "COMMIT_TIME_ORDERING", ""),
        (
            {**OVERWRITE, "hoodie.compaction.record.merger.strategy": EVENT_TIME_MERGER_ID},
            "OVERWRITE_WITH_LATEST",
            "ts",
        ),
    ],
)
def test_the_payload_class_decides(tmp_path: Path, properties: dict[str, str], mode: str, ordering: str) -> None:
    config = amended(tmp_path / "t", properties).config
    assert (config.merging.mode, config.ordering_field) == (MergeMode(mode), ordering)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"hoodie.compaction.payload.class": "org.acme.Payload"}, "org.acme.Payload"),
        ({"hoodie.compaction.payload.class": ""}, "unstated payload class"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "contradicts the payload class"),
        ({**OVERWRITE, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, "contradicts the payload class"),
        ({**OVERWRITE, "hoodie.record.merge.mode": "CUSTOM"}, "CUSTOM"),
        ({"hoodie.record.merge.strategy.id": "00000000-1111-2222-3333-444444444444"}, "00000000-1111"),
        (NO_FIELD, "no hoodie.table.precombine.field"),
        ({"hoodie.table.precombine.field": "ts,id"}, "several ordering fields"),
        ({"hoodie.payload.delete.field": "op"}, "hoodie.payload.delete.field"),
        ({"hoodie.payload.delete.marker": "D"}, "hoodie.payload.delete.marker"),
        ({"hoodie.record.merge.property.hoodie.payload.delete.marker": "D"}, "property"),
        ({"hoodie.table.partial.update.mode": "KEEP_VALUES"}, "partial updates"),
        ({"hoodie.bootstrap.base.path": "/elsewhere"}, "bootstrapped"),
        ({"hoodie.allow.operation.metadata.field": "true"}, "_hoodie_operation"),
        ({"hoodie.table.base.file.format": "ORC"}, "not Parquet"),
        ({"hoodie.table.base.file.format": "HFILE"}, "not Parquet"),
        ({"hoodie.populate.meta.fields": "false"}, "no Hudi meta columns"),
        ({"hudi_assets.table.services": "theirs"}, "hudi_assets.table.services"),
        ({"hudi_assets.exact.split": "yes"}, "hudi_assets.exact.split"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(tmp_path: Path, properties: dict[str, str], words: str) -> None:
    with pytest.raises(HudiAssetsError, match=words) as caught:
        amended(tmp_path / "t", properties).config.refuse_merge("a table")
    assert isinstance(caught.value, InvalidInput if words.startswith("hudi_assets.") else UnsupportedTable)
