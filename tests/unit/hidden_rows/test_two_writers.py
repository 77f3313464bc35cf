"""Two writers that share no lock grow the same base file: the rows of the one with the lower instant are in no view."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_assets.engine.model import Action, HiddenRows
from hudi_assets.engine.table.files.hidden import hidden_files
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from tests.unit.hidden_rows.growing import FEW, GrowingTable
from tests.unit.hidden_rows.steps import findings, found
from tests.unit.test_past_instants import moved


@pytest.fixture
def beside(growing: GrowingTable) -> list[str]:
    """Three delta commits of event times 1000, 9000 and 3000: the last two were made of the first one's base file."""
    first, second = growing.put(1, 1_000), growing.put(2, 9_000)
    with growing.without(second):
        third = growing.put(3, 3_000)
    assert set(growing.rows()) == {1, 3}
    return [first, second, third]


def test_the_earlier_of_two_writers_of_one_look_is_found(growing: GrowingTable, beside: list[str]) -> None:
    (one,) = hidden_files(growing.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (beside[1], beside[2])
    assert (one.path, one.is_base, one.holds_behind) == (growing.base_of(beside[1]).name, True, False)
    assert growing.open().freshness().freshness == 8_999
    _, what, hint = findings(growing)["hidden_rows"]
    assert f"deltacommit {beside[2]} is later, and made its own of an older one." in what
    assert "Roll" not in hint


def test_it_stays_so_below_what_is_written_on_top(growing: GrowingTable, beside: list[str]) -> None:
    growing.put(4, 4_000)
    assert found(growing) == {beside[1]}
    growing.put(1, 5_000)
    growing.compact(6_000)
    growing.put(5, 6_000)
    assert set(growing.rows()) == {1, 3, 4, 5}
    assert found(growing) == {beside[1]}
    (one,) = hidden_files(growing.open().state())
    assert one.behind.timestamp == beside[2]


def test_what_the_newest_base_file_was_made_of_is_not_hidden(growing: GrowingTable) -> None:
    """The later one of two writers was completed last: what came between was made of the earlier one."""
    first, second = growing.put(1, 1_000), growing.put(2, 2_000)
    last = growing.put(4, 4_000)
    with growing.without(second, last):
        lost = growing.begun_at(growing.put(3, 3_000), moved(last, -1))
    assert first < second < lost < last
    assert set(growing.rows()) == {1, 2, 4}
    (one,) = hidden_files(growing.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (lost, last)


@pytest.mark.parametrize("bootstrap", ["00000000000001", "00000000000002"])
def test_bootstrapped_groups_and_commits_of_no_file_hide_nothing(growing: GrowingTable, bootstrap: str) -> None:
    """The first write into a bootstrapped group is made of the bootstrap. Hudi's write stats may name no file."""
    first = growing.put(1, 1_000)
    body = growing.body(first)
    (stat,) = body.stats
    growing.completed(first).unlink()
    growing.writes(first, Action.DELTA_COMMIT, replace(body, stats=(stat._replace(prev_commit=bootstrap),)))
    second = growing.put(2, 2_000)
    of_none = stat._replace(path="", prev_commit=first)
    growing.writes(moved(second, 1), Action.DELTA_COMMIT, replace(body, stats=()))
    growing.writes(moved(second, 2), Action.DELTA_COMMIT, replace(body, stats=(of_none,)))
    growing.clock.ms += 1_000
    growing.put(3, 3_000)
    assert set(growing.rows()) == {1, 2, 3}
    assert found(growing) == set()


@pytest.mark.parametrize(("operation", "hides"), [("CLUSTER", True), ("DELETE_PARTITION", False)])
def test_overwritten_rows_are_not_missed(growing: GrowingTable, beside: list[str], operation: str, hides: bool) -> None:
    ((partition, file_id),) = growing.open().state().view.groups
    body = CommitMetadata(operation, (), replaced={partition: [file_id]})
    growing.writes(moved(beside[2], 1_000), Action.REPLACE_COMMIT, body)
    assert found(growing) == ({beside[1]} if hides else set())


def test_where_the_newest_base_file_is_not_told_of_nothing_is_said(growing: GrowingTable, beside: list[str]) -> None:
    """By its own, the newest may have been made of either."""
    newest = growing.put(4, 4_000)
    growing.completed(newest).unlink()
    growing.writes(newest, Action.DELTA_COMMIT, CommitMetadata("UPSERT", ()))
    assert set(growing.rows()) == {1, 3, 4}
    assert found(growing) == set()


@pytest.mark.parametrize(("action", "told"), [(Action.COMMIT, True), (Action.REPLACE_COMMIT, False)])
def test_past_a_compaction_but_not_past_a_clustering(
    growing: GrowingTable, beside: list[str], action: Action, told: bool
) -> None:
    """A clustering's write stats do not say what it was made of: one that keeps the group read the newest one."""
    newest = growing.put(4, 4_000)
    body = growing.body(newest)
    growing.completed(newest).unlink()
    growing.writes(newest, action, body)
    assert found(growing) == ({beside[1]} if told else set())


@pytest.mark.parametrize("action", [Action.COMMIT, Action.REPLACE_COMMIT])
def test_compactions_and_clusterings_are_not_left_out(growing: GrowingTable, beside: list[str], action: Action) -> None:
    """Their instants may be of the past, and what they hold is elsewhere too."""
    body, between = growing.body(beside[1]), moved(beside[1], 1)
    stats = tuple(stat._replace(path=stat.path.replace(beside[1], between)) for stat in body.stats)
    growing.writes(between, action, replace(body, stats=stats))
    assert found(growing) == {beside[1]}


def test_without_the_later_one_it_is_in_the_view(growing: GrowingTable, beside: list[str]) -> None:
    growing.open().rollback(beside[2])
    assert set(growing.rows()) == {1, 2}
    assert found(growing) == set()


def test_a_savepoint_of_before_the_later_one_is_restored(growing: GrowingTable, beside: list[str]) -> None:
    with growing.without(beside[2]):
        growing.open().savepoint()
    growing.open().restore(beside[1])
    assert set(growing.rows()) == {1, 2}
    assert found(growing) == set()


def test_its_archived_commit_is_remembered(growing: GrowingTable, beside: list[str]) -> None:
    for number in range(6):
        growing.put(10 + number, 20_000 + number)
    assert found(growing) == {beside[1]}
    growing.open(**FEW).archive()
    assert growing.open().state().timeline.is_archived(beside[1])
    promise = growing.open().freshness()
    assert (promise.freshness, promise.hidden) == (8_999, (HiddenRows(beside[1], beside[2], 1, 9_000),))
    _, what, _ = findings(growing)["hidden_rows"]
    assert f"{beside[2]} is later, and made its own of an older one." in what
