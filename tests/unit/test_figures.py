"""The figures of `tests/figures.py`, of a project that is small enough to count by hand."""

from __future__ import annotations

import pytest

from tests.figures import circles, figures, longest_chain

PROJECT = {
    "README.md": "four words stand here",
    "hudi_assets/engine/__init__.py": "from hudi_assets.engine.table.state import State\n",
    "hudi_assets/engine/errors.py": "",
    "hudi_assets/engine/table/__init__.py": "",
    "hudi_assets/engine/table/state.py": (
        "from hudi_assets.engine import errors\nfrom hudi_assets.engine.files.view import View\n"
        "def f(layout): return layout.version > 6\n"
    ),
    "hudi_assets/engine/table/layout/v6.py": "def f(layout): return layout.version > 6\n",
    "hudi_assets/engine/files/view.py": "def f():\n    import hudi_assets.engine.table\n    import os\n",
    "hudi_assets/cli.py": "from hudi_assets.engine import State\n",
    "tests/test_it.py": "x = 1  # type: ignore[assignment]\n",
}


def test_a_small_project() -> None:
    found = figures(PROJECT)
    assert (found.engine_files, found.engine_lines) == (6, 8)
    assert (found.rooms, found.arrows_between_rooms) == (3, 3)  # files → table, table → files, table → errors
    assert (found.pairs_that_import_each_other, found.rooms_in_the_largest_circle) == (1, 2)
    assert found.modules_in_the_longest_chain == 4  # engine, table.state, files.view, table
    assert found.questions_about_the_version_outside_the_layout == 1
    assert (found.type_ignores_in_tests, found.words_in_the_readme) == (1, 4)


@pytest.mark.parametrize(
    ("graph", "largest", "longest"),
    [
        ({}, 0, 0),
        ({"a": set(), "b": {"a"}}, 0, 2),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, 3, 4),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, 0, 3),
    ],
)
def test_circles_and_chains(graph: dict[str, set[str]], largest: int, longest: int) -> None:
    assert max(map(len, circles(graph)), default=0) == largest
    assert longest_chain(graph) == longest
