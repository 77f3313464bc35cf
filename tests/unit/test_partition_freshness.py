"""The freshness of each partition: what its own view promises, whatever waits in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hudi_assets.cli import app
from hudi_assets.dagster.report import partition_metadata
from hudi_assets.engine import HudiTable, PartitionFreshness, Plan
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

each_version = pytest.mark.parametrize("version", [6, 8, 9])


def told(table: HudiTable) -> dict[str, int | None]:
    return {one.partition: one.freshness for one in table.partition_freshness()}


def hot_and_cold(path: Path, session: LocalSession, version: int = 9) -> Life:
    """`b` was compacted after its only write; `a` has been written since. The clock is at 8 s, the latency 1 s."""
    life = Life(path, session, version)
    life.upsert()
    life.compact()
    for _ in range(4):
        life.upsert("a")
    return life


@each_version
def test_a_cold_partition_does_not_wait_for_a_hot_one(session: LocalSession, tmp_path: Path, version: int) -> None:
    life = hot_and_cold(tmp_path / "t", session, version)
    cold, hot = 7000, 1999
    assert told(life.table) == {"p=a": hot, "p=b": cold}
    assert life.table.freshness().freshness == hot
    first, second = life.table.partition_freshness()
    assert (first.partition, first.holds_back, first.remaining_log_files) == ("p=a", True, 4)
    assert first.remaining_bytes == life.table.stats().remaining_bytes > 0
    assert second == PartitionFreshness("p=b", cold, None, False, 0, 0)


@each_version
def test_a_plan_touches_the_file_groups_alone_that_hold_the_freshness_back(
    session: LocalSession, tmp_path: Path, version: int
) -> None:
    """Nothing in `b` lies at or below the threshold: it is not rewritten, and its log files stay as they are."""
    life = hot_and_cold(tmp_path / "t", session, version)
    life.upsert("b", later=2500)
    before = {file: (life.path / file).stat().st_ino for file in life.files() if file.startswith("p=b")}
    plan = life.table.plan_compaction(threshold=5500)
    assert isinstance(plan, Plan)
    assert [op.partition for op in plan.operations] == ["p=a"]
    life.table.execute_compaction(session, plan.instant)
    assert before.items() <= {file: (life.path / file).stat().st_ino for file in life.files()}.items()
    assert told(life.table) == {"p=a": 8000, "p=b": 8000}


def test_what_is_gone_in_one_partition_says_nothing_of_another(session: LocalSession, tmp_path: Path) -> None:
    life = hot_and_cold(tmp_path / "t", session)
    gone = life.table.state().remaining_logs[0].path
    (life.path / gone).unlink()
    first, second = life.table.partition_freshness()
    assert (first.partition, first.freshness, first.holds_back) == ("p=a", None, True)
    assert gone.rpartition("/")[2] in (first.reason or "")
    assert (second.partition, second.freshness) == ("p=b", 7000)
    assert life.table.freshness().freshness is None


def test_without_a_watermark_no_partition_has_a_freshness(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    properties = life.path / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(one for one in lines if not one.startswith("hudi_assets.data.latency")))
    reason = life.table.freshness().reason
    assert reason
    assert [(one.freshness, one.reason) for one in life.table.partition_freshness()] == [(None, reason)] * 2


def test_it_is_shown_worst_first(session: LocalSession, tmp_path: Path) -> None:
    life = hot_and_cold(tmp_path / "t", session)
    answer = CliRunner().invoke(app, ["status", life.table.path, "--partitions"])
    lines = answer.output.splitlines()
    at = lines.index("1 of 2 partitions wait for a compaction:")
    assert [line.split()[:2] for line in lines[at + 2 : at + 4]] == [
        ["p=a", "1970-01-01T00:00:01.999Z"],
        ["p=b", "1970-01-01T00:00:07Z"],
    ]
    assert "p=a" not in CliRunner().invoke(app, ["status", life.table.path]).output


def test_metadata_has_the_worst_and_a_count() -> None:
    each = [PartitionFreshness(f"p={n:03}", n, None, n < 40, 1, 10) for n in range(60)]
    found = partition_metadata(each)
    assert (found["partitions"], found["partitions_behind"]) == (60, 40)
    shown = [record.data["partition"] for record in found["partition_freshness"].records]
    assert shown == [f"p={n:03}" for n in range(20)]
    assert partition_metadata(each[40:]) == {"partitions": 20, "partitions_behind": 0}
