"""Base files that were made of a later one: what came with them is in no view, on every version."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from hudi_assets.cli.output import show_freshness
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Freshness, HiddenRows, NothingToDo
from hudi_assets.engine.table.files.hidden import hidden_files
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_assets.engine.timeline.instants import instant_ms
from tests.tables.steps import with_properties
from tests.unit.hidden_rows.growing import FEW, GrowingTable
from tests.unit.hidden_rows.steps import execute, findings, found
from tests.unit.test_past_instants import Table, moved

_MEMORY = ".hoodie/.aux/hudi_assets/memory.json"


# ------------------------------------------------------------------------------- the rule


def test_a_base_file_that_was_made_of_a_later_one_is_found(growing: GrowingTable, two: list[str], unseen: str) -> None:
    (one,) = hidden_files(growing.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (unseen, two[1])
    assert (one.path, one.is_base, one.gone) == (growing.base_of(unseen).name, True, False)
    growing.base_of(unseen).unlink()
    assert [one.gone for one in hidden_files(growing.open().state())] == [True]
    growing.put(4, 9_500)
    assert set(growing.rows()) == {1, 2, 4}
    assert found(growing) == {unseen}


def test_each_write_of_a_clock_that_is_behind_is_found(growing: GrowingTable, two: list[str], unseen: str) -> None:
    """They all are made of the one that stays the newest."""
    another = growing.begun_at(growing.put(4, 9_500), moved(two[1], -2))
    assert set(growing.rows()) == {1, 2}
    assert found(growing) == {unseen, another}


@pytest.mark.slow
def test_a_sound_table_hides_no_base_file(growing: GrowingTable) -> None:
    """Inserts, an update, a compaction, what is rolled back, restored, cleaned and archived."""
    for key in range(3):
        saved = growing.put(key, 1_000 + key)
        assert found(growing) == set()
    growing.open().savepoint()
    growing.put(1, 3_000)
    assert found(growing) == set()
    growing.compact(4_000)
    assert found(growing) == set()
    growing.open().rollback(growing.put(7, 4_000))
    assert found(growing) == set()
    growing.put(8, 4_100)
    growing.open().restore(saved)
    growing.open().delete_savepoint(saved)
    assert found(growing) == set()
    assert set(growing.rows()) == {0, 1, 2}
    for key in range(10, 16):
        growing.put(key, 5_000 + key)
        assert found(growing) == set()
    growing.open(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert found(growing) == set()
    growing.open(**FEW).archive()
    assert found(growing) == set()
    assert findings(growing) == {}


@pytest.mark.parametrize("action", [Action.COMMIT, Action.REPLACE_COMMIT])
def test_neither_compactions_nor_clusterings_hide_themselves(
    growing: GrowingTable, two: list[str], unseen: str, action: Action
) -> None:
    """A compaction's instant is its plan's, which may lie below what it was made of; its log files stay in the view."""
    body = growing.body(unseen)
    growing.completed(unseen).unlink()
    growing.writes(unseen, action, body)
    assert found(growing) == set()


def test_once_the_later_one_is_rolled_back_it_is_in_the_view(
    growing: GrowingTable, two: list[str], unseen: str
) -> None:
    growing.vanishes(two[1])
    assert set(growing.rows()) == {1, 2, 3}
    assert found(growing) == set()
    next_one = growing.begun_at(growing.put(4, 9_500), moved(two[1], -1))
    assert set(growing.rows()) == {1, 2, 3, 4}  # made of it, and below the instant that was rolled back
    assert unseen < next_one < two[1]
    assert found(growing) == set()


@pytest.mark.parametrize(("operation", "hides"), [("CLUSTER", True), ("INSERT_OVERWRITE", False)])
def test_overwritten_rows_of_base_files_are_not_missed(
    growing: GrowingTable, two: list[str], unseen: str, operation: str, hides: bool
) -> None:
    ((partition, file_id),) = growing.open().state().view.groups
    body = CommitMetadata(operation, (), replaced={partition: [file_id]})
    growing.writes(moved(two[1], 1_000), Action.REPLACE_COMMIT, body)
    assert found(growing) == ({unseen} if hides else set())


def test_a_log_file_lies_behind_the_base_file_that_is_seen(
    table: Table, three: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not behind one that nobody sees, which came between the log file and the compaction that left it out."""
    plan = table.plan(2_000)
    completion = table.open().state().timeline.completions[three[2]]
    between, above = moved(completion, 1), moved(completion, 3)
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    execute(table, above, monkeypatch)
    state = table.open().state()
    (base,) = state.view.base_files
    name = state.layout.base_file_name(base.file_id, "0-0-0", between)
    shutil.copy(table.path / base.path, table.path / name)
    body = CommitMetadata("UPSERT", (WriteStat(name, "", base.file_id, above, base.size, num_writes=2),))
    state.storage.replace(
        f".hoodie/timeline/{between}_{moved(between, 1)}.deltacommit", state.layout.encode_commit(body)
    )
    assert found(table) == {three[2], between}


# ------------------------------------------------------------------------------- what is told, and the way out


def test_validate_tells_of_base_files(growing: GrowingTable, two: list[str], unseen: str) -> None:
    told = findings(growing)
    assert told.keys() == {"hidden_rows"}
    path, what, hint = told["hidden_rows"]
    assert path.endswith(growing.completed(unseen).name)
    assert f"1 base file in 1 file group ({growing.base_of(unseen).name}) is in no view" in what
    assert f"made of what {two[1]} wrote, and that instant is later than {unseen}." in what
    assert hint.startswith("Stop the writers' cleaner. Write those rows")
    assert f"{WRITTEN_AGAIN}={unseen}" in hint


def test_a_compaction_that_a_base_file_was_made_of_is_not_to_be_rolled_back(growing: GrowingTable) -> None:
    """The base file holds its rows: it would be in the view, with them."""
    growing.put(1, 1_000)
    growing.put(1, 1_500)
    compaction = growing.compact(2_000).instant
    lost = growing.begun_at(growing.put(3, 9_000), moved(compaction, -1))
    (one,) = hidden_files(growing.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp, one.behind.action) == (lost, compaction, Action.COMMIT)
    _, what, hint = findings(growing)["hidden_rows"]
    assert f"made of what {compaction} wrote" in what
    assert "Roll" not in hint
    with pytest.raises(InvalidInput, match=f"{lost} is earlier and made a base file of what it wrote"):
        growing.open().rollback(compaction)


def test_what_a_base_file_was_made_of_is_not_rolled_back(growing: GrowingTable, two: list[str], unseen: str) -> None:
    """Its rows would stay: they are in the base file that would be in the view then."""
    with pytest.raises(InvalidInput, match=f"deltacommit {unseen} is earlier and made a base file of what it wrote"):
        growing.open().rollback(two[1])
    assert set(growing.rows()) == {1, 2}


def test_a_savepoint_between_them_is_not_restored(growing: GrowingTable, two: list[str], unseen: str) -> None:
    """As at that savepoint the table did not have the rows of the later one, which the base file holds."""
    with growing.without(two[1], unseen):
        growing.open().savepoint()
    with growing.without(two[1]):
        growing.open().savepoint()
    with pytest.raises(InvalidInput, match=f"{unseen} is not later, and made a base file of what {two[1]} wrote"):
        growing.open().restore(unseen)
    assert set(growing.rows()) == {1, 2}
    growing.open().delete_savepoint(unseen)
    growing.open().restore(two[0])
    assert set(growing.rows()) == {1}


def test_base_files_whose_rows_were_written_again(growing: GrowingTable, two: list[str], unseen: str) -> None:
    growing.put(3, 9_000)
    assert set(growing.rows()) == {1, 2, 3}
    assert findings(growing).keys() == {"hidden_rows"}
    again = {WRITTEN_AGAIN: unseen}
    assert findings(growing, **again) == {}
    promise = growing.open(**again).freshness()
    assert (promise.hidden, promise.freshness) == ((), promise.watermark)


def test_a_clean_keeps_the_last_copy_of_a_base_file(growing: GrowingTable, two: list[str], unseen: str) -> None:
    for number in range(3):
        growing.put(10 + number, 9_500 + number)
    cleaned = growing.open(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert not isinstance(cleaned, NothingToDo)
    assert growing.base_of(unseen).exists()
    assert not list(growing.path.glob(f"*_{two[0]}.parquet"))


# ------------------------------------------------------------------------------- the promise


def test_the_promise_stops_below_a_hidden_base_file(growing: GrowingTable, two: list[str], unseen: str) -> None:
    for gone in (False, True):
        promise = growing.open().freshness()
        assert (promise.freshness, promise.min_event_time, promise.reason) == (8_999, None, None)
        assert promise.hidden == (HiddenRows(unseen, two[1], 1, 9_000),)
        assert promise.hidden[0].words.startswith(f"1 file of delta commit {unseen} is in no view")
        if not gone:
            growing.base_of(unseen).unlink()
    last = growing.open().past_freshness()[-1]
    assert (last.after, last.remaining_log_files) == (8_999, 0)


def test_before_a_hidden_base_file_was_written_nothing_was_in_no_view(
    growing: GrowingTable, two: list[str], unseen: str
) -> None:
    (told,) = [one for one in growing.open().past_freshness() if one.instant == unseen]
    assert told.after == 8_999
    assert told.before is not None
    assert told.before > 8_999


def test_another_engines_base_file_is_bounded_by_the_latency(
    growing: GrowingTable, two: list[str], unseen: str
) -> None:
    body = growing.body(unseen)
    growing.completed(unseen).unlink()
    extra = {key: value for key, value in body.extra.items() if not key.startswith("hudi_assets.")}
    growing.writes(unseen, Action.DELTA_COMMIT, replace(body, extra=extra))
    growing.clock.ms += 60_000
    promise = growing.open().freshness()
    assert promise.freshness == instant_ms(unseen, "UTC") - 1_000 - 1
    without = growing.open(**{"hudi_assets.data.latency": ""}).freshness()
    assert without.freshness is None
    reason = f"{growing.base_of(unseen).name} are unknown: it is in no view and its commit states none"
    assert f"{reason}; state {WRITTEN_AGAIN}={unseen}" in str(without.reason)


# ------------------------------------------------------------------------------- what outlives archiving


@pytest.fixture
def archived(growing: GrowingTable, two: list[str], unseen: str) -> str:
    for number in range(6):
        growing.put(10 + number, 20_000 + number)
    growing.open(**FEW).archive()
    state = growing.open().state()
    assert state.timeline.is_archived(unseen)
    assert state.timeline.is_archived(two[1])
    return unseen


def test_hidden_base_files_outlive_the_archiving_of_their_commit(
    growing: GrowingTable, two: list[str], archived: str
) -> None:
    lost = growing.base_of(archived)
    for gone in (False, True):
        assert growing.open().freshness().hidden == (HiddenRows(archived, two[1], 1, 9_000),)
        assert growing.open().freshness().freshness == 8_999
        path, what, _ = findings(growing)["hidden_rows"]
        assert path == lost.name
        assert what.startswith(f"1 base file in 1 file group ({lost.name}) is in no view: made of what {two[1]} wrote")
        assert ("cleaned" in what) is gone
        if not gone:
            lost.unlink()
    (growing.path / _MEMORY).unlink()
    assert found(growing) == set()


@pytest.mark.parametrize("growing", [6], indirect=True)
def test_the_archive_that_proves_it_may_have_another_folder(
    growing: GrowingTable, two: list[str], archived: str
) -> None:
    """As on the tables of version 6 that Apache Hudi 1.2.0 makes."""
    (growing.path / ".hoodie/archived").rename(growing.path / ".hoodie/history")
    with_properties(growing.open(), {"hoodie.archivelog.folder": "history"})
    assert growing.open().freshness().hidden == (HiddenRows(archived, two[1], 1, 9_000),)
    assert growing.open().freshness().freshness == 8_999


def test_what_is_remembered_of_a_base_file_is_not_believed_once_the_later_one_is_gone(
    growing: GrowingTable, two: list[str], unseen: str
) -> None:
    """That one was rolled back, and all of it archived, without a look of ours in between."""
    for number in range(3):
        growing.put(10, 9_500 + number)
        growing.open().freshness()
    before = (growing.path / _MEMORY).read_bytes()
    assert found(growing) == {unseen}
    growing.vanishes(two[1])
    for number in range(6):
        growing.put(20 + number, 20_000 + number)
    growing.open(**FEW).archive()
    (growing.path / _MEMORY).write_bytes(before)
    assert growing.open().state().archived_facts.hides
    assert found(growing) == set()


def test_the_old_name_of_the_number_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    rows = HiddenRows("1", "2", 3, None)
    with pytest.warns(DeprecationWarning, match=r"HiddenRows\.files"):
        assert rows.log_files == rows.files == 3
    show_freshness(Freshness(None, "why", None, None, None, None, 0, hidden=(rows,)), None, as_json=True)
    told = {"delta_commit": "1", "behind": "2", "files": 3, "log_files": 3, "min_event_time": None}
    assert json.loads(capsys.readouterr().out)["hidden"] == [told]
