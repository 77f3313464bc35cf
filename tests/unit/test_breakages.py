"""Each breakage still fits the code: its text stands there once, and its tests exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.breakages import BREAKAGES, Breakage

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("one", BREAKAGES, ids=lambda one: one.what)
def test_a_breakage_fits_the_code(one: Breakage) -> None:
    assert (ROOT / one.file).read_text("utf-8").count(one.old) == 1
    assert one.new != one.old
    assert all(map(is_there, one.tests))


def is_there(test: str) -> bool:
    """A file, or a function in one."""
    file, _, function = test.partition("::")
    return f"def {function}(" in (ROOT / file).read_text("utf-8") if function else (ROOT / file).exists()
