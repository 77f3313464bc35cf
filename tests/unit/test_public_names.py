"""What `hudi_assets.engine` gives: each name is there, and the example in its docstring runs."""

from __future__ import annotations

import doctest

import pytest

from hudi_assets import engine


@pytest.mark.parametrize("name", engine.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(engine, name) is not None


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = engine.nothing


def test_the_example_runs() -> None:
    examples = doctest.DocTestParser().get_doctest(engine.__doc__ or "", {}, "engine", None, 0)
    assert len(examples.examples) > 5
    assert doctest.DocTestRunner().run(examples).failed == 0
