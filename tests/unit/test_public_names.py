"""What `hudi_assets.engine` gives: each name is there, and the example in its docstring runs."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from hudi_assets import engine
from hudi_assets.engine import HudiTable


@pytest.mark.parametrize("name", engine.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(engine, name) is not None


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = engine.nothing


@pytest.mark.parametrize("name", engine._OLD)
def test_an_old_name_works_and_says_what_to_use(name: str) -> None:
    assert name not in engine.__all__
    with pytest.warns(DeprecationWarning, match=f"engine.{name} will go: use "):
        assert getattr(engine, name) is not None


def test_what_methods_take_and_give_back_is_public() -> None:
    """Settings and state are not: scripts take what they need of them by a method."""
    kinds = {kind for name, method in vars_of(HudiTable) for kind in kinds_of(method)}
    assert {"Plan", "Freshness", "ReadTask"} <= kinds
    assert kinds - set(engine.__all__) == {"TableState"}


def vars_of(kind: type) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        if not name.startswith("_") and callable(getattr(kind, name)):
            yield name, getattr(kind, name)


def kinds_of(method: Any) -> set[str]:
    """The engine's classes that a signature names, also inside unions, lists and the like."""
    module = inspect.getmodule(method)
    known = {**vars(module), "SparkSession": Any, "DataFrame": Any, "StructType": Any}
    found, left = set(), list(get_type_hints(method, known).values())
    while left:
        hint = left.pop()
        left.extend(hint if isinstance(hint, list) else get_args(hint))
        if isinstance(hint, type) and hint.__module__.startswith("hudi_assets.engine"):
            found.add(hint.__name__)
    return found


def test_the_example_runs() -> None:
    examples = doctest.DocTestParser().get_doctest(engine.__doc__ or "", {}, "engine", None, 0)
    assert len(examples.examples) > 5
    assert doctest.DocTestRunner().run(examples).failed == 0


FUNCTIONS = [
    *((f"HudiTable.{name}", method) for name, method in vars_of(HudiTable) if not name.endswith("_tasks")),
    *((name, getattr(engine, name)) for name in engine.__all__ if inspect.isfunction(getattr(engine, name))),
]


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_the_docstring_has_each_argument(name: str, function: Any) -> None:
    """Those of `…_tasks` are those of the query."""
    takes = [one for one in inspect.signature(function).parameters if one != "self"]
    said = inspect.getdoc(function) or ""
    assert said
    named = re.findall(r"^    (\w+): ", said.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert named == takes, name


ROOT = Path(engine.__file__).parents[1]
SOURCES = {path: path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = [path for path in SOURCES if path.name == "__init__.py" and path.parent != ROOT / "defs"]


def said_by(path: Path) -> str:
    return ast.get_docstring(ast.parse(SOURCES[path])) or ""


def test_each_module_says_what_it_is_for() -> None:
    assert [str(path) for path in SOURCES if len(said_by(path)) < 12 or "TODO" in said_by(path)] == []


@pytest.mark.parametrize("page", PACKAGES, ids=lambda path: path.parent.relative_to(ROOT.parent).as_posix())
def test_each_package_opens_with_a_page(page: Path) -> None:
    """What it is for, its modules and classes, where to begin; the public package's has an example for a list."""
    text, folder = said_by(page), page.parent
    assert 7 <= len(text.splitlines()) <= 20
    named = set(re.findall(r"`([\w.]+)`", text))
    if folder != ROOT / "engine":
        assert re.search(r"\b[Bb]egin\b", text)
    for name in named:
        module, _, what = name.partition(".")
        if what and (source := SOURCES.get(folder / f"{module}.py")):
            assert re.search(rf"^(class|def) {what}\b", source, re.MULTILINE), name


def test_no_module_is_too_long_to_be_read_at_once() -> None:
    assert [str(path) for path, text in SOURCES.items() if len(text.splitlines()) > 400] == []
