"""The engine's size and its imports at revisions of the project, as a table for the docs.

    scripts/with-env python -m tests.figures c7502a2 HEAD

A room is what lies directly in `hudi_assets/engine`, a package or a module. An arrow is a room that imports another,
however often. A circle is a set of rooms each of which leads to all others. A chain is of modules, each of which
imports the next; a module counts once, also where it is in a circle.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import PurePosixPath

from tests.unit.test_one_layout import PACKAGES, PROJECT, decisions

ENGINE = "hudi_assets.engine"
Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Figures:
    """The fields are the table's rows."""

    engine_files: int
    engine_lines: int
    rooms: int
    arrows_between_rooms: int
    pairs_that_import_each_other: int
    rooms_in_the_largest_circle: int
    modules_in_the_longest_chain: int
    questions_about_the_version_outside_the_layout: int
    type_ignores_in_tests: int
    words_in_the_readme: int


def figures(sources: Mapping[str, str]) -> Figures:
    """Of a project, as path → text: its Python files and its README."""
    engine = {path: text for path, text in sources.items() if path.startswith("hudi_assets/engine/")}
    modules = imports(engine)
    rooms = grouped(modules)
    outside = [
        text
        for path, text in sources.items()
        if path.startswith(PACKAGES) and path.endswith(".py") and "layout" not in PurePosixPath(path).parts
    ]
    tests = [text for path, text in sources.items() if path.startswith("tests/")]
    return Figures(
        engine_files=len(engine),
        engine_lines=sum(len(text.splitlines()) for text in engine.values()),
        rooms=len(rooms),
        arrows_between_rooms=sum(map(len, rooms.values())),
        pairs_that_import_each_other=sum(a in rooms[b] and b in rooms[a] for a, b in combinations(rooms, 2)),
        rooms_in_the_largest_circle=max((len(one) for one in circles(rooms)), default=0),
        modules_in_the_longest_chain=longest_chain(modules),
        questions_about_the_version_outside_the_layout=sum(len(decisions(text)) for text in outside),
        type_ignores_in_tests=sum(text.count("# type: ignore") for text in tests),
        words_in_the_readme=len(sources["README.md"].split()),
    )


def imports(engine: Mapping[str, str]) -> Graph:
    """Module → the engine's modules that it imports, wherever in it. A name of a package's is the package's own."""
    names = {_name(path): text for path, text in engine.items()}
    found: dict[str, set[str]] = {}
    for name, text in names.items():
        asked = (module for node in ast.walk(ast.parse(text)) for module in _asked(node))
        known = {next((one for one in _upwards(module) if one in names), "") for module in asked}
        found[name] = known - {"", name}
    return found


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _asked(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def _upwards(module: str) -> Iterator[str]:
    while module:
        yield module
        module = module.rpartition(".")[0]


def grouped(modules: Graph) -> Graph:
    """The same between rooms. The engine's own `__init__` is none."""
    rooms: dict[str, set[str]] = {}
    for module, asked in modules.items():
        if (room := _room(module)) is not None:
            others = {other for one in asked if (other := _room(one)) is not None}
            rooms.setdefault(room, set()).update(others - {room})
    return rooms


def _room(module: str) -> str | None:
    return module.removeprefix(f"{ENGINE}.").partition(".")[0] if module != ENGINE else None


def circles(graph: Graph) -> list[set[str]]:
    """Those of two nodes at least."""
    reached = {node: _reached(graph, node) for node in graph}
    found = {frozenset(b for b in graph if a in reached[b] and b in reached[a]) for a in graph if a in reached[a]}
    return [set(one) for one in found if len(one) > 1]


def _reached(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    left = list(graph[start])
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left.extend(graph[node])
    return seen


def longest_chain(graph: Graph) -> int:
    """The modules of a circle follow each other in the chain, in whatever order."""
    member = {node: node for node in graph}
    for circle in circles(graph):
        member.update(dict.fromkeys(circle, min(circle)))
    sizes: dict[str, int] = {}
    for group in member.values():
        sizes[group] = sizes.get(group, 0) + 1
    next_: dict[str, set[str]] = {group: set() for group in sizes}
    for node, asked in graph.items():
        next_[member[node]] |= {member[one] for one in asked} - {member[node]}
    longest: dict[str, int] = {}

    def length(group: str) -> int:
        if group not in longest:
            longest[group] = sizes[group] + max(map(length, next_[group]), default=0)
        return longest[group]

    return max(map(length, sizes), default=0)


def at(revision: str) -> dict[str, str]:
    """The project's files at a revision."""
    packed = subprocess.run(
        ["git", "archive", revision, *PACKAGES, "tests", "README.md"], cwd=PROJECT, capture_output=True, check=True
    ).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for one in archive:
            if one.name.endswith((".py", "README.md")) and (file := archive.extractfile(one)):
                found[one.name] = file.read().decode()
    return found


def table(revisions: Sequence[str]) -> str:
    found = [figures(at(revision)) for revision in revisions]
    rows = [
        [field.name.replace("_", " "), *(f"{getattr(one, field.name):,}" for one in found)] for field in fields(Figures)
    ]
    head = [["what", *revisions], ["---"] * (len(revisions) + 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows])


if __name__ == "__main__":
    print(table(sys.argv[1:] or ["HEAD"]))
