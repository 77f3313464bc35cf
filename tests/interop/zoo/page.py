"""The tables in docs/reference/zoo.md, from the list of configurations and from what was seen of each.

    .venv/bin/python -m tests.interop.zoo.page            # prints them
    .venv/bin/python -m tests.interop.zoo.page --write    # takes over what was seen last, and puts them into the page

A unit test checks that the page has the current ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.zoo.configuration import Configuration
from tests.interop.zoo.seen import kept, take_over
from tests.interop.zoo.whole_list import ZOO

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/zoo.md"
BEGIN, END = "<!-- zoo: begin -->", "<!-- zoo: end -->"
HEAD = ("configuration", "Hudi", "version", "look", "plan takes", "by us", "our queries", "by Hudi", "notes")
Record = Mapping[str, Any]


class Notes:
    """Sentences below the table, each with a number."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def number(self, sentence: str) -> str:
        if sentence not in self._sentences:
            self._sentences.append(sentence)
        return f"({self._sentences.index(sentence) + 1})"

    def lines(self) -> Iterator[str]:
        for number, sentence in enumerate(self._sentences, 1):
            yield f"- ({number}) {sentence}"


def lines(records: Mapping[str, Record]) -> Iterator[str]:
    """A table for each part of the list, and the notes of all."""
    notes = Notes()
    for title, listed in ZOO.items():
        yield from ("", f"## {title}", "", f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD))
        for configuration in listed:
            yield f"| {' | '.join(_row(configuration, records[configuration.id], notes))} |"
    yield from ("", "## Notes", "", *notes.lines())


def _row(configuration: Configuration, record: Record, notes: Notes) -> Sequence[str]:
    plan = record["plans"].get("part")
    refused = record["refused"]
    return (
        configuration.name,
        configuration.release,
        str(configuration.version),
        _refused(refused, "freshness", notes) or "yes",
        f"{plan[0]} of {sum(plan)}" if plan else "–",
        _refused(refused, "part: by us", notes) or _asked(configuration, "yes"),
        _refused(refused, "query snapshot", notes) or _asked(configuration, "yes"),
        _refused(refused, "part: by Hudi", notes) or _asked(configuration, "yes"),
        " ".join(_further(configuration, record, notes)),
    )


def _asked(configuration: Configuration, answer: str) -> str:
    return "–" if configuration.looked else answer


def _refused(refused: Mapping[str, str], asked: str, notes: Notes) -> str | None:
    words = refused.get(asked)
    return None if words is None else f"refused {notes.number(words)}"


def _further(configuration: Configuration, record: Record, notes: Notes) -> Iterator[str]:
    if configuration.note:
        yield notes.number(configuration.note)
    if record["failed"]:
        for kind, words in configuration.failing.items():
            queries = kind.replace("_", "-")
            yield notes.number(f"Some {queries} queries fail in Hudi itself, before our compaction too: “{words}”.")


def inserted(text: str, records: Mapping[str, Record]) -> str:
    """The page with the current tables between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(lines(records)) + "\n\n" + END + after


def main() -> None:
    if "--write" in sys.argv[1:]:
        take_over()
        PAGE.write_text(inserted(PAGE.read_text(), kept()))
    else:
        print("\n".join(lines(kept())))


if __name__ == "__main__":
    main()
