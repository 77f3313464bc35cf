"""What the policy is told of a real table, what it proposes there, and the commands that show it. No Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hudi_assets.cli import app
from hudi_assets.engine import (
    CompactionSeries,
    Feed,
    HudiTable,
    InvalidInput,
    Plan,
    SloTerms,
    StartNow,
    WaitUntil,
    compare,
)
from hudi_assets.engine.event_time.commit_bound import bounded_summaries
from hudi_assets.engine.past import rewriting
from hudi_assets.engine.past.rewriting import cut_of, history_of, view_of
from hudi_assets.engine.slo.selection import taken
from hudi_assets.engine.slo.values import UNKNOWN, Cut
from tests.tables.life import SCHEMA, Life
from tests.tables.local_session import LocalSession

NOTHING_TO_DO = 3
each_version = pytest.mark.parametrize("life", [6, 8, 9], indirect=True)


@pytest.fixture
def life(request: pytest.FixtureRequest, session: LocalSession, tmp_path: Path) -> Life:
    """Event times from n s on of the upsert at n + 3 s; two are compacted, three remain."""
    made = Life(tmp_path / "t", session, getattr(request, "param", 9))
    for turn in range(5):
        made.upsert()
        if turn == 1:
            made.compact()
    return made


@each_version
def test_the_view_is_what_remains(life: Life) -> None:
    state = life.table.state()
    seen = view_of(state)
    assert [(group.partition, len(group.logs)) for group in seen.groups] == [("p=a", 3), ("p=b", 3)]
    assert all(group.base_bytes > 0 for group in seen.groups)
    assert [(log.low, log.high, log.committed_ms) for log in seen.groups[0].logs] == [
        (n * 1000, n * 1000 + 2, n * 1000 + 3000) for n in (3, 4, 5)
    ]
    assert sum(log.size for group in seen.groups for log in group.logs) == life.table.stats().remaining_bytes
    assert seen.latency_ms == 1000
    assert seen.cut is (Cut.RANGES if life.table.config.table_version == 6 else Cut.COMMITS)


def test_what_is_carried_over_came_when_it_was_written_first(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    life.upsert()
    life.compact(1)
    (log,) = view_of(life.table.state()).groups[0].logs
    assert (log.low, log.committed_ms) == (2000, 5000)


def test_history_is_the_timelines(life: Life) -> None:
    told = history_of(life.table.state())
    (past,) = life.table.past_compactions()
    assert [(done.begun_ms, done.duration_ms) for done in told.done] == [(5000, past.duration_ms)]
    assert told.done[0].size == (past.bytes_read or 0) + past.bytes_written
    assert told.commit_gap_ms == 1000


@each_version
def test_what_is_proposed_is_what_is_planned_there(life: Life) -> None:
    found = life.table.propose_compaction(SloTerms(5500))
    assert isinstance(found, StartNow)
    plan = life.table.plan_compaction(threshold=found.threshold, dry_run=True)
    assert isinstance(plan, Plan)
    assert len(plan.operations) == found.groups
    assert sum(len(op.log_files) for op in plan.operations) == found.logs


@each_version
def test_late_rows_go_with_their_commit_where_no_cut_parts_them(life: Life) -> None:
    """They have a log file of their own, on each version. But on versions 8 and 9 a commit is at one instant."""
    rows = [{"id": i, "ts": 9000 - late, "v": 9, "p": "a"} for i, late in enumerate([6000, 0])]
    life.number += 1
    life.table.upsert(life.session, life.session.rows(rows, SCHEMA), clock_time=datetime.fromtimestamp(9, UTC))
    logs = view_of(life.table.state()).groups[0].logs
    assert [(log.low, log.committed_ms) for log in logs[-2:]] == [(3000, 9000), (9000, 9000)]
    plan = life.table.plan_compaction(threshold=3000, dry_run=True)
    assert isinstance(plan, Plan)
    groups = view_of(life.table.state()).groups
    found = sum(len(taken(group, 3000, cut_of(life.table.state()))) for group in groups)
    assert found == sum(len(op.log_files) for op in plan.operations)


def test_plans_of_one_start_count_as_one_compaction(session: LocalSession, tmp_path: Path) -> None:
    """On versions 8 and 9 file groups that are cut at other instants have a plan of their own."""
    life = Life(tmp_path / "t", session, 9)
    life.upsert("a")
    life.upsert("b", later=-1000)
    life.upsert("b", later=5000)
    life.upsert("a", later=5000)
    life.upsert("b", later=-3000)
    series = life.table.compact(session, threshold=2500)
    assert isinstance(series, CompactionSeries)
    bills = life.table.bills()
    assert len(series.compactions) == len(bills) == 2
    (done,) = history_of(life.table.state()).done
    assert done.size == sum((bill.bytes_read or 0) + bill.bytes_written for bill in bills)
    assert done.duration_ms == sum(bill.duration_ms or 0 for bill in bills)
    life.upsert()
    life.compact()
    assert len(history_of(life.table.state()).done) == 2


def test_a_long_slo_waits(life: Life) -> None:
    found = life.table.propose_compaction(SloTerms(3_600_000))
    assert isinstance(found, WaitUntil)
    assert found.until_ms > life.table.now_ms() + 3_000_000


def test_a_clock_that_commits_move_stands_still_in_between(session: LocalSession, tmp_path: Path) -> None:
    """The next commit, and the next look with it, is three hours away: by then eight hours are over."""
    made = Life(tmp_path / "t", session)
    for _ in range(3):
        made.upsert()
        made.number += 3 * 3600 - 1
    assert history_of(made.table.state()).commit_gap_ms == 3 * 3_600_000
    assert isinstance(made.table.propose_compaction(SloTerms(8 * 3_600_000)), StartNow)
    assert isinstance(made.table.propose_compaction(SloTerms(10 * 3_600_000)), WaitUntil)


def test_a_pending_plan_comes_first(life: Life) -> None:
    plan = life.table.plan_compaction(threshold=3500)
    assert isinstance(plan, Plan)
    found = life.table.propose_compaction(SloTerms(5500))
    assert isinstance(found, WaitUntil)
    assert plan.instant in found.why


def test_without_a_latency_there_is_no_slo(session: LocalSession, tmp_path: Path) -> None:
    table = Life(tmp_path / "t", session).table
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    properties.write_text("".join(one for one in properties.open() if not one.startswith("hudi_assets.data.latency")))
    with pytest.raises(InvalidInput, match="needs a data latency"):
        HudiTable.open(table.path).propose_compaction(SloTerms(5500))


def test_an_unknown_event_time_is_unknown(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    state = life.table.state()
    unknown = {path: one._replace(min_event_time=None, reason="x") for path, one in bounded_summaries(state).items()}
    monkeypatch.setattr(rewriting, "bounded_summaries", lambda *_: unknown)
    assert {log.low for group in view_of(state).groups for log in group.logs} == {UNKNOWN}


def test_the_past_can_be_simulated(life: Life) -> None:
    feed = life.table.past_feed()
    assert [commit.at_ms for commit in feed.commits] == [4000, 5000, 6000, 7000, 8000]
    assert all(len(commit.logs) == 2 for commit in feed.commits)
    assert feed.cut is cut_of(life.table.state())
    found = compare(feed, SloTerms(3_600_000))
    assert found.ours.bytes_moved > 0


@each_version
def test_base_files_grow_in_the_past_as_they_did(life: Life) -> None:
    """Two commits made the base files, three wait. All of them have the same keys."""
    feed = life.table.past_feed()
    sizes = {(group.partition, group.file_id): group.base_bytes for group in view_of(life.table.state()).groups}
    assert feed.bases == dict.fromkeys(sizes, 0)
    assert grown(feed, 0, 2) == sizes
    life.compact()
    after = {
        (one.partition, one.file_id): one.base_file.size for one in life.table.state().view.latest if one.base_file
    }
    again = life.table.past_feed()
    assert again.bases == feed.bases
    assert grown(again, 0, 2) == sizes
    assert grown(again, 0, 5) == after


def grown(feed: Feed, first: int, upto: int) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for log in (log for commit in feed.commits[first:upto] for log in commit.logs):
        found[log.place] = found.get(log.place, 0) + log.growth
    return found


def test_what_was_never_compacted_is_taken_for_new(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    for count in (2, 4, 40):
        life.upsert("a", ids=range(count))
    feed = life.table.past_feed()
    logs = [log for commit in feed.commits for log in commit.logs]
    first = logs[0].growth
    assert [log.growth for log in logs] == pytest.approx([first, 2 * first, 20 * first], abs=20)
    assert all(0 < log.growth < log.size for log in logs)
    assert feed.machine is None


def test_a_past_without_event_times_is_refused(session: LocalSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No delta commit"):
        Life(tmp_path / "t", session).table.past_feed()


# -- commands ---------------------------------------------------------------------------------------


def test_plan_says_what_is_proposed_and_why(life: Life) -> None:
    path = str(life.path)
    answer = CliRunner().invoke(app, ["plan", path, "--slo", "6s", "--dry-run", "--writers", "stopped"])
    assert answer.exit_code == 0, answer.output
    assert "compact up to 1970-01-01T00:00:05.001Z" in answer.output
    assert "rows of 1970-01-01T00:00:03Z" in answer.output
    assert "would be planned" in answer.output
    as_json = CliRunner().invoke(app, ["plan", path, "--slo", "6s", "--dry-run", "--json", "--writers", "stopped"])
    assert json.loads(as_json.output)["threshold"] == "1970-01-01T00:00:05.001Z"
    wait = CliRunner().invoke(app, ["plan", path, "--slo", "6h", "--dry-run", "--writers", "stopped"])
    assert wait.exit_code == NOTHING_TO_DO
    assert "wait until" in wait.output
    assert life.table.pending_plan() is None


def test_plan_publishes_what_is_proposed(life: Life) -> None:
    answer = CliRunner().invoke(app, ["plan", str(life.path), "--slo", "6s", "--writers", "stopped"])
    assert answer.exit_code == 0, answer.output
    plan = life.table.pending_plan()
    assert plan is not None
    assert plan.claims == 5001


def test_wrong_hours_are_wrong_use(life: Life) -> None:
    hours = "5-30"
    answer = CliRunner().invoke(app, ["plan", str(life.path), "--slo", "6s", "--hours", hours])
    assert isinstance(answer.exception, InvalidInput)


def test_simulate_a_tables_own_past(life: Life, tmp_path: Path) -> None:
    picture = tmp_path / "p.svg"
    answer = CliRunner().invoke(app, ["simulate", str(life.path), "--slo", "1h,1d", "--picture", str(picture)])
    assert answer.exit_code == 0, answer.output
    assert answer.output.count("this policy") == 2
    assert picture.read_text().startswith("<svg")
    as_json = CliRunner().invoke(app, ["simulate", str(life.path), "--slo", "1h", "--json"])
    (one,) = json.loads(as_json.output)["simulations"]
    assert one["ours"]["policy"] == "this policy"


def test_a_table_and_made_up_rows_are_not_simulated_together(life: Life) -> None:
    answer = CliRunner().invoke(app, ["simulate", str(life.path), "--distribution", "steady"])
    assert isinstance(answer.exception, InvalidInput)
