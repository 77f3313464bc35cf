"""The readers that must agree: our engine, Apache Hudi's releases, hudi-rs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs

VIEWS = ("snapshot", "read_optimized")
FIRST = "000"  # 1.2.0 refuses a longer row of zeros
HUDI_RS = "hudi-rs"


@dataclass(frozen=True)
class Readers:
    """All that can read a table at a path."""

    spark: SparkSession
    hudi: Mapping[str, Hudi]

    def ours(self, table: HudiTable, view: str) -> Rows:
        frame = table.snapshot(self.spark) if view == "snapshot" else table.read_optimized(self.spark)
        return by_key(frame.toArrow())

    def others(self, path: Path | str) -> Mapping[str, Callable[[str], pa.Table]]:
        readers: dict[str, Callable[[str], pa.Table]] = {
            f"Hudi {release}": partial(hudi.read, path) for release, hudi in self.hudi.items()
        }
        readers[HUDI_RS] = lambda view: read_with_hudi_rs(str(path), view)
        return readers

    def agree(self, table: HudiTable, step: str, *, hudi_rs: bool = True) -> dict[str, Rows]:
        """Assert that every reader gives our engine's rows in both views; returns them by view.

        hudi-rs 0.5.0 does not show what was appended beside a pending compaction, whoever wrote it
        (Apache Hudi's own tables neither): `hudi_rs=False` for such a step.
        """
        answers = {view: self.ours(table, view) for view in VIEWS}
        for name, read in self.others(table.path).items():
            if name == HUDI_RS and not hudi_rs:
                continue
            for view, expected in answers.items():
                unlike = differences(expected, by_key(read(view)))
                assert not unlike, f"{step}: {name}'s {view} is not ours:\n" + "\n".join(unlike)
        return answers


@dataclass(frozen=True)
class History:
    """A table's answers through time, as one Hudi release gives them."""

    hudi: Hudi
    path: Path

    def instants(self) -> list[str]:
        """Completed commits, delta commits and compactions, in order."""
        return [
            time
            for time, action, state in self.hudi.timeline(self.path)
            if state == "COMPLETED" and action in ("commit", "deltacommit")
        ]

    def as_of(self, instant: str) -> Rows:
        return by_key(self.hudi.read(self.path, "time_travel", as_of=instant))

    def between(self, begin: str, end: str) -> Rows:
        """Incremental: begin < commit ≤ end."""
        return by_key(self.hudi.read(self.path, "incremental", begin=begin, end=end))


def same_time_travel(before: History, after: History) -> None:
    """As of every instant of `after`, the answer is that of `before` at its newest instant not later."""
    old = before.instants()
    for instant in after.instants():
        known = max(i for i in old if i <= instant)
        unlike = differences(before.as_of(known), after.as_of(instant))
        assert not unlike, f"as of {instant} (known as of {known}):\n" + "\n".join(unlike)


def same_incremental(before: History, after: History) -> None:
    """Every range of `after` gives the rows that `before` gives for it, compactions inside it or not.

    In a range with a compaction, Hudi itself stops showing a late record that an older commit already beats;
    so there the rows compared are those that the end state holds.
    """
    old = before.instants()
    new = after.instants()
    end_state = before.as_of(old[-1])
    for begin, end in combinations([FIRST, *new], 2):
        expected = before.between(begin, end) if any(begin < i <= end for i in old) else {}
        if any(begin < i <= end for i in set(new) - set(old)):
            expected = {key: row for key, row in expected.items() if end_state.get(key) == row}
            shown = {key: row for key, row in after.between(begin, end).items() if end_state.get(key) == row}
        else:
            shown = after.between(begin, end)
        unlike = differences(expected, shown)
        assert not unlike, f"({begin}, {end}]:\n" + "\n".join(unlike)
