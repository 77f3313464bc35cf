"""Log files below a base file that does not hold them: their rows are in no view, on versions 8 and 9."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.cli.output import freshness_facts
from hudi_assets.dagster.report import promise_metadata
from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import executor
from hudi_assets.engine.actions.compaction.hudi_executor import HudiExecutor
from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.model import Action, HiddenRows, Instant, NothingToDo, State
from hudi_assets.engine.table.files.hidden import Where, about_to_be_hidden, hidden_logs, where_is
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.compaction_plan import encode_plan
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.writers_zone.damage import Ahead
from hudi_assets.engine.transaction.late_log_files import refuse_stragglers
from hudi_assets.reporting.page import Page
from tests.local_session import LocalSession
from tests.unit.test_past_instants import SCHEMA, Clock, Table, moved


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> Table:
    path = tmp_path / "t"
    HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, data_latency="1s", table_version=9
    )
    return Table(path, session, Clock())


@pytest.fixture
def three(table: Table) -> list[str]:
    """Delta commits of event times 1000, 2000 and 9000, each with a row of its own."""
    return [table.put(key, ts) for key, ts in ((1, 1_000), (2, 2_000), (3, 9_000))]


@pytest.fixture
def above(table: Table, three: list[str]) -> str:
    """A plan of the first two, above the third's completion: as clocks that differ or are put back leave it."""
    plan = table.plan(2_000)
    above = moved(table.open().state().timeline.completions[three[2]], 1)
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    return above


@pytest.fixture
def hidden(table: Table, above: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, executed: the third row is in no view."""
    execute(table, above, monkeypatch)
    assert set(table.rows()) == {1, 2}
    return above


def execute(table: Table, instant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an engine does that looks for nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(executor, "refuse_stragglers", lambda state, plan: None)
        table.open().execute_compaction(table.session, instant)


def found(table: Table) -> set[str]:
    return {one.delta_commit.timestamp for one in hidden_logs(table.open().state())}


# ------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("completion", "bases", "made_of", "listed", "said"),
    [
        ("5", [], {}, False, Where.IN_VIEW),
        ("5", ["3"], {"3": ""}, False, Where.IN_VIEW),
        ("5", ["5"], {"5": ""}, False, Where.IN_VIEW),
        ("5", ["7"], {"7": ""}, True, Where.MERGED),
        ("5", ["7"], {"7": ""}, False, Where.HIDDEN),
        ("5", ["3", "7"], {"7": "3"}, False, Where.HIDDEN),
        ("5", ["5", "7"], {"7": "5"}, False, Where.HIDDEN),
        ("5", ["3", "7"], {"7": "6"}, False, Where.UNKNOWN),  # the base file of 6 was cleaned
        ("5", ["3", "7"], {"7": None}, False, Where.UNKNOWN),
        ("5", ["7", "9"], {"7": None, "9": ""}, False, Where.UNKNOWN),  # the first above it decides
        ("5", ["7", "9"], {"7": "", "9": "7"}, False, Where.HIDDEN),
    ],
)
def test_where_a_log_file_is(
    completion: str, bases: list[str], made_of: dict[str, str | None], listed: bool, said: Where
) -> None:
    assert where_is(completion, bases, made_of.__getitem__, listed=listed) is said


def test_a_sound_table_hides_nothing(table: Table, three: list[str]) -> None:
    assert found(table) == set()
    table.compact(2_000)
    assert found(table) == set()
    table.put(4, 9_500)
    table.compact(9_500)
    assert found(table) == set()


def test_what_lies_behind_a_compaction_is_found(table: Table, three: list[str], hidden: str) -> None:
    (one,) = hidden_logs(table.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (three[2], hidden)
    assert one.path == table.only(f".*_{three[2]}.log.*").name
    assert (one.gone, one.taken_by) == (False, None)
    table.only(f".*_{three[2]}.log.*").unlink()
    assert [one.gone for one in hidden_logs(table.open().state())] == [True]


def test_later_compactions_change_nothing(table: Table, three: list[str], hidden: str) -> None:
    table.put(4, 9_500)
    table.compact(9_500)
    assert set(table.rows()) == {1, 2, 4}
    assert found(table) == {three[2]}


def test_files_ages_say_nothing(table: Table, three: list[str], hidden: str) -> None:
    for path in (*table.path.iterdir(), *table.timeline.iterdir()):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    assert found(table) == {three[2]}


def test_without_the_plan_nothing_is_said(table: Table, three: list[str], hidden: str) -> None:
    (table.timeline / f"{hidden}.compaction.requested").unlink()
    assert found(table) == set()


def test_a_log_file_behind_the_first_base_file(table: Table) -> None:
    """An insert reads no log file: what was completed below it, and came into the group, is in no view."""
    frame = table.session.rows([{"id": 1, "ts": 1_000, "v": 0}], SCHEMA)
    first = table.open().bulk_insert(table.session, frame).instant
    assert first is not None
    second = table.put(2, 2_000)
    assert set(table.rows()) == {1, 2}
    assert found(table) == set()
    later = begun_later(table, first, moved(table.open().state().timeline.completions[second], 1))
    assert set(table.rows()) == {1}
    (one,) = hidden_logs(table.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (second, later)


def begun_later(table: Table, instant: str, later: str) -> str:
    """A bulk insert as if it had begun at a later instant: its base file and its files on the timeline."""
    state = table.open().state()
    commit = state.commit(next(i for i in state.timeline.instants if i.timestamp == instant))
    stats = tuple(stat._replace(path=stat.path.replace(instant, later)) for stat in commit.stats)
    for path in (*table.path.glob(f"*{instant}*"), *table.timeline.glob(f"{instant}*")):
        path.rename(path.with_name(path.name.replace(instant, later)))
    done = table.only(f".hoodie/timeline/{later}_*")
    done.unlink()
    body = state.layout.encode_commit(replace(commit, stats=stats))
    done.with_name(f"{later}_{moved(later, 5)}.deltacommit").write_bytes(body)
    return later


def test_a_file_that_is_in_the_view_is_never_called_hidden(table: Table) -> None:
    """Completed below its own request, it opens a slice above the base file."""
    frame = table.session.rows([{"id": 1, "ts": 1_000, "v": 0}], SCHEMA)
    first = table.open().bulk_insert(table.session, frame).instant
    second = table.put(2, 2_000)
    done = table.only(f".hoodie/timeline/{second}_*.deltacommit")
    done.rename(done.with_name(f"{second}_{moved(first or '', -1)}.deltacommit"))
    assert 2 in table.rows()
    assert found(table) == set()


def test_overwritten_rows_are_not_missed(table: Table, three: list[str], hidden: str) -> None:
    """An insert overwrite meant the group's rows to go; a clustering did not."""
    state = table.open().state()
    ((partition, file_id),) = state.view.groups
    at = moved(state.timeline.last or "", 1_000)
    storage = state.storage
    for operation, said in (("CLUSTER", {three[2]}), ("INSERT_OVERWRITE", set())):
        body = CommitMetadata(operation, (), replaced={partition: [file_id]})
        storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.replacecommit", state.layout.encode_commit(body))
        assert found(table) == said


# ------------------------------------------------------------------------------- prevention


def test_a_plan_that_would_hide_rows_is_told(table: Table, three: list[str], above: str) -> None:
    state = table.open().state()
    (plan,) = state.executable_plans
    (one,) = about_to_be_hidden(state, plan)
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (three[2], above)
    assert hidden_logs(state) == ()


def test_neither_executor_hides_rows(
    table: Table, three: list[str], above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Conflict, match=f"{three[2]}.* is not in the plan"):
        table.open().execute_compaction(table.session, above)
    for name in ("check_session", "check_jvm_zone", "spark_of"):
        monkeypatch.setattr(f"hudi_assets.engine.actions.compaction.hudi_executor.{name}", lambda *_: None)
    monkeypatch.setattr(HudiExecutor, "_run", lambda *_: pytest.fail("Hudi was asked to execute it"))
    with pytest.raises(Conflict, match=f"{three[2]}.* is not in the plan"):
        HudiExecutor(table.open()._table).execute(table.session, above)
    table.open().unschedule(above)
    assert set(table.rows()) == {1, 2, 3}


def test_nor_is_another_engines_plan_executed_that_would(
    table: Table, three: list[str], above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's plans stand at the time of planning: the rule for ours, that nothing is below, does not hold for them."""
    monkeypatch.setattr("hudi_assets.engine.model.Plan.is_ours", False)
    state = table.open().state()
    (plan,) = state.executable_plans
    with pytest.raises(Conflict, match="executing it would hide its rows") as told:
        refuse_stragglers(state, plan)
    assert f"Unschedule {above}" in str(told.value)


def test_a_clean_keeps_the_last_copy(table: Table, three: list[str], hidden: str) -> None:
    lost = table.only(f".*_{three[2]}.log.*")
    for number in range(3):
        table.put(4, 9_500 + number)
        table.compact(9_500 + number)
    cleaned = table.open(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert not isinstance(cleaned, NothingToDo)
    assert lost.exists()
    assert table.only(f".*_{three[0]}.log.*").exists()  # a slice goes whole or stays whole


# ------------------------------------------------------------------------------- what is told, and the ways out


def findings(table: Table, **settings: str) -> dict[str, tuple[str, str, str]]:
    return {one.kind: (one.path, one.what, one.hint) for one in table.open(**settings).validate()}


def test_validate_tells_what_is_hidden(table: Table, three: list[str], hidden: str) -> None:
    told = findings(table)
    assert told.keys() == {"hidden_rows"}
    path, what, hint = told["hidden_rows"]
    lost, done = table.only(f".*_{three[2]}.log.*"), table.only(f".hoodie/timeline/{three[2]}_*.deltacommit")
    assert path == f".hoodie/timeline/{done.name}"
    assert f"1 log file in 1 file group ({lost.name}) is in no view" in what
    assert f"below compaction {hidden}, whose plan does not list them." in what
    assert f"Roll {hidden} back and compact again" in hint
    assert f"{WRITTEN_AGAIN}={three[2]}" in hint
    lost.unlink()
    _, what, hint = findings(table)["hidden_rows"]
    assert "1 of them was cleaned" in what
    assert "back" not in hint


def test_validate_tells_what_a_plan_would_hide(table: Table, three: list[str], above: str) -> None:
    told = findings(table)
    assert told.keys() == {"rows_to_be_hidden"}
    _, what, hint = told["rows_to_be_hidden"]
    assert f"once compaction {above} is executed" in what
    assert hint == f"Unschedule {above} before it is executed, and plan again."
    table.open().unschedule(above)
    assert findings(table) == {}


def test_a_later_compaction_is_not_to_be_rolled_back(table: Table, three: list[str], hidden: str) -> None:
    """What it stands on has a later one on top."""
    table.put(4, 9_500)
    table.compact(9_500)
    _, _, hint = findings(table)["hidden_rows"]
    assert f"Write the rows of {three[2]} once more" in hint
    assert "Roll" not in hint


def test_a_rollback_of_the_compaction_brings_the_rows_back(table: Table, three: list[str], hidden: str) -> None:
    table.put(4, 9_500)
    table.open().rollback(hidden)
    assert set(table.rows()) == {1, 2, 3, 4}
    assert findings(table) == {}
    table.compact(9_500)
    assert table.in_base_files() == {1, 2, 3, 4}
    assert findings(table) == {}


def test_rows_written_again_are_stated(table: Table, three: list[str], hidden: str) -> None:
    table.put(3, 9_000)
    assert findings(table).keys() == {"hidden_rows"}
    assert findings(table, **{WRITTEN_AGAIN: f" {three[2]}, {three[0]}"}) == {}
    with pytest.raises(InvalidInput, match="'soon', which is no instant"):
        table.open(**{WRITTEN_AGAIN: f"{three[2]},soon"})


def test_a_plan_that_takes_them_all_the_same(table: Table, three: list[str], hidden: str) -> None:
    """As Hudi's planner may (apache/hudi#19290): once it is executed, the rows are in the base file."""
    table.put(4, 9_500)
    plan = table.plan(9_500)
    state = table.open().state()
    (op,) = plan.operations
    taken = replace(op, log_files=(*op.log_files, table.only(f".*_{three[2]}.log.*").name))
    body = encode_plan(replace(plan, operations=(taken,)))
    state.storage.replace(state.layout.instant_path(plan.instant, Action.COMPACTION, State.REQUESTED), body)
    _, _, hint = findings(table)["hidden_rows"]
    assert f"Compaction {plan.instant} takes them: execute it before a clean." in hint


@pytest.mark.parametrize(("appends", "said"), [(True, "Do not roll it back"), (False, "roll 2 back")])
def test_an_instant_ahead_is_rolled_back_where_log_files_are_their_own(appends: bool, said: str) -> None:
    ahead = Ahead(Instant("2", Action.COMMIT, State.COMPLETED, "2.commit"), 1, 0, ("1",))
    assert said in ahead.way_out(appends_to_planned_slice=appends)


# ------------------------------------------------------------------------------- the promise


def test_the_promise_stops_below_hidden_rows(table: Table, three: list[str], hidden: str) -> None:
    promise = table.open().freshness()
    assert (promise.freshness, promise.reason, promise.min_event_time) == (8_999, None, None)
    assert promise.watermark is not None
    assert promise.watermark > 9_000
    (rows,) = promise.hidden
    assert rows == HiddenRows(three[2], hidden, 1, 9_000)
    assert rows.words.endswith(f"{three[2]} is in no view, behind {hidden}: from 1970-01-01T00:00:09Z on")
    assert freshness_facts(promise)["in no view"] == promise_metadata(promise, 0)["rows_in_no_view"] == rows.words
    assert table.open().past_freshness()[-1].after == 8_999


def test_the_page_names_them(table: Table, three: list[str], hidden: str) -> None:
    (rows,) = table.open().freshness().hidden
    assert f"<li>{rows.words}.</li>" in Page(table.open(), None)._first()


def test_what_remains_below_them_stops_it_too(table: Table, three: list[str], hidden: str) -> None:
    table.put(5, 8_000)
    promise = table.open().freshness()
    assert (promise.freshness, promise.min_event_time) == (7_999, 8_000)


def test_the_cost_curve_promises_no_more(table: Table, three: list[str], hidden: str) -> None:
    table.put(4, 9_500)
    (point,) = table.open().cost_curve()
    assert (point.threshold, point.freshness) == (9_500, 8_999)
    table.compact(9_500)
    assert table.open().freshness().freshness == 8_999


def test_a_cleaned_one_counts_by_its_commit(table: Table, three: list[str], hidden: str) -> None:
    table.only(f".*_{three[2]}.log.*").unlink()
    assert table.open().freshness().freshness == 8_999


def test_another_engines_cleaned_one_is_bounded_by_the_latency(table: Table, three: list[str], hidden: str) -> None:
    """Its commit states no event times; its records came at most a data latency after they happened."""
    of_another_engine(table, three[2])
    lost = table.only(f".*_{three[2]}.log.*")
    assert table.open().freshness().freshness == 8_999  # the file itself tells
    lost.unlink()
    table.clock.ms += 60_000
    promise = table.open().freshness()
    assert promise.freshness == instant_ms(three[2], "UTC") - 1_000 - 1
    without = table.open(**{"hudi_assets.data.latency": ""}).freshness()
    assert without.freshness is None
    assert f"{lost.name} are unknown: it is in no view and was cleaned; state {WRITTEN_AGAIN}={three[2]}" in str(
        without.reason
    )


def of_another_engine(table: Table, instant: str) -> None:
    state = table.open().state()
    done = next(i for i in state.timeline.instants if i.timestamp == instant)
    commit = state.commit(done)
    extra = {key: value for key, value in commit.extra.items() if not key.startswith("hudi_assets.")}
    (table.timeline / done.file_name).write_bytes(state.layout.encode_commit(replace(commit, extra=extra)))
    (table.path / ".hoodie/.aux/hudi_assets/memory.json").unlink(missing_ok=True)


def test_the_promise_goes_on_once_they_are_back(table: Table, three: list[str], hidden: str) -> None:
    table.open().rollback(hidden)
    promise = table.open().freshness()
    assert (promise.freshness, promise.hidden) == (999, ())
    table.compact(9_000)
    promise = table.open().freshness()
    assert promise.freshness == promise.watermark


def test_the_promise_goes_on_once_they_are_written_again(table: Table, three: list[str], hidden: str) -> None:
    again = {WRITTEN_AGAIN: three[2]}
    table.put(3, 9_000)
    promise = table.open(**again).freshness()
    assert (promise.freshness, promise.min_event_time, promise.hidden) == (8_999, 9_000, ())
    table.compact(9_000)
    assert table.open().freshness().freshness == 8_999
    promise = table.open(**again).freshness()
    assert promise.freshness == promise.watermark


# ------------------------------------------------------------------------------- what outlives archiving

FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}


@pytest.fixture
def archived(table: Table, three: list[str], hidden: str) -> str:
    """The delta commit whose rows are hidden, once it and the compaction before them are archived."""
    for number in range(5):
        table.put(10 + number, 20_000 + number)
    table.open(**FEW).archive()
    state = table.open().state()
    assert state.timeline.is_archived(three[2])
    assert state.timeline.is_archived(hidden)
    return three[2]


def test_hidden_rows_outlive_the_archiving_of_their_commit(table: Table, hidden: str, archived: str) -> None:
    lost = table.only(f".*_{archived}.log.*")
    for gone in (False, True):
        if gone:
            lost.unlink()
        promise = table.open().freshness()
        assert promise.freshness == 8_999
        assert promise.hidden == (HiddenRows(archived, hidden, 1, 9_000),)
        path, what, hint = findings(table)["hidden_rows"]
        assert path == lost.name
        assert ("cleaned" in what) is gone
        assert f"Write the rows of {archived} once more" in hint
    table.put(3, 9_000)
    assert table.open(**{WRITTEN_AGAIN: archived}).freshness().hidden == ()
    table.compact(30_000)
    promise = table.open(**{WRITTEN_AGAIN: archived}).freshness()
    assert promise.freshness == promise.watermark
    assert findings(table, **{WRITTEN_AGAIN: archived}) == {}
    assert found(table) == {archived}  # it is a word of that process alone


def test_a_clean_keeps_the_last_copy_of_an_archived_commit(table: Table, archived: str) -> None:
    lost = table.only(f".*_{archived}.log.*")
    for number in range(3):
        table.put(4, 30_000 + number)
        table.compact(30_000 + number)
    table.open(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert lost.exists()
    assert found(table) == {archived}


def test_without_the_memory_archived_rows_are_not_told_of(table: Table, archived: str) -> None:
    (table.path / ".hoodie/.aux/hudi_assets/memory.json").unlink()
    assert found(table) == set()


def test_what_is_remembered_is_not_believed_of_a_compaction_that_is_gone(
    table: Table, three: list[str], hidden: str
) -> None:
    """It was rolled back and made again, and all of it archived, without a look of ours in between."""
    for number in range(2):
        table.put(4, 9_500 + number)
        table.open().freshness()
    memory = table.path / ".hoodie/.aux/hudi_assets/memory.json"
    before = memory.read_bytes()
    table.open().rollback(hidden)
    again = table.compact(9_500).instant
    for number in range(5):
        table.put(10 + number, 20_000 + number)
    table.open(**FEW).archive()
    assert table.open().state().timeline.is_archived(again)
    memory.write_bytes(before)
    assert table.open().state().archived_facts.hides
    assert table.only(f".*_{three[2]}.log.*").exists()
    assert found(table) == set()
    assert set(table.rows()) == {1, 2, 3, 4, *range(10, 15)}
