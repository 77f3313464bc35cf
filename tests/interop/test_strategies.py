"""Plans of Hudi's strategies: ours beside those that Apache Hudi 0.15.0 schedules on a copy of the table."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import NoPlan, Operation, Plan
from scripts.hudi_client import Hudi
from tests.interop.tables import hudi_options

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("text", pa.string())])
OPEN = {"hudi_assets.writers": "stopped", "hoodie.payload.event.time.field": "ts"}
STRATEGY = "hoodie.compaction.strategy"
IO, PARTITIONS = "hoodie.compaction.target.io", "hoodie.compaction.daybased.target.partitions"
SIZE, NUMBER = "hoodie.compaction.logfile.size.threshold", "hoodie.compaction.logfile.num.threshold"


def day(ago: int) -> str:
    # The machine's date, as the JVM's.
    return f"{datetime.now().astimezone() - timedelta(days=ago):%Y/%m/%d}"


def rows(keys: Iterable[int], partition: str, mark: int) -> pa.Table:
    # Text that does not compress, so that more rows are more bytes.
    return pa.Table.from_pylist(
        [{"id": f"k{k}", "ts": 1000 * mark + k, "p": partition, "text": f"{hash((k, mark))}" * 3} for k in keys], SCHEMA
    )


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory, hudi_0_15: Hudi) -> Path:
    """A table of Hudi's: five days with one file group each, which differ in number and bytes of log files."""
    path = tmp_path_factory.mktemp("days") / "t"
    options = hudi_options(
        name="t",
        buckets=1,
        **{
            "hoodie.datasource.write.hive_style_partitioning": "false",
            "hoodie.table.timeline.timezone": "UTC",
        },
    )
    ages = (0, 1, 3, 12, 40)
    first = pa.concat_tables([rows(range(3), day(ago), 1) for ago in ages])
    hudi_0_15.write(path, first, options, mode="overwrite")
    # Day → keys of each upsert: rows make the bytes, upserts the number of log files.
    upserts: dict[int, list[int]] = {0: [2], 1: [400, 1, 1, 1], 3: [3, 3, 3], 40: [30, 30]}
    for step in range(4):
        parts = [rows(range(counts[step]), day(ago), step + 2) for ago, counts in upserts.items() if step < len(counts)]
        hudi_0_15.write(path, pa.concat_tables(parts), options)
    return path


def by_hudi(hudi: Hudi, table: Path, copy: Path, settings: dict[str, str]) -> tuple[Operation, ...]:
    """The operations that Hudi plans, in order."""
    shutil.copytree(table, copy)
    hudi.compaction(copy, "schedule", **settings)
    pending = HudiTable.open(str(copy), settings=OPEN).pending_plan()
    return pending.operations if pending is not None else ()


def by_us(table: Path, settings: dict[str, str]) -> Plan | NoPlan:
    due = {"hoodie.compact.inline.max.delta.commits": "1"}
    return HudiTable.open(str(table), settings={**OPEN, **due, **settings}).plan_compaction(dry_run=True)


@pytest.mark.parametrize(
    ("name", "settings", "size"),
    [
        ("LogFileSizeBasedCompactionStrategy", {}, 4),
        pytest.param("LogFileSizeBasedCompactionStrategy", {SIZE: "5000"}, 2, marks=pytest.mark.slow),
        pytest.param("LogFileSizeBasedCompactionStrategy", {IO: "0"}, 1, marks=pytest.mark.slow),
        pytest.param("LogFileNumBasedCompactionStrategy", {}, 4, marks=pytest.mark.slow),
        pytest.param("LogFileNumBasedCompactionStrategy", {NUMBER: "2"}, 3, marks=pytest.mark.slow),
        pytest.param("DayBasedCompactionStrategy", {}, 4, marks=pytest.mark.slow),
        ("DayBasedCompactionStrategy", {PARTITIONS: "3"}, 3),
        pytest.param("DayBasedCompactionStrategy", {PARTITIONS: "4"}, 3, marks=pytest.mark.slow),
        pytest.param("BoundedPartitionAwareCompactionStrategy", {}, 3, marks=pytest.mark.slow),
        pytest.param("BoundedPartitionAwareCompactionStrategy", {PARTITIONS: "1"}, 2, marks=pytest.mark.slow),
        pytest.param("BoundedPartitionAwareCompactionStrategy", {PARTITIONS: "40"}, 4, marks=pytest.mark.slow),
        pytest.param("UnBoundedPartitionAwareCompactionStrategy", {}, 1, marks=pytest.mark.slow),
        pytest.param("UnBoundedPartitionAwareCompactionStrategy", {PARTITIONS: "0"}, 3, marks=pytest.mark.slow),
        pytest.param("UnBoundedPartitionAwareCompactionStrategy", {PARTITIONS: "40"}, 0, marks=pytest.mark.slow),
    ],
)
def test_the_same_operations_in_the_same_order(
    name: str, settings: dict[str, str], size: int, days: Path, path: Path, hudi_0_15: Hudi
) -> None:
    settings = {STRATEGY: f"org.apache.hudi.table.action.compact.strategy.{name}", **settings}
    theirs = by_hudi(hudi_0_15, days, path, settings)
    found = by_us(days, settings)
    ours = found.operations if isinstance(found, Plan) else ()
    assert len(theirs) == size
    assert ours == theirs


@pytest.mark.parametrize(
    "name", ["UnBoundedCompactionStrategy", pytest.param("BoundedIOCompactionStrategy", marks=pytest.mark.slow)]
)
def test_the_same_operations_where_hudi_sorts_nothing(name: str, days: Path, path: Path, hudi_0_15: Hudi) -> None:
    settings = {STRATEGY: f"org.apache.hudi.table.action.compact.strategy.{name}"}
    theirs = by_hudi(hudi_0_15, days, path, settings)
    found = by_us(days, settings)
    assert isinstance(found, Plan)
    assert sorted(theirs, key=lambda op: op.partition) == list(found.operations)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trigger", "commits", "seconds", "due"),
    [
        ("NUM_COMMITS", 5, 0, True),
        ("NUM_COMMITS", 6, 0, False),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 5, 0, True),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 6, 0, False),
        ("TIME_ELAPSED", 6, 1, True),
        ("TIME_ELAPSED", 5, 100_000, False),
        ("NUM_AND_TIME", 5, 1, True),
        ("NUM_AND_TIME", 5, 100_000, False),
        ("NUM_AND_TIME", 6, 1, False),
        ("NUM_OR_TIME", 5, 100_000, True),
        ("NUM_OR_TIME", 6, 1, True),
        ("NUM_OR_TIME", 6, 100_000, False),
    ],
)
def test_triggers_agree(
    trigger: str, commits: int, seconds: int, due: bool, days: Path, path: Path, hudi_0_15: Hudi
) -> None:
    """The table has five delta commits and no compaction."""
    settings = {
        STRATEGY: "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
        "hoodie.compact.inline.trigger.strategy": trigger,
        "hoodie.compact.inline.max.delta.commits": str(commits),
        "hoodie.compact.inline.max.delta.seconds": str(seconds),
    }
    assert (by_hudi(hudi_0_15, days, path, settings) != ()) == due
    assert isinstance(by_us(days, settings), Plan) == due


@pytest.mark.slow
def test_days_with_dashes_are_found_by_neither(path: Path, tmp_path: Path, hudi_0_15: Hudi) -> None:
    options = hudi_options(name="t", buckets=1)
    for mark in (1, 2):
        parts = [rows(range(3), day(ago).replace("/", "-"), mark) for ago in (0, 1)]
        hudi_0_15.write(path, pa.concat_tables(parts), options, mode="overwrite" if mark == 1 else "append")
    settings = {STRATEGY: "org.apache.hudi.table.action.compact.strategy.DayBasedCompactionStrategy"}
    assert by_hudi(hudi_0_15, path, tmp_path / "copy", settings) == ()
    found = by_us(path, settings)
    assert isinstance(found, NoPlan)
    assert "none is in a partition" in found.reason


def test_what_hudi_writes_late_is_noticed(path: Path, hudi_0_15: Hudi) -> None:
    options = hudi_options(name="t", buckets=1)
    now = round(datetime.now().astimezone().timestamp() * 1000)
    hour = 3_600_000

    def write(*events: tuple[int, int], **more: str) -> None:
        found = [{"id": f"k{k}", "ts": now - ago, "p": "a", "text": "x"} for k, ago in events]
        mode = "append" if path.exists() else "overwrite"
        hudi_0_15.write(path, pa.Table.from_pylist(found, SCHEMA), {**options, **more}, mode=mode)

    write((1, 5 * hour), (2, 4 * hour))  # into base files: no log file says when
    write((1, 3 * hour), (2, 3 * hour))
    table = HudiTable.open(str(path), settings={**OPEN, "hudi_assets.data.latency": "auto"})
    seen = table.observed_latency()
    assert seen is not None
    assert (seen.commits, seen.log_files, seen.records, seen.unknown) == (1, 1, 2, 0)
    # Between the two lies what Hudi took to start.
    assert 3 * hour <= seen.latency_ms < 4 * hour
    published = now - 2 * hour
    assert [late.records for late in table.late_records(published)] == [2]
    write((1, hour), (2, 2 * hour), (3, hour), (4, 2 * hour - 1))
    write((2, 2 * hour + 1), **{"hoodie.datasource.write.operation": "delete"})
    found = table.late_records(published)
    instants = [instant for instant, action, _ in hudi_0_15.timeline(path) if action == "deltacommit"]
    assert [(late.min_event_time, late.instants, late.records) for late in found] == [
        (now - 3 * hour, (instants[1],), 2),
        (now - 2 * hour, (instants[2],), 1),
    ]
    # Hudi's delete operation states no event time: its commit bounds that file, by what was learned.
    promise = table.freshness()
    seen = table.observed_latency()
    assert seen is not None
    assert [(one.data_latency, one.log_files) for one in promise.bounds] == [(seen.latency_ms, 1)]
    assert promise.freshness is not None
    assert promise.freshness < promise.bounds[0].min_event_time


def test_hudi_executes_our_plan(days: Path, path: Path, hudi_0_15: Hudi) -> None:
    shutil.copytree(days, path)
    before = hudi_0_15.read(path).sort_by("_hoodie_record_key")
    settings = {**OPEN, STRATEGY: "LogFileNumBasedCompactionStrategy", NUMBER: "2"}
    table = HudiTable.open(str(path), settings={**settings, "hoodie.compact.inline.max.delta.commits": "1"})
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    assert len(plan.operations) == 3
    hudi_0_15.compaction(path, "execute")
    assert table.pending_plan() is None
    assert TableTimes(table.state()).last_threshold is None
    keys = ["_hoodie_record_key", "ts", "p", "text", "_hoodie_commit_time"]
    assert hudi_0_15.read(path).sort_by("_hoodie_record_key").select(keys).equals(before.select(keys))
    assert {log.partition for log in table.state().remaining_logs} == {day(0)}
