"""The simulator of `hudi-assets simulate` beside a real table: the same commits, and the same policy.

    python -m benchmarks.simulated_and_real [--days 30] [--hours 3] [--slo 6h,1d] [--versions 9,6] [--never] [--spark]

The stream of flights is written to a table, a commit for each window of so many hours. After each of them the table is
compacted where the policy for the SLO says. Then the simulator is given what the table's timeline tells
(`HudiTable.past_feed`), and compacts by the same policy. It does so for the SLO that the table was kept for, and for
each other one: `told by 6h` at SLO 1d is what the past of a table kept at six hours says of a day. With `--never` also
for what a table says that never was compacted (`told by none`).

How long a compaction takes is stated (`MACHINE`), as the policy weighs it: on a table of a few MB it is mostly noise.
With `--timed` it is what it really was, and the simulator takes what the policy learned from it.

The grid comes at the end. Before that a line to standard error says what is done.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from hudi_assets.demo.flights import KEY_FIELDS, FlightStream
from hudi_assets.engine import CompactionSeries, Feed, HudiTable, NoPlan, StartNow
from hudi_assets.engine.model.units import HOUR_MS, MINUTE_MS
from hudi_assets.engine.slo.simulation.feed import Machine
from hudi_assets.engine.slo.simulation.policies import Ours
from hudi_assets.engine.slo.simulation.run import simulate
from hudi_assets.engine.slo.terms import terms_of
from hudi_assets.engine.slo.values import SloTerms
from hudi_assets.engine.spark.start import local_session
from hudi_assets.home import home
from tests.tables.local_session import install

# Less than it takes here, so that no compaction seems to have begun before its commits. And its bytes count in it.
MACHINE = Machine(fixed_ms=20, bytes_per_s=50e6, noise=0, publish_ms=0)
LATENCY = "2h"
LATENCY_MS = 2 * HOUR_MS
NEVER = "none"


@dataclass(frozen=True, slots=True)
class Found:
    """What compactions read and wrote, until nothing remained. `behind`: of the freshness, at each commit."""

    read: int
    written: int
    compactions: int
    missed_min: float
    behind: tuple[tuple[int, int], ...]

    @property
    def mean_behind_min(self) -> float:
        return mean(ms for _, ms in self.behind) / MINUTE_MS


@dataclass(frozen=True, slots=True)
class Both:
    real: Found
    simulated: Found

    @property
    def rows(self) -> Iterator[tuple[str, float, float]]:
        """What is compared: real, simulated."""
        real, simulated = self.real, self.simulated
        yield "MB read", real.read / 1e6, simulated.read / 1e6
        yield "MB written", real.written / 1e6, simulated.written / 1e6
        yield "compactions", real.compactions, simulated.compactions
        yield "minutes beyond the SLO", real.missed_min, simulated.missed_min
        yield "minutes behind, mean", real.mean_behind_min, simulated.mean_behind_min

    @property
    def furthest_off(self) -> float:
        """As a share of what is real."""
        return max(abs(simulated - real) / max(real, 1e-9) for _, real, simulated in self.rows if real or simulated)

    @property
    def same_freshness(self) -> float:
        """The share of the commits after which both have the same freshness, to the millisecond."""
        pairs = zip(self.real.behind, self.simulated.behind, strict=True)
        return mean(one == other for one, other in pairs)


def replayed(
    path: Path,
    stream: FlightStream,
    version: int,
    terms: SloTerms | None,
    session: Any,
    machine: Machine | None = MACHINE,
    partition: str = "origin",
) -> tuple[Found, Feed]:
    """On a real table; without terms it is never compacted. At the end all that remains is, as in a simulation."""
    table = HudiTable.create(
        str(path),
        stream.schema,
        record_key=list(KEY_FIELDS),
        ordering_field="event_time",
        event_time_field="event_time",
        partition_fields=[partition],
        buckets=2 if partition == "origin" else 1,
        clock="commit",
        data_latency=LATENCY,
        table_version=version,
    )
    table = HudiTable.open(str(path), settings={"hudi_assets.writers": "stopped"})
    frame = session.frame if hasattr(session, "frame") else session.createDataFrame
    behind: list[tuple[int, int]] = []
    for batch in stream.batches:
        rows = stream.rows(batch)
        if not len(rows):
            continue
        table.upsert(session, frame(rows), clock_time=datetime.fromtimestamp(batch.end_ms / 1000, UTC))
        if terms is not None:
            found = table.propose_compaction(terms, publish_ms=0)
            if isinstance(found, StartNow):
                series = table.compact(session, threshold=found.threshold)
                if machine is not None and not isinstance(series, NoPlan):
                    take_as_long(table, series, machine)
        behind.append((batch.end_ms, batch.end_ms - (table.freshness().freshness or 0)))
    compactions, feed = len(table.bills()), table.past_feed()
    table.compact(session, threshold=table.now_ms())
    bills = table.bills()
    return Found(
        read=sum(bill.bytes_read or 0 for bill in bills),
        written=sum(bill.bytes_written for bill in bills),
        compactions=compactions,
        missed_min=0.0 if terms is None else beyond(behind, terms.slo_ms, feed.until_ms) / MINUTE_MS,
        behind=tuple(behind),
    ), feed


def take_as_long(table: HudiTable, series: CompactionSeries, machine: Machine) -> None:
    """Have the timeline say that these compactions took as long as this machine takes."""
    timeline = Path(table.path, ".hoodie/timeline" if table.config.table_version >= 8 else ".hoodie")
    bills = {bill.instant: bill for bill in table.bills()}
    size = taken_ms = 0
    for one in series.compactions:
        bill = bills[one.instant]
        size += (bill.bytes_read or 0) + bill.bytes_written
        upto_ms = round(machine.fixed_ms + size / machine.bytes_per_s * 1000)
        begun = (bill.completed_ms - (upto_ms - taken_ms)) * 1_000_000
        os.utime(timeline / f"{one.instant}.compaction.inflight", ns=(begun, begun))
        taken_ms = upto_ms


def beyond(behind: Sequence[tuple[int, int]], slo_ms: int, until_ms: int) -> int:
    """For how long rows that are in no base file were further behind than the SLO, from commit to commit."""
    total = 0
    for (now, ms), (then, _) in pairwise([*behind, (until_ms, 0)]):
        if ms > LATENCY_MS:
            total += max(0, then - max(now, now - ms + slo_ms))
    return total


def simulated(feed: Feed, terms: SloTerms, machine: Machine | None = MACHINE) -> Found:
    found = simulate(feed, Ours(terms), terms.slo_ms, machine, with_lags=True)
    return Found(found.bytes_read, found.bytes_written, found.compactions, found.missed_min, found.lags)


def compared(
    folder: Path,
    stream: FlightStream,
    version: int,
    slos: Sequence[str],
    session: Any,
    machine: Machine | None = MACHINE,
    partition: str = "origin",
    never: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[tuple[str, str], Both]:
    """By the SLO, and the one by whose table the simulator was told."""
    real: dict[str, Found] = {}
    feeds: dict[str, Feed] = {}
    for slo in (*slos, *([NEVER] if never else [])):
        began = time.monotonic()
        terms = None if slo == NEVER else terms_of(slo)
        path = folder / f"{version}-{slo}"
        real[slo], feeds[slo] = replayed(path, stream, version, terms, session, machine, partition)
        tell(f"version {version}, SLO {slo}: {time.monotonic() - began:.0f} s")
    return {(slo, by): Both(real[slo], simulated(feeds[by], terms_of(slo), machine)) for slo in slos for by in feeds}


def show(version: int, found: dict[tuple[str, str], Both]) -> None:
    grid = Grid("SLO", "told by", "what", "real", "simulated", "off", title=f"version {version}")
    for (slo, by), both in found.items():
        for what, real, simulation in both.rows:
            off = f"{simulation / real - 1:+.1%}" if real else "" if not simulation else "–"
            grid.add_row(slo, by, what, f"{real:,.1f}", f"{simulation:,.1f}", off)
        grid.add_row(slo, by, "the same freshness, of commits", "", f"{both.same_freshness:.1%}", "")
        grid.add_section()
    Console(width=120).print(grid)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulated_and_real", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--hours", type=float, default=3, help="of a commit's window")
    parser.add_argument("--slo", default="6h,1d")
    parser.add_argument("--versions", default="9,6")
    parser.add_argument("--partition", default="origin", help="origin, with 2 file groups in each, or flight_date")
    parser.add_argument("--never", action="store_true", help="also what a table says that never was compacted")
    parser.add_argument("--timed", action="store_true", help="by the durations that the table's compactions really had")
    parser.add_argument("--spark", action="store_true", help="a real Spark; else its part is done in this process")
    asked = parser.parse_args()
    stream = FlightStream(days=asked.days, batch_hours=asked.hours)
    session = local_session("simulated-and-real", "local[2]", quiet=True) if asked.spark else install()
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home(), prefix="simulated-") as scratch:
        for version in map(int, asked.versions.split(",")):
            slos = asked.slo.split(",")
            machine = None if asked.timed else MACHINE
            found = compared(
                Path(scratch), stream, version, slos, session, machine, asked.partition, asked.never, _tell
            )
            show(version, found)


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
