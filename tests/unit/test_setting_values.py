"""Values of settings are read in one way, and refused with key, value, place and what to give."""

from __future__ import annotations

import pytest

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.settings import choice, is_true, listed, whole_number
from hudi_assets.engine.table.settings.compaction import MAX_DELTA_COMMITS, parse_compaction_settings


@pytest.mark.parametrize(("text", "number"), [("7", 7), (" 7 ", 7), ("+7", 7), ("-7", -7), ("007", 7), ("", 3)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number({"k": text}, "k", 3) == number
    assert whole_number({}, "k", 3) == 3


@pytest.mark.parametrize("text", ["ten", "7.0", "1_000", "7 8", "٧", "9" * 31, "9" * 5000, "1", "13"])
def test_what_is_no_number_in_its_bounds_is_refused_with_what_to_give(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        whole_number({"k": text}, "k", 3, where="table", least=2, most=12)
    assert str(refused.value) == f"k is {text[:40]!r}. [table] Give one from 2 to 12."


def test_the_bounds_are_in() -> None:
    assert [whole_number({"k": text}, "k", 3, least=2, most=12) for text in ("2", "12")] == [2, 12]
    with pytest.raises(InvalidInput, match=r"Give a whole number, 2 or more\."):
        whole_number({"k": "1"}, "k", 3, least=2)


def test_a_number_of_thousands_of_digits_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=MAX_DELTA_COMMITS):
        parse_compaction_settings({MAX_DELTA_COMMITS: "9" * 5000}, "table")


def test_choices() -> None:
    assert choice({"k": " bloom "}, "k", ("SIMPLE", "BLOOM")) == "BLOOM"
    assert choice({"k": ""}, "k", ("SIMPLE",)) is choice({}, "k", ("SIMPLE",)) is None
    with pytest.raises(InvalidInput, match=r"k is 'other'\. \[t\] It may be: SIMPLE, BLOOM\."):
        choice({"k": "other"}, "k", ("SIMPLE", "BLOOM"), where="t")


def test_switches_are_on_by_true_alone() -> None:
    assert [is_true({"k": text}, "k") for text in ("true", " TRUE ", "false", "1", "yes", "")] == [True] * 2 + [
        False
    ] * 4
    assert not is_true({}, "k")


def test_lists() -> None:
    assert listed(" a, b,,c ") == ("a", "b", "c")
    assert listed("") == listed(None) == ()
