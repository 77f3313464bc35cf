"""What each reader shows at each moment: the table in docs/reference/readers.md, and what the test asserts.

    .venv/bin/python -m tests.interop.trino.table            # prints it
    .venv/bin/python -m tests.interop.trino.table --write    # puts it into the page

A unit test checks that the page has the current one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.interop.trino.life import MOMENTS

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/readers.md"
RO, SNAPSHOT, REFUSED, SEVERAL = "RO", "snapshot", "refused", "several versions"
BEGIN, END = "<!-- readers: begin -->", "<!-- readers: end -->"
_ALWAYS: Final = {word: (word,) * len(MOMENTS) for word in (RO, REFUSED)}
# After a full compaction both views are the same.
_SNAPSHOT: Final = (SNAPSHOT, SNAPSHOT, SNAPSHOT, RO, RO)
# Both base files of a file group lie there from a compaction until a clean.
_LISTED: Final = (RO, RO, SEVERAL, SEVERAL, RO)


EXPECTED: Final[dict[str, tuple[str, ...]]] = {
    "Trino, Hudi connector, synced _ro": _ALWAYS[RO],
    "Trino, Hudi connector, synced _rt": _ALWAYS[RO],
    "Trino, Hive connector led to the Hudi connector, synced _ro": _ALWAYS[RO],
    "Trino, Hive connector, synced _ro": _ALWAYS[REFUSED],
    "Trino, own view": _ALWAYS[REFUSED],
    "hudi-rs, read-optimized": _ALWAYS[RO],
    "hudi-rs, snapshot": _SNAPSHOT,
    "DuckDB, read_parquet of a pattern": _LISTED,
    "DuckDB, read_parquet of the files of HudiTable.read_optimized_files": _ALWAYS[RO],
    "PyArrow, dataset of the folder": _LISTED,
}


def lines() -> Iterator[str]:
    """The table in Markdown: a row per reader, a column per moment."""
    yield "| reader | " + " | ".join(MOMENTS) + " |"
    yield "|" + "---|" * (len(MOMENTS) + 1)
    for name, words in EXPECTED.items():
        yield f"| {name} | " + " | ".join(words) + " |"


def with_table(page: str) -> str:
    """The page with the current table between its marks."""
    before, rest = page.split(BEGIN)
    return "\n".join([before + BEGIN, *lines(), END]) + rest.split(END)[1]


def main() -> None:
    if "--write" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text()))
    else:
        print("\n".join(lines()))


if __name__ == "__main__":
    main()
