"""Gaps in a table's past: which instants are answered, which refused, and which instant a refusal names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_assets.engine.model import BaseFile, CarryOver, FileSlice, LogFile, Operation, Plan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.slices.file_view import FileView
from hudi_assets.engine.table.slices.history import Evidence, Gap, History, after, view_as_of

G: GroupKey = ("p", "g")
H: GroupKey = ("p", "h")


def at(n: int) -> str:
    return f"20260101000000{n:03d}"


def slice_at(n: int, *, group: GroupKey = G, base: bool = True, logs: int = 0) -> FileSlice:
    partition, file_id = group
    name = f"{partition}/{file_id}_{n}"
    files = tuple(
        LogFile(f"{name}.log.{v}", partition, file_id, at(n), v, "0-0-0", 1, f"{name}.log.{v}")
        for v in range(1, logs + 1)
    )
    base_file = BaseFile(f"{name}.parquet", partition, file_id, at(n), "0-0-0", 1) if base else None
    return FileSlice(partition, file_id, at(n), base_file, files)


def history(
    groups: Mapping[GroupKey, tuple[FileSlice, ...]],
    *,
    made_from: Mapping[int, int | None] | None = None,
    opened: tuple[int, ...] = (),
    whole_from: int | None = None,
    savepoints: Mapping[int, Mapping[GroupKey, int]] | None = None,
    cleaned: tuple[int, ...] = (),
    written: Mapping[int, tuple[str, ...]] | None = None,
    first_by_files: tuple[int, ...] = (),
    archived_replace: int | None = None,
    replaced: Mapping[GroupKey, int] | None = None,
) -> History:
    """A past of group G (and others) with numbers for instants; by default nothing was archived."""
    made = {(G, at(n)): "" if p is None else at(p) for n, p in (made_from or {}).items()}
    evidence = Evidence(
        written={(G, at(n)): frozenset(paths) for n, paths in (written or {}).items()},
        opened={G: frozenset(map(at, (*opened, *cleaned)))},
        predecessors=made,
        whole_from="" if whole_from is None else at(whole_from),
        savepoints={at(v): {k: at(n) for k, n in newest.items()} for v, newest in (savepoints or {}).items()},
        cleaned={G: frozenset(map(at, cleaned))},
        began_with=lambda s: s.base_instant in map(at, first_by_files),
        archived_replace=lambda: "" if archived_replace is None else at(archived_replace),
    )
    return History(FileView(groups, {}), {k: at(n) for k, n in (replaced or {}).items()}, evidence)


def answered(past: History, *moments: int) -> list[int]:
    return [n for n in moments if past.gap_at(at(n)) is None]


def test_the_newest_slice_not_later_than_the_instant_answers() -> None:
    past = history({G: (slice_at(10), slice_at(20))}, made_from={10: None, 20: 10})
    assert answered(past, 5, 10, 15, 20, 99) == [5, 10, 15, 20, 99]
    assert past.complete_from == ""
    assert past.as_of(at(5)) == ()
    assert [s.base_instant for s in past.as_of(at(19))] == [at(10)]
    assert [s.base_instant for s in past.as_of(at(20))] == [at(20)]


def test_before_a_compaction_whose_slice_was_cleaned_nothing_is_answered() -> None:
    past = history({G: (slice_at(20),)}, made_from={20: 10})
    assert answered(past, 5, 10, 19, 20, 21) == [20, 21]
    assert past.complete_from == at(20)


def test_an_archived_group_began_where_its_files_say_so() -> None:
    groups = {G: (slice_at(20),)}
    assert answered(history(groups, whole_from=90, first_by_files=(20,)), 5, 20) == [5, 20]
    assert answered(history(groups, whole_from=90), 5, 20) == [20]


def test_log_files_that_a_link_keeps_are_no_beginning() -> None:
    """The first commit wrote two log files; the one that was compacted was cleaned, the link's target stayed."""
    first = slice_at(10, base=False, logs=1)
    later = slice_at(20, logs=1)
    linked = replace(later, log_files=(later.log_files[0]._replace(original=first.log_files[0].path),))
    past = history({G: (first, linked)}, whole_from=90, first_by_files=(10,))
    assert answered(past, 5, 10, 15, 20) == [20]
    # Without the link, or while the timeline names all that the commit wrote, it is one.
    assert answered(history({G: (first, later)}, first_by_files=(10,)), 5, 10, 15, 20) == [5, 10, 15, 20]


def test_a_slice_that_was_between_two_is_missed_from_its_instant_on() -> None:
    """A savepoint keeps the slice at 10, the one at 20 was cleaned, the one at 30 is left."""
    groups = {G: (slice_at(10), slice_at(30))}
    past = history(groups, made_from={10: None, 30: 20}, opened=(10, 20, 30))
    assert answered(past, 5, 10, 19, 20, 29, 30) == [5, 10, 19, 30]
    assert past.complete_from == at(30)


def test_an_archived_gap_is_closed_by_the_plan_or_up_to_a_savepoint() -> None:
    groups = {G: (slice_at(10), slice_at(30))}
    whole = {"first_by_files": (10,), "whole_from": 90}
    assert answered(history(groups, **whole), 5, 10, 11, 29, 30) == [5, 10, 30]  # type: ignore[arg-type]
    by_plan = history(groups, made_from={30: 10}, **whole)  # type: ignore[arg-type]
    assert answered(by_plan, 5, 10, 11, 29, 30) == [5, 10, 11, 29, 30]
    saved = history(groups, savepoints={15: {G: 10}}, **whole)  # type: ignore[arg-type]
    assert answered(saved, 10, 15, 16, 29, 30) == [10, 15, 30]
    assert saved.complete_from == at(30)
    assert saved.answering_savepoints == (at(15),)


def test_a_group_that_a_savepoint_does_not_name_began_later() -> None:
    groups = {G: (slice_at(20),), H: (slice_at(10, group=H),)}
    past = history(groups, made_from={20: 15}, whole_from=5, savepoints={12: {H: 10}}, first_by_files=(10,))
    assert answered(past, 11, 12, 13, 19, 20) == [11, 12, 20]


def test_a_slice_of_which_a_file_is_gone_answers_no_more() -> None:
    groups = {G: (slice_at(10), slice_at(20))}
    names = {10: ("p/g_10.parquet", "p/g_10.log.1")}
    past = history(groups, made_from={10: None, 20: 10}, written=names)
    assert answered(past, 5, 10, 19, 20) == [5, 20]
    torn = {G: (slice_at(10, base=False, logs=1), slice_at(20))}
    assert answered(history(torn, made_from={10: 5, 20: 10}), 10, 19, 20) == [20]


def test_what_a_clean_has_begun_to_delete_is_gone() -> None:
    groups = {G: (slice_at(10), slice_at(20), slice_at(30))}
    made: dict[int, int | None] = {10: None, 20: 10, 30: 20}
    past = history(groups, made_from=made, cleaned=(20,))
    assert answered(past, 10, 19, 20, 29, 30) == [10, 19, 30]
    # The newest slice of a live group is never cleaned, whatever names it.
    assert answered(history(groups, made_from=made, cleaned=(30,)), 10, 20, 30) == [10, 20, 30]


def test_a_replaced_group_is_seen_before_and_missed_when_it_was_cleaned() -> None:
    groups = {G: (slice_at(10),), H: (slice_at(30, group=H),)}
    past = history(groups, made_from={10: None}, first_by_files=(30,), replaced={G: 30})
    assert answered(past, 5, 10, 29, 30) == [5, 10, 29, 30]
    assert [s.file_id for s in past.as_of(at(29))] == ["g"]
    assert [s.file_id for s in past.as_of(at(30))] == ["h"]
    gone = history({H: groups[H]}, first_by_files=(30,), replaced={G: 30})
    assert answered(gone, 5, 29, 30) == [30]


def test_an_archived_replacecommit_ends_the_past() -> None:
    past = history({G: (slice_at(50),)}, whole_from=40, first_by_files=(50,), archived_replace=30)
    assert answered(past, 10, 29, 30, 45) == [30, 45]
    assert past.complete_from == at(30)


def test_as_of_a_pending_compaction_both_slices_answer() -> None:
    carried = CarryOver("p/g_20.log.1", "p/g_10.log.2")
    plan = Plan(at(20), 0, (Operation("p", "g", at(10), None, (), (carried,), {}),), "", {})
    groups = {G: (slice_at(10, logs=2), slice_at(20, base=False, logs=2))}
    view = FileView(groups, {G: plan})
    (before,) = view_as_of(view, {}, at(19)).latest
    assert before == groups[G][0]
    (merged,) = view_as_of(view, {}, at(20)).latest
    assert [log.path for log in merged.log_files] == ["p/g_10.log.1", "p/g_10.log.2", "p/g_20.log.2"]


def test_what_a_pending_compaction_reads_is_used_whatever_a_clean_says() -> None:
    plan = Plan(at(20), 0, (Operation("p", "g", at(10), None, (), (), {}),), "", {})
    groups = {G: (slice_at(10), slice_at(20, base=False, logs=1))}
    past = history(groups, made_from={10: None, 20: 10}, cleaned=(10,))
    past = replace(past, view=FileView(groups, {G: plan}))
    (merged,) = past.as_of(at(25))
    assert merged.base_file == groups[G][0].base_file


def test_the_bound_after_an_instant() -> None:
    assert at(1) not in Gap(after(at(1)), at(3))
    assert at(2) in Gap(after(at(1)), at(3))
    assert at(3) not in Gap(after(at(1)), at(3))
