"""What is told of rows in no view, what brings them back, and where the promise stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_assets.catalog.publication import promise_properties
from hudi_assets.cli.output import freshness_facts
from hudi_assets.dagster.report import promise_metadata
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, HiddenRows, Instant, State
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.timeline.compaction_plan import encode_plan
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.writers_zone.damage import Ahead
from hudi_assets.reporting.page import Page
from tests.unit.hidden_rows.steps import findings, found
from tests.unit.test_past_instants import Table

# ------------------------------------------------------------------------------- what is told, and the ways out


def test_rows_in_no_view_stop_their_partition(table: Table, hidden: str) -> None:
    (only,) = table.open().partition_freshness()
    assert (only.freshness, only.holds_back, only.remaining_log_files) == (8_999, True, 0)


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
    assert f"Write those rows of {three[2]} once more that nobody has written or deleted since." in hint
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
    last = table.open().past_freshness()[-1]
    assert (last.after, last.remaining_log_files, last.remaining_bytes) == (8_999, 0, 0)
    assert promise_properties(promise, "/t", None)["hudi_assets.reason"] == rows.words


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
        assert f"Write those rows of {archived} once more" in hint
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
