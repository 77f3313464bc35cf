"""Records without event time: what their commit says of when they happened, and which bound the freshness shows."""

from __future__ import annotations

import json
import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.cli.output import show_freshness, show_status
from hudi_assets.dagster.report import promise_metadata
from hudi_assets.engine import HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.event_time import table_times
from hudi_assets.engine.event_time.commit_bound import requested_ms
from hudi_assets.engine.model import BoundRule, CommitBound
from hudi_assets.engine.model.units import iso
from hudi_assets.engine.timeline.instants import format_instant, instant_ms
from tests.tables.local_session import LocalSession
from tests.unit.test_block_times import SCRATCH, create, gone, logs, rows, with_null_times

HOUR = 3_600_000
NOW = 1_767_225_600_000  # 2026-01-01


class Clock:
    def __init__(self) -> None:
        self.ms = NOW

    def __call__(self) -> int:
        self.ms += 1
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(path: Path, clock: Clock, **settings: str) -> HudiTable:
    found = HudiTable.open(str(path), settings={"hudi_assets.writers": "stopped", **settings})
    return HudiTable(found._table.storage, found.config, now_ms=clock)


def ms(instant: str | None) -> int:
    return instant_ms(instant or "", "UTC")


@pytest.fixture
def table(tmp_path: Path, session: LocalSession, clock: Clock) -> HudiTable:
    """Rows of the last hours, an hour after they were written a delete without ordering value, then rows again."""
    create(tmp_path / "t", data_latency="2h")
    table = opened(tmp_path / "t", clock)
    table.upsert(session, rows(session, ("a", NOW - HOUR // 2, 1), ("b", NOW - HOUR // 2, 1)))
    clock.ms += HOUR
    table.delete(session, gone(session, None, ("a", None)))
    clock.ms += HOUR
    table.upsert(session, rows(session, ("a", NOW + HOUR, 2)))
    clock.ms += HOUR
    return table


def deleted_at(table: HudiTable) -> int:
    return ms(table.state().timeline.instants[1].timestamp)


def test_a_delete_without_ordering_value_counts_from_its_commit_less_the_latency(table: HudiTable) -> None:
    fresh, low = table.freshness(), deleted_at(table) - 2 * HOUR
    assert (fresh.freshness, fresh.min_event_time) == (low - 1, low)
    assert fresh.bounds == (CommitBound(BoundRule.LATENCY, 2 * HOUR, 1, low),)
    assert fresh.bounds[0].words.startswith("1 log file with records without event time: commit less data")


def test_the_latency_of_the_call_bounds_what_the_call_promises(table: HudiTable) -> None:
    for latency in (HOUR, 3 * HOUR):
        fresh = table.freshness(data_latency=latency)
        assert fresh.bounds == (CommitBound(BoundRule.LATENCY, latency, 1, deleted_at(table) - latency),)
    assert table.freshness(data_latency=3 * HOUR).freshness == deleted_at(table) - 3 * HOUR - 1
    # Now less an hour is two hours after the delete's bound; the rows before it are older.
    assert table.freshness(data_latency=HOUR).freshness == NOW - HOUR // 2 - 1


def test_no_latency_no_bound_and_the_reason_says_what_would_help(
    tmp_path: Path, table: HudiTable, clock: Clock
) -> None:
    path = Path(table.path) / ".hoodie/hoodie.properties"
    path.write_text("".join(x for x in path.read_text().splitlines(True) if "data.latency" not in x))
    fresh = opened(tmp_path / "t", clock).freshness()
    assert (fresh.freshness, fresh.bounds) == (None, ())
    assert "deletes without one; a data latency would bound them" in (fresh.reason or "")


def test_the_owner_may_say_that_deletes_count_at_their_commit(
    tmp_path: Path, table: HudiTable, clock: Clock, session: LocalSession
) -> None:
    """Without a data latency too: the watermark is the last threshold then."""
    path = Path(table.path) / ".hoodie/hoodie.properties"
    path.write_text("".join(x for x in path.read_text().splitlines(True) if "data.latency" not in x))
    table = opened(tmp_path / "t", clock, **{"hudi_assets.deletes.event.time": "commit"})
    assert table.freshness().bounds == (CommitBound(BoundRule.COMMIT, None, 1, deleted_at(table)),)
    threshold = NOW + HOUR // 2
    plan = table.plan_compaction(threshold=threshold)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [1], "the delete counts later"
    table.execute_compaction(session, plan.instant)
    fresh = table.freshness()
    assert (fresh.freshness, fresh.threshold) == (threshold, threshold)
    with pytest.raises(InvalidInput, match=r"deletes\.event\.time"):
        opened(tmp_path / "t", clock, **{"hudi_assets.deletes.event.time": "now"})


def test_a_compaction_takes_what_comes_before_the_delete_and_leaves_the_rest(
    table: HudiTable, session: LocalSession
) -> None:
    before = sorted(r["v"] for r in table.snapshot(session).rows())
    low = deleted_at(table) - 2 * HOUR
    # Below both: nothing. At the delete's bound: the rows before it with it, although they are younger.
    assert isinstance(table.plan_compaction(threshold=low - 1), NoPlan)
    plan = table.plan_compaction(threshold=low)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [2]
    table.execute_compaction(session, plan.instant)
    assert sorted(r["v"] for r in table.snapshot(session).rows()) == before
    assert len(table.state().remaining_logs) == 1
    fresh = table.freshness()
    assert (fresh.freshness, fresh.bounds) == (fresh.watermark and min(fresh.watermark, NOW + HOUR - 1), ())


def test_the_threshold_of_a_calls_latency_selects_by_that_latency(table: HudiTable, clock: Clock) -> None:
    """The commits of the last three hours: with a latency that reaches back further, all of it is due."""
    plan = table.plan_compaction(data_latency=3 * HOUR, dry_run=True)
    assert isinstance(plan, NoPlan) or plan.threshold <= clock.ms - 3 * HOUR
    found = table.plan_compaction(data_latency=HOUR // 2, dry_run=True)
    assert isinstance(found, Plan)
    assert [len(op.log_files) for op in found.operations] == [3]
    bars = {bar.name: bar for bar in table.log_bars()}
    assert sorted(b.min_event_time or 0 for b in bars.values()) == sorted(
        [NOW - HOUR // 2, deleted_at(table) - 2 * HOUR, NOW + HOUR]
    )


def test_a_learned_latency_bounds_as_a_stated_one(tmp_path: Path, table: HudiTable, clock: Clock) -> None:
    path = Path(table.path) / ".hoodie/hoodie.properties"
    path.write_text(re.sub(r"data\.latency=.*", "data.latency=auto", path.read_text()))
    table = opened(tmp_path / "t", clock)
    learned = table.observed_latency()
    assert learned is not None
    assert learned.unknown == 1, "what has no event time teaches nothing"
    assert table.freshness().bounds == (
        CommitBound(BoundRule.LATENCY, learned.latency_ms, 1, deleted_at(table) - learned.latency_ms),
    )


@pytest.mark.parametrize("lost", [False, True])
def test_in_a_replayed_stream_the_commits_clock_time_counts(
    tmp_path: Path, session: LocalSession, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path / "t", clock="commit", data_latency="10s")
    at = [datetime.fromtimestamp(second, UTC) for second in (100, 110, 120)]
    table.upsert(session, rows(session, ("a", 95_000, 1)), clock_time=at[0])
    table.delete(session, gone(session, None, ("a", None)), clock_time=at[1])
    table.upsert(session, rows(session, ("a", 115_000, 1)), clock_time=at[2])
    if lost:  # its commit archived, the memory lost: the header says it
        monkeypatch.setattr(table_times, "_own_stats", lambda *_: {})
        monkeypatch.setattr("hudi_assets.engine.event_time.commit_bound._Bounds._clock_times", {})
        shutil.rmtree(tmp_path / "t" / SCRATCH)
    assert table.freshness().bounds == (CommitBound(BoundRule.LATENCY, 10_000, 1, 100_000),)
    assert table.freshness().freshness == 94_999


def test_rows_without_event_time_are_bounded_by_the_latency_alone(
    tmp_path: Path, session: LocalSession, clock: Clock
) -> None:
    create(tmp_path / "t", data_latency="2h", ordering_field="seq")
    settings = {"hudi_assets.deletes.event.time": "commit"}
    table = opened(tmp_path / "t", clock, **settings)
    written = table.upsert(session, rows(session, ("a", NOW - HOUR, 1), ("b", NOW - HOUR, 1)))
    clock.ms += HOUR
    (log,) = logs(table)
    log.write_bytes(with_null_times(log.read_bytes()))
    fresh = table.freshness()
    low = ms(written.instant) - 2 * HOUR
    assert fresh.bounds == (CommitBound(BoundRule.LATENCY, 2 * HOUR, 1, low),)
    assert (fresh.freshness, fresh.reason) == (low - 1, None)
    shown: list[Any] = [times.to_pylist() for _, times in table.log_event_times()]
    assert shown == [[low, NOW - HOUR]], "the check reads the same bound"


def test_the_earliest_time_that_an_instant_can_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert requested_ms("20260101000000123", "UTC") == NOW + 123
    assert requested_ms("20260101000000", "UTC") == NOW, "of a second, its beginning"
    assert requested_ms("00000000000001", "UTC") is None
    assert requested_ms("garbage", "UTC") is None
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        first = 1_792_888_200_000  # 2026-10-25T00:30Z: 02:30 in summer time, and an hour later once more
        assert format_instant(first, "LOCAL") == format_instant(first + HOUR, "LOCAL") == "20261025023000000"
        assert requested_ms("20261025023000000", "LOCAL") == first
        assert requested_ms("20261025023000", "LOCAL") == first
        assert requested_ms("20261025013000000", "LOCAL") == first - HOUR
        assert requested_ms("20261025033000000", "LOCAL") == first + 2 * HOUR
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_log_files_own_event_times_count_beside_the_bound(table: HudiTable, session: LocalSession) -> None:
    """One delete of its block has an ordering value far below what bounds the other."""
    table.delete(session, gone(session, "ts", ("a", NOW - 9 * HOUR), ("b", None)))
    assert table.freshness().freshness == NOW - 9 * HOUR - 1
    plan = table.plan_compaction(threshold=NOW - 9 * HOUR, dry_run=True)
    assert isinstance(plan, Plan)
    assert [len(op.log_files) for op in plan.operations] == [4]


def test_command_line_and_dagster_show_which_bound_was_used(
    table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    promise = table.freshness()
    low = iso(deleted_at(table) - 2 * HOUR)
    show_freshness(promise, None, True)
    (bound,) = json.loads(capsys.readouterr().out)["bounds"]
    assert bound == {
        "rule": "commit less data latency", "data_latency": 2 * HOUR, "log_files": 1, "min_event_time": low,
    }  # fmt: skip
    words = f"1 log file with records without event time: commit less data latency (2 h), {low}"
    show_status("t", table.stats(), None, False)
    assert words in " ".join(capsys.readouterr().out.split())
    assert promise_metadata(promise, table.now_ms())["bounded_by_commits"] == words
