"""The same examples on every machine, and nothing of an example that depends on how fast the machine is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import examples


@pytest.fixture
def fixed() -> None:
    if not settings.get_current_profile_name().startswith(examples.FIXED):
        pytest.skip("random examples were asked for")


def tried() -> list[tuple[int, str]]:
    found = []

    @settings(max_examples=300)
    @given(st.integers(), st.text())
    def note(number: int, text: str) -> None:
        found.append((number, text))

    note()
    return found


@pytest.mark.usefixtures("fixed")
def test_examples_do_not_depend_on_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tried()
    assert len(before) == 300
    source = tmp_path / "constants.py"
    source.write_text("\n".join(f"C{n} = {10**9 + n}\nT{n} = 'text {n}'" for n in range(200)))
    spec = importlib.util.spec_from_file_location("constants", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "constants", module)
    assert tried() == before


@pytest.mark.usefixtures("fixed")
def test_no_test_takes_random_examples_or_has_a_time_limit_for_one(request: pytest.FixtureRequest) -> None:
    """Of all tests that are collected with this one."""
    for item in request.session.items:
        stated = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
        if stated is not None:
            assert stated.derandomize, item.nodeid
            assert stated.database is None, item.nodeid
            assert stated.deadline is None, item.nodeid
            assert HealthCheck.too_slow in stated.suppress_health_check, item.nodeid
