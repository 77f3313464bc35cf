"""What the project takes of Dagster is public; the demo's driver alone does at run time what Dagster offers nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hudi_assets

PACKAGE = Path(hudi_assets.__file__).parent


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that are imported when the code runs. What only types are checked by is left out."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.ImportFrom):
        yield node.module or ""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def test_one_module_uses_what_is_private_to_dagster() -> None:
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if any(module.startswith("dagster._") for module in imported(ast.parse(file.read_text("utf-8"))))
    }
    assert found == {"demo/driver.py"}
