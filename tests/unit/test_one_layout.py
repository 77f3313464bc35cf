"""What depends on a table's version is answered by its layout: elsewhere nothing is decided by the version."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("hudi_assets", "resources", "pyspark_hudi_assets")
LAYOUT = PROJECT / "hudi_assets/engine/table/layout"
# Flags that stood for many questions at once.
FLAGS = {"carries_logs_over", "has_completion_times"}
# Properties that state a version, and the names of their keys.
STATED = {"hoodie.table.version", "hoodie.timeline.layout.version", "VERSION", "LAYOUT_VERSION"}
# The version is a number in the layout, the settings and the statistics.
LAYOUTS = {"layout", "_layout"}
# It is reported as text, given on under its name, and chooses the layout.
TAKES_IT = {"str", "layout_of"}
OF_ONE_VERSION = {"hudi_assets.engine.table.layout.v6", "hudi_assets.engine.table.layout.v8"}
DECIDES = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Subscript, ast.BinOp)


def is_version(node: ast.Attribute) -> bool:
    of = node.value
    owner = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return node.attr == "table_version" or (node.attr == "version" and owner in LAYOUTS)


def is_stated_version(node: ast.AST) -> bool:
    """True for a key of hoodie.properties that states a version."""
    return (isinstance(node, ast.Name) and node.id in STATED) or (
        isinstance(node, ast.Constant) and node.value in STATED
    )


def is_passed_on(above: list[ast.AST]) -> bool:
    """True where a version goes into a text, or under its own name into another call or text."""
    parent = above[-1]
    taken = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in TAKES_IT
    in_text = isinstance(parent, ast.FormattedValue | ast.Dict)
    named = isinstance(parent, ast.keyword) and parent.arg == "table_version"
    return (taken or in_text or named) and not any(isinstance(node, DECIDES) for node in of_statement(above))


def of_statement(above: list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes above one, up to its statement; a dictionary's values decide nothing for what is made of it."""
    for node in reversed(above):
        if isinstance(node, ast.stmt | ast.Dict):
            return
        yield node


def decisions(source: str) -> list[str]:
    """What a module decides by a version, or by a flag that stands for one."""
    found = []

    def look(node: ast.AST, above: list[ast.AST]) -> None:
        if isinstance(node, ast.ImportFrom) and node.module in OF_ONE_VERSION:
            found.append(ast.unparse(node))
        if isinstance(node, ast.Attribute):
            told = isinstance(node.ctx, ast.Load) and is_version(node) and not is_passed_on(above)
            if told or node.attr in FLAGS:
                found.append(ast.unparse(node))
        if isinstance(node, ast.Compare) and any(map(is_stated_version, ast.walk(node))):
            found.append(ast.unparse(node))
        for child in ast.iter_child_nodes(node):
            look(child, [*above, node])

    look(ast.parse(source), [])
    return found


def test_the_layout_alone_decides_by_the_version() -> None:
    modules = [path for one in PACKAGES for path in (PROJECT / one).rglob("*.py") if LAYOUT not in path.parents]
    assert len(modules) > 100
    found = {str(path.relative_to(PROJECT)): decisions(path.read_text("utf-8")) for path in modules}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "if state.layout.carries_logs_over: pass",
        "x = 1 if layout.version >= 8 else 2",
        "if str(layout.version) == '6': pass",
        "if f'{config.table_version}' == '6': pass",
        "kind = KINDS[self.table.config.table_version]",
        "version = layout.version",
        "match self.layout.version:\n    case 6: pass",
        "f(config.table_version)",
        "from hudi_assets.engine.table.layout.v6 import LayoutV6",
        "def f(properties): return properties.get(LAYOUT_VERSION) == '2'",
        "if properties['hoodie.table.version'] != '6': pass",
    ],
)
def test_a_decision_elsewhere_is_noticed(source: str) -> None:
    assert len(decisions(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "raise Unsupported(f'not on version {layout.version}')",
        "layout_of(config.table_version, where)",
        "options = {'hoodie.write.table.version': str(config.table_version)}",
        "Stats(table_version=state.config.table_version)",
        "passed |= {'hoodie.write.table.version': str(config.table_version)}",
    ],
)
def test_the_version_may_be_told(source: str) -> None:
    assert decisions(source) == []
