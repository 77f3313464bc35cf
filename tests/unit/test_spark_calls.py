"""Who may speak to Spark: its own package alone, by imports and by what only Spark's objects have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "hudi_assets/engine"
OWNER = ENGINE / "spark"
PACKAGES = {"pyspark", "py4j"}
# Names of DataFrames', sessions' and contexts' members that nothing else in the engine has.
SPARKS_OWN = {
    "mapInArrow",
    "mapInPandas",
    "persist",
    "unpersist",
    "localCheckpoint",
    "repartition",
    "repartitionById",
    "selectExpr",
    "withColumn",
    "createDataFrame",
    "sparkSession",
    "sparkContext",
    "defaultParallelism",
    "rdd",
    "_jdf",
    "_jvm",
    "_jsparkSession",
}


def imported_at_runtime(tree: ast.AST) -> Iterator[str]:
    """Packages that are imported when the module is, or when its functions run; not those for annotations alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
        yield from imported_at_runtime(node)


def leaks(source: str) -> list[str]:
    tree = ast.parse(source)
    members = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return sorted({*imported_at_runtime(tree)} & PACKAGES) + sorted(members & SPARKS_OWN)


def test_nothing_but_its_package_speaks_to_spark() -> None:
    modules = [path for path in ENGINE.rglob("*.py") if path.parent != OWNER]
    assert len(modules) > 50
    found = {str(path.relative_to(ENGINE)): leaks(path.read_text("utf-8")) for path in modules}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from pyspark.sql import functions", ["pyspark"]),
        ("def f():\n    import py4j.protocol", ["py4j"]),
        ("if TYPE_CHECKING:\n    from pyspark.sql import DataFrame", []),
        ("def f(frame):\n    return frame.where('x').persist()", ["persist"]),
    ],
)
def test_leaks_are_noticed(source: str, found: list[str]) -> None:
    assert leaks(source) == found
