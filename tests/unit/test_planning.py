"""Strategies, triggers, learned latency, cost curve and late records on whole tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import planning
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.event_time.lateness import LateLog
from hudi_assets.engine.model import NO_THRESHOLD, CommitResult, NoPlan, Plan
from hudi_assets.engine.transaction.lock import HeldLock
from tests.tables.local_session import LocalSession
from tests.tables.others import forget_event_times
from tests.tables.steps import at, compact, rows_in

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string()), ("v", pa.int64())])
STRATEGY, TRIGGER = "hoodie.compaction.strategy", "hoodie.compact.inline.trigger.strategy"
DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"


def make(path: Path, **options: Any) -> HudiTable:
    defaults: dict[str, Any] = {"clock": "commit", "data_latency": "1s", "buckets": 1, "partition_fields": ["day"]}
    return HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        hive_style=False,
        **{**defaults, **options},
    )


def put(table: HudiTable, session: LocalSession, clock: int, *rows: tuple[int, int, str]) -> CommitResult:
    """Upsert (key, event time, partition) rows at a clock time."""
    frame = session.rows([{"id": key, "ts": ts, "day": day, "v": clock} for key, ts, day in rows], SCHEMA)
    return table.upsert(session, frame, clock_time=at(clock))


def remove(table: HudiTable, session: LocalSession, clock: int, *rows: tuple[int, int, str]) -> CommitResult:
    schema = pa.schema([SCHEMA.field(name) for name in ("id", "ts", "day")])
    frame = session.rows([{"id": key, "ts": ts, "day": day} for key, ts, day in rows], schema)
    return table.delete(session, frame, clock_time=at(clock))


def opened(table: HudiTable, settings: dict[str, str]) -> HudiTable:
    return HudiTable.open(table.path, settings=settings)


def snapshot(table: HudiTable) -> list[tuple[int, int, int]]:
    rows = rows_in(table.snapshot_tasks())
    return sorted((r["id"], r["ts"], r["v"]) for r in rows)


# ------------------------------------------------------------------------------- Hudi's strategies


def test_a_strategy_of_hudis_with_its_default_trigger(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    hudi = opened(table, {STRATEGY: "LogFileSizeBasedCompactionStrategy"})
    for n in range(4):
        put(table, session, 1_000 * n, (n, 1_000 * n, "a"))
    assert hudi.plan_compaction() == NoPlan(
        "4 delta commits since the first delta commit; 5 are asked for (hoodie.compact.inline.max.delta.commits)"
    )
    put(table, session, 4_000, (1, 3_900, "a"), (5, 3_950, "b"))
    before = snapshot(table)
    result = compact(hudi, session)
    assert (len(result.operations), result.logs_compacted, result.logs_remaining) == (2, 6, 0)
    assert result.threshold is None
    assert snapshot(table) == before
    assert table.stats().remaining_log_files == 0
    assert hudi.plan_compaction() == NoPlan(
        "0 delta commits since the last compaction; 5 are asked for (hoodie.compact.inline.max.delta.commits)"
    )


def test_a_whole_compaction_claims_no_threshold(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency=None)
    put(table, session, 2_000, (1, 1_000, "a"), (2, 1_900, "a"))
    compact(table, session, threshold=1_500)
    first = table.freshness()
    put(table, session, 3_000, (1, 2_500, "a"))
    hudi = opened(table, {STRATEGY: "UnBoundedCompactionStrategy", DELTA_COMMITS: "1"})
    plan = hudi.plan_compaction()
    assert isinstance(plan, Plan)
    assert plan.threshold == NO_THRESHOLD
    table.execute_compaction(session, plan.instant)
    after = table.freshness()
    assert (after.threshold, after.instant, after.min_event_time) == (1_500, first.instant, None)
    assert after.freshness == 1_500


def test_hudis_strategies_need_no_event_time_and_take_no_threshold(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 2_000, (1, 1_000, "a"))
    settings = {STRATEGY: "UnBoundedCompactionStrategy", DELTA_COMMITS: "0"}
    hudi = opened(table, {**settings, "hoodie.payload.event.time.field": ""})
    for how in ({"threshold": 1_000}, {"data_latency": "1s"}):
        with pytest.raises(InvalidInput, match="UnBoundedCompactionStrategy"):
            hudi.plan_compaction(**how)
    assert compact(hudi, session).logs_compacted == 1
    assert hudi.plan_compaction() == NoPlan("no file slice has log files")


HUDIS_BY_EVENT_TIME = {STRATEGY: "UnBoundedCompactionStrategy", TRIGGER: "EVENT_TIME_TRIGGER"}


@pytest.mark.parametrize("version", [6, 9])
def test_a_strategy_of_hudis_with_the_event_time_trigger(session: LocalSession, tmp_path: Path, version: int) -> None:
    """Due once a log file reaches back to the clock less the data latency (a second); then not until another does."""
    table = make(tmp_path / "t", table_version=version)
    hudi = opened(table, HUDIS_BY_EVENT_TIME)
    put(table, session, 2_000, (1, 1_500, "a"))
    assert hudi.plan_compaction() == NoPlan(
        "no log file that UnBoundedCompactionStrategy takes has an event time at or below 1970-01-01T00:00:01Z"
    )
    assert isinstance(hudi.plan_compaction(data_latency=500, dry_run=True), Plan)
    with pytest.raises(InvalidInput, match="UnBoundedCompactionStrategy"):
        hudi.plan_compaction(threshold=1_500)
    put(table, session, 2_500, (1, 2_400, "a"), (2, 2_400, "b"))
    result = compact(hudi, session)
    assert (result.threshold, result.logs_compacted, result.logs_remaining) == (None, 3, 0)
    put(table, session, 3_000, (1, 2_900, "a"))
    assert isinstance(hudi.look().due, NoPlan)
    put(table, session, 3_200, (1, 2_200, "a"))  # late, and just at the threshold
    assert isinstance(hudi.look().due, Plan)


def test_the_event_time_trigger_looks_at_what_the_strategy_takes(session: LocalSession, tmp_path: Path) -> None:
    """Slices of two log files or more: an old log file that stays behind alone makes no compaction due for ever."""
    table = make(tmp_path / "t")
    hudi = opened(
        table,
        {
            **HUDIS_BY_EVENT_TIME,
            STRATEGY: "LogFileNumBasedCompactionStrategy",
            "hoodie.compaction.logfile.num.threshold": "2",
        },
    )
    put(table, session, 9_000, (1, 1_000, "a"), (2, 8_500, "b"))
    put(table, session, 9_400, (3, 9_300, "b"))
    assert isinstance(hudi.plan_compaction(), NoPlan)
    put(table, session, 9_600, (3, 9_500, "b"))
    assert compact(hudi, session).logs_compacted == 3
    assert hudi.plan_compaction() == NoPlan(
        "1 file slice has log files, but none meets hoodie.compaction.logfile.num.threshold=2"
    )


def test_the_event_time_trigger_asks_for_event_times(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency=None)
    put(table, session, 2_000, (1, 1_000, "a"))
    hudi = opened(table, HUDIS_BY_EVENT_TIME)
    undue = hudi.plan_compaction()
    assert isinstance(undue, NoPlan)
    assert undue.reason.startswith("the table has no data latency, which EVENT_TIME_TRIGGER goes by: ")
    assert isinstance(hudi.plan_compaction(data_latency="1s"), Plan)
    nameless = opened(table, {**HUDIS_BY_EVENT_TIME, "hoodie.payload.event.time.field": ""})
    with pytest.raises(InvalidInput, match="No event-time column is known"):
        nameless.plan_compaction(data_latency="1s")


def test_the_event_time_strategy_with_a_trigger_of_hudis(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    counted = opened(table, {TRIGGER: "num_commits", DELTA_COMMITS: "2"})
    put(table, session, 2_000, (1, 1_000, "a"))
    assert isinstance(table.plan_compaction(dry_run=True), Plan)
    found = counted.plan_compaction()
    assert isinstance(found, NoPlan)
    assert found.reason.startswith("1 delta commit since the first delta commit; 2 are asked for")
    put(table, session, 3_000, (1, 2_900, "a"))
    assert isinstance(counted.plan_compaction(), Plan)


def test_an_unknown_strategy_is_refused_when_the_table_is_opened(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(InvalidInput, match=r"com\.example\.Mine"):
        opened(table, {STRATEGY: "com.example.Mine"})


# ------------------------------------------------------------------------------- bounds


def test_a_bounded_compaction_leaves_freshness_honest(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 5_000, (1, 3_000, "a"), (2, 1_000, "b"), (3, 2_000, "c"))
    bounded = opened(table, {"hoodie.compaction.daybased.target.partitions": "2"})
    before = snapshot(table)
    result = compact(bounded, session)
    assert sorted(op.partition for op in result.operations) == ["b", "c"]
    assert (result.threshold, table.freshness().threshold, table.freshness().freshness) == (2_999, 2_999, 2_999)
    assert compact(bounded, session).threshold == 4_000
    assert table.freshness().freshness == 4_000
    assert snapshot(table) == before


def test_an_io_bound_takes_the_oldest_slice_first(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 5_000, (1, 3_000, "a"), (2, 1_000, "b"), (3, 2_000, "c"))
    # A slice without base file is expected to write 120 MB.
    bounded = opened(table, {"hoodie.compaction.target.io": "1"})
    found = [compact(bounded, session) for _ in range(3)]
    assert [result.operations[0].partition for result in found] == ["b", "c", "a"]
    assert [result.threshold for result in found] == [1_999, 2_999, 4_000]
    last = bounded.plan_compaction()
    assert isinstance(last, NoPlan)


# ------------------------------------------------------------------------------- learned latency


def test_the_latency_is_learned_and_used(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency="auto")
    nothing = table.plan_compaction()
    assert isinstance(nothing, NoPlan)
    assert "hudi_assets.data.latency=auto" in nothing.reason
    put(table, session, 10_000, (1, 9_000, "a"))
    put(table, session, 20_000, (2, 19_500, "a"))
    seen = table.observed_latency()
    assert seen is not None
    assert (seen.latency_ms, seen.max_ms, seen.quantile, seen.commits, seen.records) == (1_000, 1_000, 0.99, 2, 2)
    assert table.freshness().watermark == 19_000
    half = opened(table, {"hudi_assets.data.latency.quantile": "0.5"})
    assert half.freshness().watermark == 19_500
    plan = table.plan_compaction(dry_run=True)
    assert isinstance(plan, Plan)
    assert plan.threshold == 19_000


def test_without_evidence_freshness_is_null_whatever_was_compacted(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency="auto")
    put(table, session, 10_000, (1, 9_000, "a"))
    compact(table, session, threshold=9_500)
    assert table.freshness().freshness == 9_000  # min(now − 1 s, …): nothing remains
    forget_event_times(Path(table.path))
    found = HudiTable.open(table.path).freshness()
    assert (found.freshness, found.threshold) == (None, 9_500)
    assert found.reason is not None
    assert "none of the last 30 delta commits" in found.reason


def test_of_tables_that_others_write_the_remaining_log_files_tell(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency="auto")
    put(table, session, 10_000, (1, 9_000, "a"))
    put(table, session, 20_000, (2, 18_000, "a"))
    forget_event_times(Path(table.path))
    seen = HudiTable.open(table.path).observed_latency()
    assert seen is not None
    assert (seen.latency_ms, seen.log_files, seen.unknown) == (2_000, 2, 0)


def test_an_owners_word_counts_for_one_call(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", data_latency="auto")
    put(table, session, 10_000, (1, 9_000, "a"))
    assert table.freshness(data_latency="3s").watermark == 7_000
    stated = opened(table, {"hudi_assets.data.latency": "5s"})
    assert stated.freshness().watermark == 5_000
    assert stated.freshness(data_latency="auto").watermark == 9_000


# ------------------------------------------------------------------------------- late records


def test_late_records_are_named_with_file_time_commit_and_count(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 10_000, (1, 5_000, "a"), (2, 6_000, "a"))
    compact(table, session)
    published = table.freshness().freshness
    assert published == 9_000
    assert table.late_records(published) == ()
    late = put(table, session, 11_000, (3, 4_000, "a"), (4, 9_000, "a"), (5, 9_001, "a"), (6, 9_500, "b"))
    gone = remove(table, session, 12_000, (1, 8_000, "a"))
    assert late.instant is not None
    assert gone.instant is not None
    found = table.late_records(published)
    assert [(one.min_event_time, one.instants, one.records) for one in found] == [
        (4_000, (late.instant,), 2),
        (8_000, (gone.instant,), 1),
    ]
    assert all(Path(table.path, one.file).exists() for one in found)
    fallen = table.freshness().freshness
    assert fallen is not None
    assert fallen < published
    compact(table, session)
    assert table.late_records(published) == ()
    assert isinstance(found[0], LateLog)


def test_records_of_an_unfinished_write_are_not_late_yet(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 10_000, (1, 5_000, "a"))
    late = put(table, session, 11_000, (2, 4_000, "a"))
    commit = Path(table.path, ".hoodie", f"{late.instant}.deltacommit")
    commit.unlink()
    found = HudiTable.open(table.path).late_records(9_000)
    assert [(one.min_event_time, one.records) for one in found] == [(4_000, 0), (5_000, 1)]


# ------------------------------------------------------------------------------- cost curve


@pytest.mark.parametrize("settings", [{}, {"hoodie.compaction.daybased.target.partitions": "1"}])
def test_the_curve_is_what_dry_runs_plan(session: LocalSession, tmp_path: Path, settings: dict[str, str]) -> None:
    table = make(tmp_path / "t", buckets=2)
    put(table, session, 3_000, (1, 1_000, "a"), (2, 1_500, "a"), (3, 2_500, "b"))
    compact(table, session, threshold=1_200)
    put(table, session, 4_000, (1, 3_500, "a"), (5, 2_900, "b"))
    remove(table, session, 5_000, (3, 4_200, "b"))
    put(table, session, 6_000, (9, 900, "a"), (8, 7_000, "c"))
    table = opened(table, settings)
    points = table.cost_curve()
    assert [point.threshold for point in points] == [900, 1_500, 2_500, 2_900, 3_500, 4_200]
    base = {s.base_file.path: s.base_file.size for s in table.state().view.latest if s.base_file}
    logs = {log.path: log.size for log in table.state().remaining_logs}
    for point in points:
        plan = table.plan_compaction(threshold=point.threshold, dry_run=True)
        assert isinstance(plan, Plan)
        merged = [path for op in plan.operations for path in op.log_files]
        assert point.log_files == len(merged)
        assert point.file_groups == len(plan.operations)
        assert point.bytes_to_rewrite == sum(logs[path] for path in merged) + sum(
            base[op.base_file] for op in plan.operations if op.base_file
        )


def test_the_curves_freshness_comes_true(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for n in range(4):
        put(table, session, 10_000 + n, (n, 1_000 * (n + 1), "ab"[n % 2]))
    for point in table.cost_curve(points=2):
        compact(table, session, threshold=point.threshold)
        assert table.freshness().freshness == point.freshness


def test_hudis_strategies_have_no_curve(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    put(table, session, 10_000, (1, 1_000, "a"))
    assert opened(table, {STRATEGY: "UnBoundedCompactionStrategy"}).cost_curve() == ()


# ------------------------------------------------------------------------------- whoever executes


def test_beside_live_writers_a_partial_plan_needs_their_services_off(session: LocalSession, tmp_path: Path) -> None:
    """Hudi's inline compaction would execute it, and lose the carried-over rows to incremental queries."""
    table = make(tmp_path / "t")
    put(table, session, 2_000, (1, 1_000, "a"))
    put(table, session, 9_000, (2, 8_000, "a"))
    locked = opened(table, {"hudi_assets.writers": "locked"})
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="Hudi's own table services"):
            locked.plan_compaction(threshold=1_000, dry_run=dry_run)
    assert table.pending_plan() is None
    assert isinstance(locked.plan_compaction(threshold=8_000, dry_run=True), Plan)  # nothing is carried over
    off = opened(table, {"hudi_assets.writers": "locked", "hudi_assets.table.services": "ours"})
    plan = off.plan_compaction(threshold=1_000)
    assert isinstance(plan, Plan)
    assert [len(op.carried_over) for op in plan.operations] == [1]


@pytest.mark.parametrize("version", [8, 9])
def test_later_versions_carry_nothing_over(session: LocalSession, tmp_path: Path, version: int) -> None:
    table = make(tmp_path / "t", table_version=version)
    put(table, session, 2_000, (1, 1_000, "a"))
    put(table, session, 9_000, (2, 8_000, "a"))
    before = snapshot(table)
    live = {"hudi_assets.writers": "locked"}
    plan = opened(table, {**live, "hudi_assets.query.grace": "0s"}).plan_compaction(threshold=1_000)
    assert isinstance(plan, Plan)
    assert plan.query_time is None
    first, second = (i for i in table.state().timeline.instants if i.is_completed)
    assert (first.completion or "") < plan.instant < second.timestamp
    assert [op.carried_over for op in plan.operations] == [()]
    table.execute_compaction(session, plan.instant)
    assert snapshot(table) == before
    assert [len(s.log_files) for s in table.state().view.latest] == [1]


def test_first_contact_with_hudis_defaults(session: LocalSession, tmp_path: Path) -> None:
    """Twelve commits in a burst, ten of which Hudi's cleaner retains: planned, with the time that queries have."""
    table = make(tmp_path / "t", table_version=9)
    for n in range(1, 13):
        put(table, session, n * 1_000, (n, n * 1_000, "a"))
    live = opened(table, {"hudi_assets.writers": "locked"})
    shown = live.plan_compaction(threshold=1_500, dry_run=True)
    assert isinstance(shown, Plan)
    time = shown.query_time
    assert time is not None
    assert (time.short, time.refused, time.key, time.needed) == (True, False, "hoodie.cleaner.hours.retained", 2)
    assert 0 <= time.minutes < 60
    seen = live.look().due
    assert isinstance(seen, Plan)
    assert seen.query_time is not None
    plan = live.plan_compaction(threshold=1_500)
    assert isinstance(plan, Plan)
    assert plan.query_time is not None
    assert live.pending_plan() is not None


def test_too_little_time_for_queries_is_refused_where_the_owner_says_so(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", table_version=9)
    for n in range(1, 4):
        put(table, session, n * 1_000, (n, n * 1_000, "a"))
    strict = opened(table, {"hudi_assets.writers": "locked", "hudi_assets.query.grace.least": "1h"})
    before = table.state().timeline.instants
    shown = strict.plan_compaction(threshold=1_500, dry_run=True)
    assert isinstance(shown, Plan)
    assert shown.query_time is not None
    assert shown.query_time.refused
    with pytest.raises(InvalidInput, match=r"hoodie\.cleaner\.hours\.retained=2 or more"):
        strict.plan_compaction(threshold=1_500)
    assert table.state().timeline.instants == before
    due = strict.look().due
    assert isinstance(due, NoPlan)
    assert due.query_time is not None
    assert (due.reason, due.query_time.refused) == (due.query_time.words, True)
    # Nobody else cleans: as it is.
    stopped = opened(table, {"hudi_assets.writers": "stopped", "hudi_assets.query.grace.least": "1h"})
    assert isinstance(stopped.plan_compaction(threshold=1_500), Plan)


def test_file_groups_that_need_another_cut_wait_for_another_plan(session: LocalSession, tmp_path: Path) -> None:
    """Of `a` two commits are due, of `b` one; no instant parts both at once, so two plans do."""
    table = make(tmp_path / "t", table_version=9)
    put(table, session, 2_000, (1, 1_000, "a"), (2, 1_000, "b"))
    put(table, session, 3_000, (1, 1_500, "a"), (2, 9_000, "b"))
    put(table, session, 10_000, (1, 9_000, "a"))
    before = snapshot(table)
    taken = []
    while isinstance(plan := table.plan_compaction(threshold=2_000), Plan):
        taken.append([(op.partition, len(op.log_files)) for op in plan.operations])
        before_claim = table.freshness().threshold
        result = table.execute_compaction(session, plan.instant)
        assert result.threshold is not None
        assert before_claim is None or result.threshold >= before_claim
        assert snapshot(table) == before
    assert taken == [[("b", 1)], [("a", 2)]]
    assert table.freshness().threshold == 2_000
    assert table.plans_in_series
    assert not make(tmp_path / "six").plans_in_series


def test_a_planner_whose_lock_was_taken_writes_nothing(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t")
    put(table, session, 1_000, (1, 1_000, "a"))

    def taken(_: HeldLock) -> None:
        raise Conflict("Hudi's lock on the table was taken from this process.")

    monkeypatch.setattr(HeldLock, "check", taken)
    monkeypatch.setattr(planning, "switch_off", lambda *_: pytest.fail("hoodie.properties would be written"))
    with pytest.raises(Conflict):
        table.plan_compaction(threshold=1_000)
    assert table.pending_plan() is None
