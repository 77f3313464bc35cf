"""Merge modes, residue logs and the exact split beside Apache Hudi and hudi-rs.

The engine runs in this process without Spark; what it writes is read by unmodified readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, MergeMode, Plan
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.readers import History, same_incremental, same_time_travel
from tests.interop.tables import copy_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)
MODEL = "org.apache.hudi.common.model."
OVERWRITE = f"{MODEL}OverwriteWithLatestAvroPayload"
SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.index.type": "BUCKET",  # one file group alone does not tell it
}
OURS = {"hudi_assets.table.services": "ours"}
EXACT = {**OURS, "hudi_assets.exact.split": "true"}
Short = dict[str, tuple[int, str]]


def batch(*records: tuple[str, int, str]) -> pa.Table:
    """Rows; a value of "D" is a delete with that ordering value."""
    rows = [{"id": k, "ts": ts, "v": v, "_hoodie_is_deleted": v == "D"} for k, ts, v in records]
    return pa.Table.from_pylist(rows, SCHEMA)


def short(answer: Rows) -> Short:
    return {key: (row["ts"], row["v"]) for (_, key), row in answer.items()}


@dataclass(frozen=True)
class All:
    """Every reader of one table."""

    session: LocalSession
    hudi: Mapping[str, Hudi]

    def ours(self, table: HudiTable, view: str = "snapshot") -> Rows:
        frame = table.snapshot(self.session) if view == "snapshot" else table.read_optimized(self.session)
        return by_key(frame.toArrow())

    def theirs(self, table: HudiTable, view: str = "snapshot") -> dict[str, Rows]:
        answers = {release: by_key(hudi.read(table.path, view)) for release, hudi in self.hudi.items()}
        return {**answers, "hudi-rs": by_key(read_with_hudi_rs(table.path, view))}

    def compact(self, table: HudiTable, threshold: int) -> Plan:
        plan = table.plan_compaction(threshold=threshold)
        assert isinstance(plan, Plan), plan
        table.execute_compaction(self.session, plan.instant)
        return plan

    def write(self, table: HudiTable, *records: tuple[str, int, str]) -> None:
        table.upsert(self.session, self.session.frame(batch(*records)))

    def delete(self, table: HudiTable, *keys: tuple[str, int]) -> None:
        frame = pa.table({"id": [k for k, _ in keys], "ts": [t for _, t in keys]})
        table.delete(self.session, self.session.frame(frame))


@pytest.fixture
def readers(session: LocalSession, hudi_0_15: Hudi, hudi_1_2: Hudi) -> All:
    return All(session, {"0.15.0": hudi_0_15, "1.2.0": hudi_1_2})


def same(expected: Rows, answers: Mapping[str, Rows], step: str) -> None:
    for name, answer in answers.items():
        unlike = differences(expected, answer)
        assert not unlike, f"{step}: {name} gives other rows:\n" + "\n".join(unlike)


def options(payload: str, ordering: str | None) -> dict[str, str]:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.compaction.payload.class": payload,
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }
    if ordering:
        given["hoodie.datasource.write.precombine.field"] = ordering
        given["hoodie.payload.ordering.field"] = ordering
    return given


BATCHES = [
    ("upsert", batch(*[(key, 10, "base") for key in "abcdefghijk"])),
    (
        "upsert",
        batch(
            ("a", 20, "l1"), ("b", 5, "l1"), ("c", 5, "l1"), ("d", 20, "l1"), ("e", 20, "D"), ("f", 5, "D"),
            ("h", 20, "l1"), ("j", 10, "l1"), ("k", 5, "D"), ("z", 5, "l1"),
        ),
    ),
    ("delete", batch(("g", 10, "D"))),
    (
        "upsert",
        batch(
            ("a", 15, "l2"), ("c", 3, "l2"), ("d", 15, "D"), ("e", 15, "l2"), ("g", 5, "l2"), ("h", 20, "l2"),
            ("k", 7, "l2"), ("z", 5, "l2"),
        ),
    ),
    ("upsert", batch(("a", 40, "l3"), ("i", 41, "l3"), ("new", 42, "l3"), ("b", 43, "l3"))),
]  # fmt: skip


def written_by(hudi: Hudi, path: Path, given: Mapping[str, str]) -> HudiTable:
    for number, (operation, rows) in enumerate(BATCHES):
        more = {**given, "hoodie.datasource.write.operation": operation}
        hudi.write(path, rows, more, "overwrite" if number == 0 else "append")
    return HudiTable.open(str(path), settings=SETTINGS)


@pytest.mark.parametrize(
    ("writer", "ordering", "mode", "agreeing"),
    [
        ("0.15.0", "ts", MergeMode.OVERWRITE_WITH_LATEST, ("0.15.0",)),
        pytest.param("0.15.0", None, MergeMode.COMMIT_TIME_ORDERING, ("0.15.0", "1.2.0"), marks=pytest.mark.slow),
        pytest.param("1.2.0", "ts", MergeMode.COMMIT_TIME_ORDERING, ("0.15.0", "1.2.0"), marks=pytest.mark.slow),
    ],
)
def test_tables_of_hudi_that_overwrite_with_latest(
    writer: str, ordering: str | None, mode: MergeMode, agreeing: tuple[str, ...], path: Path, readers: All
) -> None:
    table = written_by(readers.hudi[writer], path, options(OVERWRITE, ordering))
    assert table.config.merging.mode is mode
    before = readers.ours(table)
    theirs = readers.theirs(table)
    same(before, {name: theirs[name] for name in agreeing}, "written by Hudi")
    # The delete of g has no event time, so its log file is always taken, and what comes before it.
    plan = readers.compact(table, 10)
    after = readers.theirs(table)
    same(before, {"the engine": readers.ours(table), **{name: after[name] for name in agreeing}}, "compacted by us")
    same(readers.ours(table, "read_optimized"), readers.theirs(table, "read_optimized"), "compacted by us, RO")
    # The last log file stays: its rows lie above all that was merged, and would have won among the log records too.
    assert len(plan.operations[0].carried_over) == 1


def test_an_event_time_table_of_hudi_1_2(path: Path, readers: All) -> None:
    """It writes the ordering field under its new key, which 0.15.0 does not look at: that one has other answers."""
    table = written_by(readers.hudi["1.2.0"], path, options(f"{MODEL}DefaultHoodieRecordPayload", "ts"))
    assert (table.config.merging.mode, table.config.ordering_field) == (MergeMode.EVENT_TIME_ORDERING, "ts")
    table = HudiTable.open(str(path), settings={**SETTINGS, **OURS})
    before = readers.ours(table)
    assert short(before)["g"][0] == 10, "the base row is back"
    same(before, {"1.2.0": by_key(readers.hudi["1.2.0"].read(path))}, "written by Hudi")
    # The row of g after the delete is due too, and what remains lies above the base rows: the slice is parted.
    assert readers.compact(table, 10).operations[0].carried_over
    same(
        before,
        {"the engine": readers.ours(table), "1.2.0": by_key(readers.hudi["1.2.0"].read(path))},
        "compacted by us",
    )


@pytest.mark.slow
def test_a_prefix_of_an_overwriting_table(path: Path, readers: All) -> None:
    """Log files whose ranges do not overlap: 0.15.0's answer stays, and 1.2.0's, which has another rule."""
    hudi = readers.hudi["0.15.0"]
    for number, records in enumerate(
        [
            [("a", 10, "0"), ("b", 10, "0"), ("c", 10, "0"), ("d", 10, "0")],
            [("a", 20, "1"), ("b", 21, "1"), ("c", 22, "D")],
            [("a", 22, "2"), ("b", 22, "D"), ("e", 23, "2")],
            [("a", 30, "3"), ("c", 31, "3"), ("e", 31, "D"), ("d", 32, "3")],
        ]
    ):
        hudi.write(path, batch(*records), options(OVERWRITE, "ts"), "append" if number else "overwrite")
    table = HudiTable.open(str(path), settings=SETTINGS)
    before, theirs = readers.ours(table), readers.theirs(table)
    same(before, theirs, "written by Hudi")
    plan = readers.compact(table, 23)
    assert len(plan.operations[0].carried_over) == 1
    same(before, {"the engine": readers.ours(table), **readers.theirs(table)}, "compacted by us")
    hudi.write(path, batch(("a", 5, "4"), ("d", 33, "4")), options(OVERWRITE, "ts"))
    now = readers.ours(table)
    assert short(now) == {"a": (30, "3"), "c": (31, "3"), "d": (33, "4")}
    same(now, {"0.15.0": by_key(hudi.read(path))}, "Hudi appended")


@pytest.mark.parametrize(
    ("mode", "agreeing"),
    [("OVERWRITE_WITH_LATEST", ("0.15.0",)), ("COMMIT_TIME_ORDERING", ("0.15.0", "1.2.0", "hudi-rs"))],
)
def test_our_tables_of_other_modes(mode: str, agreeing: tuple[str, ...], path: Path, readers: All) -> None:
    commit_time = mode == "COMMIT_TIME_ORDERING"
    table = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field=None if commit_time else "ts", event_time_field="ts",
        event_time_unit="ms", buckets=1, merge_mode=mode,
    )  # fmt: skip
    for number, (operation, rows) in enumerate(BATCHES):
        if operation == "delete":
            frame = readers.session.frame(rows.select(["id"]))
            table.delete(readers.session, frame)
        else:
            table.upsert(readers.session, readers.session.frame(rows))
        if number == 0:
            readers.compact(table, 10)
    before = readers.ours(table)

    def agree(step: str) -> None:
        theirs = readers.theirs(table)
        same(before, {"the engine": readers.ours(table), **{name: theirs[name] for name in agreeing}}, step)

    agree("written by us")
    readers.compact(table, 10)
    agree("compacted by us")
    same(readers.ours(table, "read_optimized"), readers.theirs(table, "read_optimized"), "RO")
    hudi = readers.hudi["0.15.0"]
    hudi.write(path, batch(("a", 1, "late"), ("i", 1, "D")), options(OVERWRITE, None if commit_time else "ts"))
    before = readers.ours(table)
    if commit_time:
        assert short(before)["a"] == (1, "late")
        assert "i" not in short(before)
    agree("Hudi appended")
    hudi.compaction(path, "run")
    agree("Hudi compacted")


# ------------------------------------------------------------------------------------------- residue logs


def created(path: Path, settings: Mapping[str, str], log_block_format: str) -> HudiTable:
    HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", event_time_unit="ms", buckets=1,
        log_block_format=log_block_format,
    )  # fmt: skip
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "".join(f"{k}={v}\n" for k, v in settings.items()))
    return HudiTable.open(str(path))


def same_answers_through_time(readers: All, old: Path, table: HudiTable) -> None:
    """Time travel and incremental of both releases, time travel of hudi-rs: as in the uncompacted table."""
    for hudi in readers.hudi.values():
        before, after = History(hudi, old), History(hudi, Path(table.path))
        same_time_travel(before, after)
        same_incremental(before, after)
    written = [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT)]
    for instant in [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]:
        known = max(i for i in written if i <= instant)
        unlike = differences(
            by_key(read_with_hudi_rs(str(old), "snapshot", as_of=known)),
            by_key(read_with_hudi_rs(table.path, "snapshot", as_of=instant)),
        )
        assert not unlike, f"hudi-rs as of {instant}:\n" + "\n".join(unlike)


def hudi_goes_on(readers: All, table: HudiTable) -> None:
    """Hudi appends, compacts everything and cleans; its rows stay the engine's."""
    hudi = readers.hudi["0.15.0"]
    hudi.write(
        table.path,
        batch(("a", 300, "Hudi's"), ("n", 300, "Hudi's")),
        options(f"{MODEL}DefaultHoodieRecordPayload", "ts"),
    )
    before = readers.ours(table)
    assert short(before)["n"] == (300, "Hudi's")
    same(before, readers.theirs(table), "Hudi appended")
    hudi.compaction(table.path, "run")
    same(before, {"the engine": readers.ours(table), **readers.theirs(table)}, "Hudi compacted")
    same(before, readers.theirs(table, "read_optimized"), "Hudi compacted, RO")
    hudi.clean(table.path)
    same(before, {"the engine": readers.ours(table), **readers.theirs(table)}, "Hudi cleaned")


@pytest.mark.slow
@pytest.mark.parametrize("log_block_format", ["parquet", "avro"])
def test_tombstones_in_a_residue_log(log_block_format: str, path: Path, readers: All) -> None:
    table = created(path, OURS, log_block_format)
    readers.write(table, *[(key, 1, "0") for key in "abcdef"])
    readers.delete(table, ("a", 50), ("b", 1))
    readers.write(table, ("c", 50, "D"), ("d", 40, "1"), ("e", 2, "1"))
    readers.write(table, ("x", 20, "2"), ("a", 30, "late"), ("c", 30, "late"), ("d", 30, "late"))
    readers.write(table, ("y", 60, "3"), ("f", 61, "D"))
    before, theirs = readers.ours(table), readers.theirs(table)
    assert short(before) == {"d": (40, "1"), "e": (2, "1"), "x": (20, "2"), "y": (60, "3")}
    # Hudi 0.15.0 shows a late record of a deleted key where the delete is a delete block's.
    known = dict(theirs)
    shown = short(known.pop("0.15.0"))
    assert shown == {**short(before), "a": (30, "late")}
    same(before, known, "written by us")
    old = copy_of(path)
    readers.compact(table, 2)
    logs = [log.name.rsplit(".log.", 1)[1] for log in table.state().remaining_logs]
    assert logs[0] == "1_0-0-0"
    assert len(logs) == 3
    after = readers.theirs(table)
    assert readers.ours(table) == before
    for name, answer in theirs.items():
        same(answer, {name: after[name]}, "compacted by us")
    same_answers_through_time(readers, old, table)
    # Once more, with the residue log among the merged: what it holds lives on while it may be met.
    readers.compact(table, 20)
    for name, answer in theirs.items():
        if name != "0.15.0":
            same(answer, {name: readers.theirs(table)[name]}, "compacted again")
    hudi_goes_on(readers, table)


@pytest.mark.parametrize("log_block_format", ["parquet", pytest.param("avro", marks=pytest.mark.slow)])
def test_an_exact_split(log_block_format: str, path: Path, readers: All) -> None:
    table = created(path, EXACT, log_block_format)
    readers.write(table, ("a", 1, "0"), ("a", 5, "0"), ("a", 9, "0"), ("b", 1, "0"), ("c", 1, "0"), ("d", 1, "0"))
    readers.write(table, ("b", 8, "1"), ("c", 2, "1"), ("e", 9, "1"), ("f", 2, "1"))
    readers.delete(table, ("c", 9), ("f", 3))
    readers.write(table, ("d", 9, "D"), ("f", 9, "again"))
    readers.write(table, ("g", 20, "3"), ("b", 21, "3"))
    before = readers.ours(table)
    assert short(before) == {"a": (9, "0"), "b": (21, "3"), "e": (9, "1"), "f": (9, "again"), "g": (20, "3")}
    same(before, readers.theirs(table), "written by us")
    old = copy_of(path)
    plan = table.plan_compaction(threshold=2)
    assert isinstance(plan, Plan)
    same(before, {k: v for k, v in readers.theirs(table).items() if k != "hudi-rs"}, "plan pending")
    readers.write(table, ("h", 22, "beside"))
    table.execute_compaction(readers.session, plan.instant)
    before = readers.ours(table)
    same(before, readers.theirs(table), "executed")
    ro = readers.ours(table, "read_optimized")
    assert short(ro) == {"a": (1, "0"), "b": (1, "0"), "c": (2, "1"), "d": (1, "0"), "f": (2, "1")}
    same(ro, readers.theirs(table, "read_optimized"), "executed, RO")
    for hudi in readers.hudi.values():
        history = History(hudi, path)
        known = History(hudi, old).instants()[-1]
        assert not differences(History(hudi, old).as_of(known), history.as_of(plan.instant))
    readers.compact(table, 8)
    same(before, {"the engine": readers.ours(table), **readers.theirs(table)}, "compacted again")
    assert short(readers.ours(table, "read_optimized")) == {"a": (5, "0"), "b": (8, "1"), "c": (2, "1"), "d": (1, "0")}
    hudi_goes_on(readers, table)


@pytest.mark.slow
def test_an_exact_split_through_time(path: Path, readers: All) -> None:
    table = created(path, EXACT, "parquet")
    readers.write(table, ("a", 1, "0"), ("a", 5, "0"), ("b", 6, "0"))
    readers.write(table, ("b", 8, "1"), ("c", 2, "1"))
    readers.delete(table, ("a", 7))
    readers.write(table, ("c", 9, "3"))
    old = copy_of(path)
    readers.compact(table, 2)
    same_answers_through_time(readers, old, table)
