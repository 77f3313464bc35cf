"""README and docs against the project: links resolve, and what they list is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hudi_assets.cli import app
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.table.settings.config import _OWN_SETTINGS
from hudi_assets.home import project_root

ROOT = project_root()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [
    file.as_posix()
    for folder in ("hudi_assets", "pyspark_hudi_assets", "tests", "benchmarks", "docs", "resources", "scripts")
    for file in (ROOT / folder).rglob("*.*")
    if file.suffix in (".py", ".java")
]
SETTINGS = ROOT / "docs/reference/settings.md"
COMMANDS = (ROOT / "docs/reference/commands.md").read_text()
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# Files of the project by their path, as code in the text.
_PATH = re.compile(r"`((?:tests|hudi_assets|engine|resources|benchmarks|scripts|docs)/[\w./-]+)`")


def anchors(page: Path) -> set[str]:
    """The headings' anchors, as they are made for Markdown on the web."""
    headings = re.findall(r"^#+ +(.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_are_there(page: Path) -> None:
    named = _PATH.findall(page.read_text())
    assert [path for path in named if not any((root / path).exists() for root in (ROOT, ROOT / "hudi_assets"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_modules_that_are_named_by_the_end_of_their_path_are_there(page: Path) -> None:
    """As `timeline/zone.py`. What a reader is to make in a project of their own is no module here."""
    named = re.findall(r"`((?!shop/|defs/)[\w.-]+/[\w./-]+\.(?:py|java))`", page.read_text())
    assert [path for path in named if not any(code.endswith(f"/{path}") for code in CODE)] == []


def test_every_setting_of_ours_is_listed() -> None:
    keys = {page: set(re.findall(r"^\| `(hudi_assets\.[a-z.]+)`", page.read_text(), re.MULTILINE)) for page in PAGES}
    assert keys[SETTINGS] == _OWN_SETTINGS
    assert keys[ROOT / "docs/reference/format.md"] >= _OWN_SETTINGS  # which lists what else is written by these names


def test_every_merge_mode_is_explained_and_no_other() -> None:
    page = (ROOT / "docs/explanation/merge.md").read_text()
    (table,) = re.findall(r"^\| mode \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^\| `([A-Z0-9_]+)` \|", table, re.MULTILINE)) == set(MergeMode)


def test_every_command_is_listed_and_no_other() -> None:
    (table,) = re.findall(r"^\| command \|.*?\n\n", COMMANDS, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`([a-z-]+)\b[^`]*`", cell)}
    functions = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    assert listed == {name.replace("_", "-") for name in functions} | groups


def test_make_targets_that_are_named_are_there() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z][a-z0-9-]*)", page.read_text()))
        assert named <= targets, page


def test_the_readme_is_short_and_every_page_is_in_the_index() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1500
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)", index.read_text())}
    assert [page for page in PAGES if page.is_relative_to(index.parent) and page not in linked | {index}] == []


def test_every_decision_has_a_status() -> None:
    for page in sorted((ROOT / "docs/decisions").glob("*.md")):
        assert re.search(r"^Status: (Accepted|Superseded by)\b", page.read_text(), re.MULTILINE), page


def test_commands_of_the_readme_are_there() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make run" in readme
    assert "make test" in readme
    functions = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    code = "\n".join(_FENCED.findall(readme))
    named = set(re.findall(r"^(?:\S*/)?hudi-assets +([a-z-]+)", code, re.MULTILINE))
    assert named
    assert named <= {name.replace("_", "-") for name in functions}
