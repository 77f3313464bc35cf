"""The matrix's oracle by itself: its rules on a few events, told by hand."""

from __future__ import annotations

from tests.interop.matrix.oracle import FIRST, Compaction, Event, Op, Oracle
from tests.interop.matrix.subject import bucket

GROUP = ("p=a", 0)


def event(commit: str, key: str, time: int, op: Op = Op.UPSERT) -> Event:
    values = {"v": f"{key}@{commit}", "_hoodie_commit_time": commit} if op is Op.UPSERT else {}
    return Event(commit, op, GROUP, key, time, values)


def table(*writes: tuple[str, list[Event]], first_into_base: bool = True) -> Oracle:
    oracle = Oracle()
    for number, (commit, events) in enumerate(writes):
        oracle.wrote(commit, events, inserts_into_base=first_into_base and number == 0)
    return oracle


def shown(rows: object) -> dict[str, str]:
    assert isinstance(rows, dict)
    return {key: row["v"] for (_, key), row in rows.items()}


def test_the_greater_event_time_wins_and_of_equal_ones_the_later() -> None:
    oracle = table(
        ("1", [event("1", "a", 5), event("1", "b", 5), event("1", "c", 5)]),
        ("2", [event("2", "a", 4), event("2", "b", 5), event("2", "c", 6)]),
    )
    assert shown(oracle.snapshot()) == {"a": "a@1", "b": "b@2", "c": "c@2"}
    assert shown(oracle.read_optimized()) == {"a": "a@1", "b": "b@1", "c": "c@1"}
    assert shown(oracle.snapshot("1")) == {"a": "a@1", "b": "b@1", "c": "c@1"}


def test_a_tombstone_ends_what_is_older_and_a_delete_the_log_records_before_it() -> None:
    oracle = table(
        ("1", [event("1", "a", 5), event("1", "b", 5), event("1", "c", 1)]),
        ("2", [event("2", "a", 6, Op.TOMBSTONE), event("2", "c", 9)]),
        ("3", [event("3", key, 0, Op.DELETE) for key in "bcde"]),
        ("4", [event("4", "d", 7, Op.TOMBSTONE), event("4", "e", 7, Op.DELETED_ROW)]),
        ("5", [event("5", key, 3) for key in "abcde"]),
    )
    assert shown(oracle.snapshot("4")) == {}
    # The base row of b is compared with the row after the delete. The tombstone of d is passed over.
    assert shown(oracle.snapshot()) == {"b": "b@1", "c": "c@5", "d": "d@5"}


def test_a_merge_forgets_deletes() -> None:
    writes = [("1", [event("1", "a", 5)]), ("2", [event("2", "a", 9, Op.TOMBSTONE)]), ("4", [event("4", "a", 7)])]
    unmerged, merged = table(*writes), table(*writes)
    merged.compacted(Compaction("3", {GROUP: frozenset({"2"})}))
    assert shown(unmerged.snapshot()) == {}
    assert shown(merged.snapshot()) == {"a": "a@4"}


def test_a_compaction_of_some_commits_moves_only_their_rows_into_the_base_file() -> None:
    oracle = table(
        ("1", [event("1", "a", 5)]), ("2", [event("2", "a", 6)]), ("3", [event("3", "a", 7), event("3", "b", 1)])
    )
    oracle.compacted(Compaction("4", {GROUP: frozenset({"2"})}))
    assert shown(oracle.read_optimized()) == {"a": "a@2"}
    assert shown(oracle.snapshot()) == {"a": "a@3", "b": "b@3"}
    assert [e.commit for e in oracle.state().logs] == ["3", "3"]


def test_ranges_hold_the_end_state_and_late_rows_are_known_beside() -> None:
    oracle = table(("1", [event("1", "a", 5), event("1", "b", 5)]), ("2", [event("2", "a", 4), event("2", "b", 6)]))
    assert shown(oracle.incremental("1", None)) == {"b": "b@2"}
    assert shown(oracle.late_rows("1", None)) == {"a": "a@2"}
    assert shown(oracle.incremental(FIRST, "1")) == {"a": "a@1", "b": "b@1"}


def test_ranges_go_by_completion_where_there_is_one() -> None:
    oracle = table(("1", [event("1", "a", 5)]), ("2", [event("2", "b", 5)]))
    oracle.completions = {"1": "11", "2": "12"}
    assert shown(oracle.incremental("11", "12")) == {"b": "b@2"}
    assert shown(oracle.incremental("10", "11")) == {"a": "a@1"}


def test_a_write_that_was_taken_back_never_was() -> None:
    oracle = table(("1", [event("1", "a", 5)]), ("2", [event("2", "a", 6)]))
    oracle.took_back("2")
    assert shown(oracle.snapshot()) == {"a": "a@1"}
    assert oracle.instants() == ["1"]


def test_buckets_are_java_s() -> None:
    # "abc".hashCode() is 96354 in Java, and List.of("abc").hashCode() 31 more.
    assert bucket("abc", 1000) == 385
    assert {bucket(f"k{n}", 2) for n in range(4)} == {0, 1}


def test_by_the_rules_of_0_x_a_delete_block_is_compared_with_log_records_alone() -> None:
    base = [event("1", key, 5) for key in "abcde"]
    writes = [
        ("1", base),
        (
            "2",
            [
                event("2", "a", 4, Op.TOMBSTONE),
                event("2", "b", 4, Op.DELETED_ROW),
                event("2", "c", 6),
                event("2", "d", 6),
            ],
        ),
        ("3", [event("3", "c", 5, Op.TOMBSTONE), event("3", "d", 9, Op.TOMBSTONE), event("3", "e", 0, Op.DELETE)]),
        ("4", [event("4", "d", 7), event("4", "e", 4), event("4", "a", 3)]),
    ]
    oracle, other = table(*writes), table(*writes)
    oracle.by_0_x = True
    # The late delete of a ends the base row; after it, and after that of e, the base row is compared and is back.
    assert shown(oracle.snapshot("3")) == {"b": "b@1", "c": "c@2"}
    assert shown(oracle.snapshot()) == {"a": "a@1", "b": "b@1", "c": "c@2", "d": "d@4", "e": "e@1"}
    assert shown(other.snapshot()) == {"a": "a@1", "b": "b@1", "c": "c@2", "e": "e@1"}
