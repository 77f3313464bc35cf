"""The table in docs/reference/beside_hudi.md of what works beside Apache Hudi, from the matrix's expectations.

    .venv/bin/python -m tests.interop.matrix.table            # prints it
    .venv/bin/python -m tests.interop.matrix.table --write    # puts it into the page

A unit test checks that the page has the current one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.interop.matrix.expectations import TOPICS, limit, refusal
from tests.interop.matrix.kinds import KINDS, Kind

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/beside_hudi.md"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


def _heading(kind: Kind) -> str:
    return f"{kind.release} v{kind.version}{', metadata table' if kind.metadata else ''}"


def _cell(topic: str, kind: Kind, notes: list[str]) -> str:
    known = refusal(topic, kind)
    words = known.words if known else limit(topic, kind)
    if words is None:
        return "✓"
    if words not in notes:
        notes.append(words)
    return f"{'–' if known else '✓'} ({notes.index(words) + 1})"


def lines() -> Iterator[str]:
    """The table in Markdown: a row per topic, a column per kind of table; refusals and limits are numbered below it."""
    notes: list[str] = []
    rows = [[words, *(_cell(topic, kind, notes) for kind in KINDS)] for topic, words in TOPICS.items()]
    head = ["", *map(_heading, KINDS)]
    yield "| " + " | ".join(head).strip() + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    if notes:
        yield ""
        yield " ".join(f"({number}) {words}." for number, words in enumerate(notes, 1))


def inserted(text: str) -> str:
    """The page with the current table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(lines()) + "\n" + END + after


def main() -> None:
    if "--write" in sys.argv[1:]:
        PAGE.write_text(inserted(PAGE.read_text()))
    else:
        print("\n".join(lines()))


if __name__ == "__main__":
    main()
