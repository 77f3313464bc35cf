"""What the pages for users show, as they stand there: fenced blocks, and the commands in those of the shell."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hudi_assets.home import project_root

ROOT = project_root()
# README, tutorial and how-to: what a reader copies and runs.
FOR_USERS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs/tutorial").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
]
ALL = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# A fence opens a block where a word may follow it, and closes it alone: taken in pairs. In a list both are indented.
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")


@dataclass(frozen=True)
class Block:
    """One fenced block. `language`: the word behind the fence, empty where there is none."""

    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """One line of a shell, without comment and without the variables that stand before it."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def arguments(self) -> tuple[str, ...] | None:
        """What the command `hudi-assets` is given; None where the line calls another."""
        return self.words[1:] if self.words[0].rpartition("/")[2] == "hudi-assets" else None


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """Those of one language, or all of them."""
    return blocks_of(page.read_text("utf-8"), language)


def blocks_of(text: str, language: str | None = None) -> list[Block]:
    """As `blocks`, of a part of a page."""
    found = [Block(kind, textwrap.dedent(inside)) for _, kind, inside in _FENCED.findall(text)]
    return [block for block in found if language in (None, block.language)]


def commands(page: Path) -> list[Command]:
    """In the page's order. What a here-document holds is no command."""
    return [
        Command(name_of(page), words)
        for block in blocks(page, "sh")
        for line in _whole_lines(block.text)
        if (words := _without_variables(shlex.split(line, comments=True)))
    ]


def _whole_lines(text: str) -> Iterator[str]:
    """A line that ends with a backslash goes on in the next one."""
    ends_with: str | None = None
    for line in text.replace("\\\n", " ").splitlines():
        if ends_with is None:
            yield line
            document = _HERE_DOCUMENT.search(line)
            ends_with = document[1] if document else None
        elif line == ends_with:
            ends_with = None


def _without_variables(words: list[str]) -> tuple[str, ...]:
    first = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    return tuple(words[first:])
