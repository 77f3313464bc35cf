"""What a partial compaction saves, and what else would: bytes for each hour of freshness, simulated and on real tables.

    python -m benchmarks.less_to_rewrite [--what simulated,tables,policy] [--slo 1h,6h] [--feeds steady,late-partner]

`simulated`: four days of made-up rows. What a plan takes, how the writer lays rows out, how wide partitions are.
`tables`: a dozen commits with late rows in each, by unmodified Apache Hudi 1.2.0 and by this project's writer. After
every fourth the same threshold is compacted by three plans: what is due, whole slices with something due, everything.
`policy`: thirty-six commits of this project's writer, compacted where the SLO's policy says, by two of these plans.

Each grid comes at its end. Before that a line to standard error says what is done, and how long it took.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table as Grid

from hudi_assets.engine import HudiTable, NoPlan, StartNow, duration
from hudi_assets.engine.model.units import HOUR_MS, MINUTE_MS
from hudi_assets.engine.slo.simulation.feed import Feed
from hudi_assets.engine.slo.simulation.feeds import Scale, feed_of
from hudi_assets.engine.slo.simulation.least import least_bytes
from hudi_assets.engine.slo.simulation.outcome import Outcome
from hudi_assets.engine.slo.simulation.policies import Compact, Later, Ours, Seen
from hudi_assets.engine.slo.simulation.run import simulate
from hudi_assets.engine.slo.terms import terms_of
from hudi_assets.engine.slo.values import Cut, SloTerms
from hudi_assets.engine.table.settings.compaction import WHOLE_SLICES
from hudi_assets.home import home
from scripts.hudi_client import Hudi
from tests.interop.tables import hudi_options
from tests.tables.local_session import LocalSession, install

BEGIN_MS: Final = 1_700_006_400_000  # a full hour
STEP_MS: Final = 10 * MINUTE_MS
LATENCY_MS: Final = 30 * MINUTE_MS
KEYS: Final = 20_000
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("p", pa.string(), nullable=False),
    ]
)


@contextmanager
def told(*what: str) -> Iterator[None]:
    """Say how long this took, once it is done."""
    began = time.monotonic()
    yield
    print(f"{', '.join(what)}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------- simulated


@dataclass(frozen=True)
class Everything(Ours):
    """A full compaction whenever this policy would compact."""

    name: str = "everything, at the same moments"

    def decide(self, seen: Seen) -> Compact | Later:
        found = super().decide(seen)
        return Compact() if isinstance(found, Compact) else found


_A_DAY: Final = Scale()


@dataclass(frozen=True, slots=True)
class Way:
    """A way to have less to rewrite. `policy`: of the SLO's terms."""

    name: str
    cut: Cut
    scale: Scale = _A_DAY
    policy: Callable[[SloTerms], Ours] = Ours


WAYS: Final = (
    Way("what is due, a prefix (8, 9)", Cut.COMMITS),
    Way("everything, when that policy would", Cut.COMMITS, policy=Everything),
    Way("what is due, any log file (6)", Cut.RANGES),
    Way("the same, late rows in log files of their own", Cut.RANGES, Scale(late_apart=True)),
    Way("whole slices with something due", Cut.SLICE),
    Way("a prefix, partitions of 6 hours", Cut.COMMITS, Scale(groups=4, partition_ms=6 * HOUR_MS)),
    Way("a prefix, partitions of 1 hour", Cut.COMMITS, Scale(groups=1, partition_ms=HOUR_MS)),
    Way("whole slices, partitions of 1 hour", Cut.SLICE, Scale(groups=1, partition_ms=HOUR_MS)),
)


def simulated(slos: list[str], feeds: list[str]) -> None:
    for slo in slos:
        terms = terms_of(slo)
        for name in feeds:
            print_ways(f"{name}, SLO {slo}", list(outcomes(name, terms)), least_of(name, terms))


def outcomes(name: str, terms: SloTerms) -> Iterator[tuple[Way, Feed, Outcome]]:
    for way in WAYS:
        with told(name, f"SLO {duration(terms.slo_ms)}", way.name):
            feed = feed_of(name, way.scale, cut=way.cut)
            found = simulate(feed, way.policy(terms), terms.slo_ms)
        yield way, feed, found


def least_of(name: str, terms: SloTerms) -> int:
    found = least_bytes(feed_of(name), terms.slo_ms)
    assert found is not None
    return found


def print_ways(title: str, found: list[tuple[Way, Feed, Outcome]], least: int) -> None:
    grid = Grid(
        "way", "moved, GB", "GB per hour", "of it log files", "compactions", "missed, min", "in time", title=title
    )
    for way, feed, one in found:
        logs = sum(log.size for commit in feed.commits for log in commit.logs)
        moved = one.bytes_moved
        cells = (f"{moved / 1e9:.0f}", f"{moved / 1e9 / (feed.days * 24):.2f}", f"{logs / moved:.0%}")
        grid.add_row(way.name, *cells, str(one.compactions), f"{one.missed_min:.0f}", f"{one.avoidable_min:.0f}")
    grid.add_row("nobody moves less with partitions of a day", f"{least / 1e9:.0f}", *[""] * 5)
    Console(width=140).print(grid)


# --------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows lie in files. `partition_ms`: of event time in a partition; all rows are in one where it is 0."""

    name: str
    buckets: int
    partition_ms: int

    def partition_of(self, at: int) -> str:
        return "all" if not self.partition_ms else f"{(at - BEGIN_MS) // self.partition_ms + 100:03d}"


LAYOUTS: Final = (
    Layout("one partition, 4 file groups", 4, 0),
    Layout("partitions of 1 hour, 1 file group", 1, HOUR_MS),
)
PLANS: Final = ("what is due", "whole slices", "everything")
WRITERS: Final = (("Apache Hudi 1.2.0", 9), ("this project", 9), ("this project", 6))


@dataclass
class Measured:
    """Of the compactions of one table."""

    read: int = 0
    written: int = 0
    taken: int = 0
    there: int = 0
    compactions: int = 0
    gained_ms: int = 0

    def add(self, table: HudiTable, session: LocalSession, threshold: int, claimed: int) -> None:
        """Compact at a threshold, and count. `claimed`: the freshness cannot be beyond."""
        before, bars = freshness_of(table, claimed - 40 * MINUTE_MS), table.log_bars()
        seen = {bill.instant for bill in table.bills()}
        table.compact(session, threshold=threshold)
        for bill in table.bills():
            if bill.instant not in seen:
                self.read += bill.bytes_read or 0
                self.written += bill.bytes_written
                self.compactions += 1
        self.there += len(bars)
        self.taken += len(bars) - len(table.log_bars())
        self.gained_ms += max(0, freshness_of(table, claimed) - before)

    def cells(self) -> tuple[str, ...]:
        hours = self.gained_ms / HOUR_MS
        moved = (self.read + self.written) / 1e6
        each = f"{moved / hours:.1f}" if hours else "none gained"
        files = f"{self.taken} of {self.there}"
        return str(self.compactions), files, f"{self.read / 1e6:.2f}", f"{self.written / 1e6:.2f}", f"{hours:.2f}", each


def freshness_of(table: HudiTable, most: int) -> int:
    """By what remains, epoch ms; `most` where nothing does."""
    return min([most, *(bar.min_event_time - 1 for bar in table.log_bars() if bar.min_event_time is not None)])


def rows_of(commit: int, layout: Layout, count: int = 400) -> pa.Table:
    """One commit's. Of twenty rows one is one to two hours late, three up to 25 minutes, and the others up to 10."""
    random = np.random.default_rng(commit)
    at = BEGIN_MS + (commit + 1) * STEP_MS
    kind = random.integers(0, 20, count)
    late = random.integers(0, 10 * MINUTE_MS, count)
    late = np.where(kind < 4, random.integers(0, 25 * MINUTE_MS, count), late)
    late = np.where(kind < 1, random.integers(60 * MINUTE_MS, 120 * MINUTE_MS, count), late)
    return _rows(random.choice(KEYS, count, replace=False), at - late, layout, random)


def _rows(keys: Any, times: Any, layout: Layout, random: np.random.Generator) -> pa.Table:
    texts = [random.bytes(60).hex() for _ in keys]
    parts = [layout.partition_of(int(at)) for at in times]
    return pa.table([[f"k{key:06d}" for key in keys], [int(at) for at in times], texts, parts], schema=SCHEMA)


def made(path: Path, layout: Layout, version: int, session: LocalSession, **settings: Any) -> HudiTable:
    """A table with base files of the two hours before."""
    table = HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        event_time_field="ts",
        event_time_unit="ms",
        partition_fields=["p"],
        hive_style=True,
        buckets=layout.buckets,
        table_version=version,
        **settings,
    )
    random = np.random.default_rng(0)
    times = BEGIN_MS - random.integers(1, 3 * HOUR_MS, KEYS)
    first = session.frame(_rows(np.arange(KEYS), times, layout, random))
    at = datetime.fromtimestamp(BEGIN_MS / 1000, UTC) if settings.get("clock") == "commit" else None
    table.bulk_insert(session, first, clock_time=at)
    return table


def tables(folder: Path, commits: int = 12, every: int = 4) -> None:
    session = install()
    grid = Grid(
        "writer", "layout", "a plan takes", "plans", "log files", "read, MB", "written", "hours gained", "MB an hour"
    )
    with ExitStack() as stack:
        hudi = stack.enter_context(Hudi("1.2.0"))
        for writer, version in WRITERS:
            for layout in LAYOUTS:
                for plan in PLANS:
                    path = folder / f"{writer}-{version}-{layout.buckets}-{plan}".replace(" ", "-")
                    by = hudi if writer != "this project" else None
                    with told(writer, f"version {version}", layout.name, plan):
                        found = one_table(path, session, by, version, layout, plan, commits, every)
                    grid.add_row(f"{writer}, version {version}", layout.name, plan, *found.cells())
    Console(width=160).print(grid)


def one_table(
    path: Path,
    session: LocalSession,
    hudi: Hudi | None,
    version: int,
    layout: Layout,
    plan: str,
    commits: int,
    every: int,
) -> Measured:
    own = {} if hudi is not None else {"clock": "commit", "data_latency": "30m"}  # so its writer knows what is late
    table, found = made(path, layout, version, session, **own), Measured()
    whole = {WHOLE_SLICES: "true"} if plan == "whole slices" else {}
    reader = HudiTable.open(str(path), settings={"hudi_assets.writers": "stopped", **whole})
    options = hudi_options(name=table.config.name, buckets=layout.buckets)
    options["hoodie.write.table.version"] = str(version)
    for commit in range(commits):
        rows, now = rows_of(commit, layout), BEGIN_MS + (commit + 1) * STEP_MS
        if hudi is None:
            table.upsert(session, session.frame(rows), clock_time=datetime.fromtimestamp(now / 1000, UTC))
        else:
            hudi.write(str(path), rows, options)
        if (commit + 1) % every == 0:
            mark = now - LATENCY_MS
            found.add(reader, session, now if plan == "everything" else mark, mark)
    return found


# --------------------------------------------------------------------------------------------- policy


def policy(folder: Path, slo: str, commits: int = 36) -> None:
    """Bytes of all compactions until the end, and how far behind the freshness was at the most, at commits."""
    session, terms = install(), terms_of(slo)
    grid = Grid(
        "version",
        "layout",
        "a plan takes",
        "compactions",
        "read, MB",
        "written",
        "most behind, min",
        title=f"SLO {slo}",
    )
    for version in (9, 6):
        for layout in LAYOUTS:
            for plan in PLANS[:2]:
                path = folder / f"policy-{version}-{layout.buckets}-{plan}".replace(" ", "-")
                given = {WHOLE_SLICES: "true"} if plan == "whole slices" else {}
                table = made(path, layout, version, session, clock="commit", data_latency="30m")
                table = HudiTable.open(str(path), settings={"hudi_assets.writers": "stopped", **given})
                with told(f"version {version}", layout.name, plan):
                    cells = by_policy(table, session, terms, layout, commits)
                grid.add_row(str(version), layout.name, plan, *cells)
    Console(width=140).print(grid)


def by_policy(
    table: HudiTable, session: LocalSession, terms: SloTerms, layout: Layout, commits: int
) -> tuple[str, str, str, str]:
    behind = 0
    for commit in range(commits):
        at = BEGIN_MS + (commit + 1) * STEP_MS
        rows = rows_of(commit, layout)
        in_time = rows.filter(pc.greater(rows["ts"], at - LATENCY_MS))
        table.upsert(session, session.frame(in_time), clock_time=datetime.fromtimestamp(at / 1000, UTC))
        found = table.propose_compaction(terms, publish_ms=0)
        if isinstance(found, StartNow):
            done = table.compact(session, threshold=found.threshold)
            assert not isinstance(done, NoPlan)
        promise = table.freshness().freshness
        behind = max(behind, at - (promise or 0))
    bills = table.bills()
    moved = sum(bill.bytes_read or 0 for bill in bills), sum(bill.bytes_written for bill in bills)
    return str(len(bills)), f"{moved[0] / 1e6:.2f}", f"{moved[1] / 1e6:.2f}", f"{behind / MINUTE_MS:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.less_to_rewrite", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--what", default="simulated,tables,policy")
    parser.add_argument("--slo", default="1h,6h")
    parser.add_argument("--feeds", default="steady,bursts,late-partner")
    asked = parser.parse_args()
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home(), prefix="less-") as scratch:
        if "tables" in asked.what:
            tables(Path(scratch))
        if "policy" in asked.what:
            policy(Path(scratch), asked.slo.split(",")[0])
    if "simulated" in asked.what:
        simulated(asked.slo.split(","), asked.feeds.split(","))


if __name__ == "__main__":
    main()
