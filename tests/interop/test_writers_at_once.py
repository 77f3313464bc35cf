"""Several writers of Apache Hudi 1.2.0 at once that wait for nobody, while we look, plan and compact in part.

They are its writers with NON_BLOCKING_CONCURRENCY_CONTROL.

WRITERS processes (2) write for WRITERS_SECONDS (30), each with rounds that overlap the others' keys and come late now
and then. Nothing is lost or doubled at any look, the freshness is kept, and at the end Hudi's four queries are ours.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import DATA_LATENCY, HudiTable, NoPlan
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.transaction.clean import CleanResult
from scripts.hudi_client import Hudi
from tests.interop.test_concurrency import JAVA
from tests.interop.test_queries_v9 import Beside
from tests.races.player import SCHEMA, rows_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("WRITERS_SECONDS", "30"))
WRITERS = int(os.environ.get("WRITERS", "2"))
# Enough to judge by, on a machine that is busy with other work.
ROUNDS, COMPACTIONS, PATIENCE_S = 4, 2, 600
LATE_MS = 4_000
NON_BLOCKING: Mapping[str, str] = {
    **{key: value for key, value in JAVA.items() if "lock" not in key and "heartbeat" not in key},
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.write.table.version": "9",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.automatic": "false",
    # It makes the instants of all writers differ; their writes do not wait for each other.
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.num_retries": "300",
    "hoodie.write.lock.filesystem.expire": "5",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
}
SETTINGS: Mapping[str, str] = {
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.query.grace": "0s",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    DATA_LATENCY: "15m",
}
Row = tuple[int, int]


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass
class Round:
    """What one write of one writer said; `done` once Hudi has committed it."""

    rows: Mapping[str, Row]
    done: bool = False


@dataclass
class Journal:
    """All rounds of all writers, and the oracle: of each key the greatest event time wins, and no two are alike."""

    rounds: list[Round] = field(default_factory=list)

    def committed(self) -> list[Round]:
        return [one for one in self.rounds if one.done]

    def begun(self) -> list[Round]:
        return list(self.rounds)


def winners(rounds: Sequence[Round], until: int | None = None) -> dict[str, Row]:
    best: dict[str, Row] = {}
    for one in rounds:
        for key, row in one.rows.items():
            if (until is None or row[0] <= until) and row > best.get(key, (0, 0)):
                best[key] = row
    return best


class Writer:
    """One process of Hudi's, which writes round after round until it is told to stop."""

    def __init__(self, number: int, hudi: Hudi, path: Path, options: Mapping[str, str], journal: Journal) -> None:
        self.number, self.hudi, self.path, self.options, self.journal = number, hudi, path, options, journal
        self.chance = random.Random(number)
        self.count = 0

    def round(self) -> None:
        self.count += 1
        late = LATE_MS if self.count % 4 == 3 else 0
        keys = {f"s{n}" for n in self.chance.sample(range(24), 10)}
        keys |= {f"w{self.number}-{n}" for n in self.chance.sample(range(40), 12)}
        at = (now_ms() - late) // 10 * 10 + self.number  # no two writers say the same time of a key
        one = Round(dict.fromkeys(keys, (at, self.count * 10 + self.number)))
        self.journal.rounds.append(one)
        rows = [{"id": key, "ts": ts, "v": v} for key, (ts, v) in one.rows.items()]
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), self.options)
        one.done = True

    def until(self, stop: list[bool]) -> None:
        while not stop:
            self.round()


@dataclass
class Seen:
    """How often what was seen."""

    snapshots: int = 0
    promises: int = 0
    compactions: int = 0
    partial: int = 0
    beside_pending: int = 0
    cleans: int = 0
    no_plan: int = 0
    lost_races: list[str] = field(default_factory=list)


class Keeper:
    """We, beside the writers."""

    def __init__(self, path: Path, session: LocalSession, journal: Journal) -> None:
        self.path, self.session, self.journal = path, session, journal
        self.seen = Seen()
        self.chance = random.Random(0)

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=dict(SETTINGS))

    def snapshot(self) -> None:
        """Of each key what was committed before the look, or something newer that was begun before its end."""
        least = winners(self.journal.committed())
        shown = rows_of(self.table)
        may = {(key, *row) for one in self.journal.begun() for key, row in one.rows.items()}
        for key, row in shown.items():
            assert (key, *row) in may, f"nobody wrote {key}: {row}"
        lost = {key: (row, shown.get(key)) for key, row in least.items() if shown.get(key, (0, 0)) < row}
        assert not lost, f"lost: {dict(list(lost.items())[:5])}"
        self.seen.snapshots += 1

    def promise(self) -> None:
        """The read-optimized view holds what was committed up to the freshness, or something later."""
        before = self.journal.committed()
        freshness = self.table.freshness().freshness
        if freshness is None:
            return
        shown = {row["id"]: row["ts"] for row in self.table.read_optimized(self.session).rows()}
        for key, (ts, _) in winners(before, freshness).items():
            assert shown.get(key, 0) >= ts, f"{key} at {ts} is missing up to {freshness}: {shown.get(key)}"
        self.seen.promises += 1

    def compact(self, back_ms: int) -> None:
        """Plan up to so long ago, let the writers go on, then execute."""
        table = self.table
        table.look()
        try:
            plan = table.plan_compaction(threshold=now_ms() - back_ms)
            if isinstance(plan, NoPlan):
                self.seen.no_plan += 1
                return
            commits = len(self.journal.committed())
            time.sleep(self.chance.uniform(0, 6))
            self.snapshot()
            self.seen.beside_pending += len(self.journal.committed()) > commits
            done = table.execute_compaction(self.session, plan.instant)
        except Conflict as conflict:
            self.seen.lost_races.append(str(conflict))
            return
        self.seen.compactions += 1
        self.seen.partial += done.logs_remaining > 0

    def clean(self) -> None:
        """When the writers have ended."""
        try:
            table = HudiTable.open(str(self.path), settings={**SETTINGS, "hudi_assets.writers": "stopped"})
            self.seen.cleans += isinstance(table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=3), CleanResult)
        except Conflict as conflict:
            self.seen.lost_races.append(str(conflict))

    def turn(self) -> None:
        self.compact(self.chance.choice((1_000, 5_000, 20_000)))
        self.snapshot()
        self.promise()


def enough(writers: Sequence[Writer], keeper: Keeper) -> bool:
    seen = keeper.seen
    wrote = all(writer.count > ROUNDS for writer in writers)
    return wrote and seen.compactions >= COMPACTIONS and bool(seen.partial and seen.beside_pending)


@pytest.fixture
def processes(hudi_1_2: Hudi) -> Iterator[list[Hudi]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Hudi("1.2.0")) for _ in range(WRITERS)]


@pytest.mark.parametrize("metadata", ["false", "true"])
def test_nothing_is_lost(
    metadata: str, path: Path, session: LocalSession, hudi_1_2: Hudi, processes: list[Hudi]
) -> None:
    options = {**NON_BLOCKING, "hoodie.metadata.enable": metadata}
    journal = Journal()
    writers = [Writer(number, hudi, path, options, journal) for number, hudi in enumerate(processes)]
    writers[0].round()  # who makes the table is alone
    keeper = Keeper(path, session, journal)
    stop: list[bool] = []
    with ThreadPoolExecutor(len(writers)) as pool:
        running: list[Future[None]] = [pool.submit(writer.until, stop) for writer in writers]
        began = time.monotonic()
        try:
            while time.monotonic() < began + SECONDS or not enough(writers, keeper):
                assert time.monotonic() < began + SECONDS + PATIENCE_S, keeper.seen
                assert not any(one.done() for one in running), [one.exception() for one in running if one.done()]
                keeper.turn()
        finally:
            stop.append(True)
        for one in running:
            one.result()
    print(f"\n{[writer.count for writer in writers]} rounds; {keeper.seen}")
    end(keeper, Beside(keeper.table, hudi_1_2, **{"hoodie.metadata.enable": metadata}))


def end(keeper: Keeper, beside: Beside) -> None:
    """All agree, also once everything was compacted and cleaned."""
    wanted = winners(keeper.journal.committed())
    assert rows_of(keeper.table) == wanted
    every = max(1, len(keeper.journal.rounds) ** 2 // 60)
    shown = beside.check("the writers have ended", hudi_rs=False, every=every)
    assert {key: (row["ts"], row["v"]) for (_, key), row in shown.items()} == wanted
    keeper.compact(0)
    assert rows_of(keeper.table) == wanted
    assert not keeper.table.validate()
    keeper.promise()
    beside.check("all was compacted", hudi_rs=False, every=every)
    keeper.clean()
    assert beside.views("cleaned", hudi_rs=False) == shown
