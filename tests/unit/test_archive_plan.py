"""Which instants may leave the active timeline."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.archiving.plan import Bounds, Keep, keep_of, plan_archive
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Instant, NothingToDo, State
from hudi_assets.engine.timeline.instants import Timeline

KEEP = Keep(2, 3)
_LETTERS = {
    "d": Action.DELTA_COMMIT,
    "c": Action.COMMIT,
    "C": Action.COMPACTION,
    "k": Action.CLEAN,
    "b": Action.ROLLBACK,
    "R": Action.RESTORE,
    "r": Action.REPLACE_COMMIT,
    "s": Action.SAVEPOINT,
}


def t(number: int) -> str:
    return f"2026010100{number:04d}000"


def timeline(text: str) -> Timeline:
    """An instant per letter; `!` after it: unfinished. A savepoint has the instant of the one before."""
    instants: list[Instant] = []
    number = 0
    for place, letter in enumerate(text):
        if letter == "!":
            continue
        number += letter != "s"
        state = State.INFLIGHT if text[place + 1 : place + 2] == "!" else State.COMPLETED
        instants.append(Instant(t(number), _LETTERS[letter], state, ""))
    return Timeline(tuple(sorted(instants, key=lambda i: (i.timestamp, i.action))))


def archived(text: str, keep: Keep = KEEP, bounds: Bounds | None = None) -> str:
    """The archived instants as letters, or the reason for none."""
    chosen = plan_archive(timeline(text), keep, bounds or Bounds())
    if isinstance(chosen, NothingToDo):
        return chosen.reason
    names = {action: letter for letter, action in _LETTERS.items()}
    return "".join(names[i.action] for i in chosen)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ddcdd", "ddc"),
        ("dddd", "dd"),
        # An unfinished instant stays, with the completed one before it.
        ("ddC!ddd", "d"),
        ("dd!dddd", "archived nothing"),
        # A savepoint and all after it stay.
        ("dddsddd", "dd"),
        # Cleans and rollbacks go by a count of their own.
        ("dkkkk", "kk"),
        ("kdkbkb", "kd"),
        ("bbbbd", "bb"),
        ("dddddkkk", "ddd"),
    ],
)
def test_archived(text: str, expected: str) -> None:
    if expected == "archived nothing":
        assert "unfinished" in archived(text)
    elif text == "kdkbkb":
        assert "archiving starts above" in archived(text)
    else:
        assert archived(text) == expected


def test_nothing_goes_up_to_the_most() -> None:
    assert archived("ddd") == "3 completed writes are on the timeline; archiving starts above 3"


@pytest.mark.parametrize("text", ["ddddddR!", "ddddddb!"])
def test_nothing_goes_while_something_is_taken_back(text: str) -> None:
    assert archived(text).endswith("is unfinished")


def test_what_the_cleaner_retains_stays() -> None:
    """The earliest commit to retain, and the one before it, whose slices it may still read."""
    assert archived("ddddddd", bounds=Bounds(cleaned_from=t(4))) == "dd"
    assert archived("ddddddd", bounds=Bounds(cleaned_from=t(7))) == "ddddd"


def test_files_that_were_never_committed_hold_the_start_back() -> None:
    """Past their instant they would count as committed."""
    assert archived("dddddd", bounds=Bounds(uncommitted=frozenset({t(3)[:-1] + "5"}))) == "dd"
    assert "never committed" in archived("dddddd", bounds=Bounds(uncommitted=frozenset({t(0)})))


def test_a_replacecommit_stays_while_the_files_that_it_replaced_are_there() -> None:
    assert archived("dddrddd", bounds=Bounds(replacing=frozenset({t(4)}))) == "ddd"
    assert archived("dddrddd") == "dddrd"


@pytest.mark.parametrize(
    ("text", "deltas", "expected"), [("dddcddddd", 5, "dddc"), ("dddcdddd", 5, "ddd"), ("d" * 8, 4, "dddd")]
)
def test_a_trigger_that_counts_commits_still_sees_them(text: str, deltas: int, expected: str) -> None:
    assert archived(text, bounds=Bounds(deltas=deltas)) == expected


def test_what_was_archived_and_not_deleted_goes_whatever_the_count() -> None:
    done = frozenset({(t(1), Action.DELTA_COMMIT), (t(2), Action.DELTA_COMMIT)})
    assert archived("ddd", bounds=Bounds(archived=done)) == "dd"
    # Only from the start on: a hole would make what is older than the rest look uncommitted.
    assert "archiving starts" in archived("ddd", bounds=Bounds(archived=frozenset({(t(2), Action.DELTA_COMMIT)})))
    # And not past a savepoint that was made since.
    assert archived("ddsd", bounds=Bounds(archived=done)) == "d"


@given(
    st.lists(st.sampled_from(["d", "c", "d!", "C!", "k", "b", "r", "s"]), max_size=25).map("".join),
    st.integers(2, 5),
    st.integers(1, 5),
    st.sets(st.integers(0, 25), max_size=2),
)
@settings(max_examples=300, deadline=None)
def test_what_is_not_committed_never_counts_afterwards(text: str, least: int, more: int, orphans: set[int]) -> None:
    before = timeline(text)
    uncommitted = frozenset(t(n)[:-1] + "5" for n in orphans if not before.is_committed(t(n)[:-1] + "5"))
    chosen = plan_archive(before, Keep(least, least + more), Bounds(uncommitted=uncommitted))
    if isinstance(chosen, NothingToDo):
        return
    after = Timeline(tuple(i for i in before.instants if i not in chosen))
    for instant in before.instants:
        if instant.action in (Action.DELTA_COMMIT, Action.COMMIT, Action.REPLACE_COMMIT, Action.COMPACTION):
            assert after.is_committed(instant.timestamp) == before.is_committed(instant.timestamp)
    assert not any(after.is_committed(instant) for instant in uncommitted)
    saved = {i.timestamp for i in before.instants if i.action is Action.SAVEPOINT}
    # A savepoint is of a write; that a clean has the same time here says nothing.
    assert not saved & {i.timestamp for i in chosen if i.action is not Action.CLEAN}
    writes = [i for i in after.instants if i.is_completed and i.action in (Action.DELTA_COMMIT, Action.COMMIT)]
    assert len(writes) >= min(least, len([i for i in before.instants if i in writes]))


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.keep.min.commits": "30", "hoodie.keep.max.commits": "30"},
        {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "30"},
        {"hoodie.keep.max.commits": "many"},
    ],
)
def test_settings_that_cannot_be_kept_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        keep_of(properties, "table")


def test_hudis_defaults() -> None:
    assert keep_of({}, "table") == Keep(20, 30)


@pytest.mark.parametrize(
    ("compacted", "expected"),
    [
        ("", "the metadata table, not compacted yet, holds back 4 instants"),
        (t(1), "d"),
        (t(3) + "001", "ddd"),
        (t(9), "dddd"),
        (None, "dddd"),
    ],
)
def test_the_metadata_tables_last_compaction_holds(compacted: str | None, expected: str) -> None:
    """Its younger log blocks count by the instants of the active timeline."""
    assert archived("dddddd", bounds=Bounds(metadata_compacted=compacted)) == expected


def test_the_metadata_table_goes_by_completion() -> None:
    """A write that was completed after the metadata table's compaction is in its log files."""
    writes = [Instant(t(n), Action.DELTA_COMMIT, State.COMPLETED, "", t(n + 3)) for n in range(1, 7)]
    chosen = plan_archive(Timeline(tuple(writes)), KEEP, Bounds(metadata_compacted=t(5)))
    assert not isinstance(chosen, NothingToDo)
    assert [i.timestamp for i in chosen] == [t(1), t(2)]
