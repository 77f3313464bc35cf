"""docs/reference/zoo.md is what the list of configurations and the kept records of their runs make."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.zoo import seen
from tests.interop.zoo.configuration import DATE, Refused
from tests.interop.zoo.life import OPEN_RANGE, READ_OPTIMIZED, SNAPSHOT, Answers, held, same
from tests.interop.zoo.page import BEGIN, END, PAGE, inserted, lines
from tests.interop.zoo.seen import MAKE, Seen, digest, everything, kept, note, take_over


def test_each_configuration_was_seen_as_it_is_listed() -> None:
    listed = {one.id: digest(one) for one in everything()}
    found = {name: record["configuration"] for name, record in kept().items()}
    assert found == listed, f"run make test-zoo for those that differ, then: {MAKE}"


def test_the_list_is_long_and_each_name_is_there_once() -> None:
    names = [one.id for one in everything()]
    assert len(names) == len(set(names)) >= 60


def test_the_page_has_the_current_tables() -> None:
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert inserted(text, kept()) == text, f"run: {MAKE}"


def test_each_configuration_has_a_row() -> None:
    rows = [line for line in lines(kept()) if line.startswith("|") and not line.startswith(("| configuration", "|-"))]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [one.name for one in everything()]


# -- what a life compares


ROW: dict[str, object] = {"id": "k1", "ts": 1}
KEY = ("p=a", "k1")


def test_another_answer_is_noticed_but_for_the_views_that_change() -> None:
    left: Answers = {SNAPSHOT: {KEY: ROW}, READ_OPTIMIZED: {KEY: ROW}}
    same(left, {SNAPSHOT: {KEY: dict(ROW)}, READ_OPTIMIZED: {}}, "a step")
    with pytest.raises(AssertionError, match="a step, snapshot"):
        same(left, {SNAPSHOT: {KEY: {**ROW, "ts": 2}}}, "a step")
    with pytest.raises(AssertionError, match="a step, read-optimized"):
        same(left, {READ_OPTIMIZED: {}}, "a step", changed=())


def test_of_a_range_those_rows_are_compared_that_the_table_held() -> None:
    late: dict[str, object] = {"id": "k2", "ts": 0}
    answers: Answers = {SNAPSHOT: {KEY: ROW, ("p=a", "k2"): {**late, "ts": 5}}}
    answers[OPEN_RANGE] = {KEY: ROW, ("p=a", "k2"): late}
    assert held(answers)[OPEN_RANGE] == {KEY: ROW}
    assert held(answers)[SNAPSHOT] == answers[SNAPSHOT]


def test_a_configuration_that_asks_for_something_else_has_another_digest() -> None:
    plain = next(everything())
    changed = [replace(plain, options={"hoodie.x": "y"}), replace(plain, metadata=not plain.metadata)]
    changed += [replace(plain, merged=Refused("no")), replace(plain, time=DATE), replace(plain, version=8)]
    assert len({digest(one) for one in (plain, *changed)}) == 1 + len(changed)
    assert digest(replace(plain, note="a word", quick=not plain.quick)) == digest(plain)


def test_what_a_run_saw_is_taken_over_where_it_is_of_this_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTEROP_HOME", str(tmp_path / "interop"))
    file = tmp_path / "seen.json"
    monkeypatch.setattr(seen, "KEPT", file)
    first, second = list(everything())[:2]
    file.write_text(json.dumps({"gone": {}, second.id: {"configuration": "older"}}))
    note(first, Seen(plans={"part": (4, 3)}).record(first))
    note(second, {"configuration": "of another list"})
    take_over()
    records = kept()
    assert records[first.id]["plans"] == {"part": [4, 3]}
    assert records[second.id] == {"configuration": "older"}
    assert records.keys() == {first.id, second.id}
