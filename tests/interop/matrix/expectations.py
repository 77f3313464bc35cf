"""What each cell of the matrix does today: right, or refused by name.

A cell that is refused names the error and a part of its message. Where a refusal has become support its test fails,
until the line here is taken out. `table.py` makes the table in the docs from this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from hudi_assets.engine import HudiAssetsError, UnsupportedTable
from tests.interop.matrix.kinds import KINDS, Kind

TOPICS = {
    "compaction": "Hudi writes, we compact: Hudi's four queries",
    "reading": "Hudi writes: our four queries",
    "writing": "We create and write: Hudi's four queries",
    "our-writes": "We write into Hudi's table: Hudi's four queries",
    "switched-off": "The same with `hudi_assets.metadata.switch.off=true`",
    "append": "Our pending plan, Hudi appends",
    "execution": "Our pending plan, Hudi executes it",
    "rollback": "Our pending plan, Hudi takes a write back",
    "clean": "Our pending plan, Hudi cleans",
    "their-plan": "Hudi's pending compaction or clustering: we plan nothing",
    "our-crash": "We crash: Hudi recovers",
    "their-crash": "Hudi crashes: we recover",
    "rounds": "50 random rounds by either side",
    "hudi-rs": "hudi-rs 0.5 reads the end states",
}


@dataclass(frozen=True)
class Refusal:
    """A cell that is refused: the error's kind, a part of its message, and the table's word for it."""

    error: type[HudiAssetsError]
    message: str
    words: str


_PARTITION_STATS = Refusal(
    UnsupportedTable,
    "would make partitions of the metadata table untrue: partition_stats",
    "refused unless `hudi_assets.metadata.switch.off=true`: a write would make Hudi's partition statistics untrue",
)


def refusal(topic: str, kind: Kind) -> Refusal | None:
    """How the engine refuses a cell; None where it works."""
    if topic == "our-writes" and kind.metadata and kind.version == 9:  # on version 8 it keeps none by itself
        return _PARTITION_STATS
    return None


def limit(topic: str, kind: Kind) -> str | None:
    """What is not as good as it sounds in a cell that works, in words; its test does not ask for it."""
    if topic == "execution" and not kind.completion_times:
        return "an incremental range over a plan that Hudi executed lacks the rows of carried-over log files in Hudi"
    if topic == "hudi-rs" and kind.metadata and kind.completion_times:
        return "going by the metadata table, hudi-rs 0.5 shows no file group of log files alone, Hudi's neither"
    return None


@contextmanager
def expected(topic: str, kind: Kind) -> Iterator[None]:
    """Around all of a cell that asks our engine: passes where the cell does what its expectation says."""
    known = refusal(topic, kind)
    if known is None:
        yield
        return
    try:
        yield
    except known.error as error:
        if not re.search(known.message, str(error)):
            raise
        return
    pytest.fail(f"{topic} on {kind.name} works now: take its refusal out of expectations.py")


def cells(topic: str, *quick: str) -> list[object]:
    """A parameter per kind of table; those not named in `quick` are marked slow.

    The quick cells begin with three stories in all, so that these are what their time goes into once.
    """
    assert topic in TOPICS
    unknown = set(quick) - {kind.name for kind in KINDS}
    assert not unknown, unknown
    return [pytest.param(kind, id=kind.name, marks=[] if kind.name in quick else [pytest.mark.slow]) for kind in KINDS]
