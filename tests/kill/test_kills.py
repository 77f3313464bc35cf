"""kill -9 of a writer, planner, executor, cleaner at a random moment, many times on one table.

After each: the snapshot is what was acknowledged, with the write in flight whole or not at all; `recover` changes
no answer and leaves nothing over. Log files of the write in flight are torn as well, as a machine that goes down would.

KILLS: how many, over three kinds of table (default 48; `make test-kills` 300). KILL_SEED: another run.
Victims have numbers, and a victim's clock follows from its number. The second half of a slice has the last numbers of
300 kills: what comes of a late clock shows in each run.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.attempts import FOLDER
from hudi_assets.engine.timeline.markers import marked_files
from scripts.hudi_rows import read_with_hudi_rs
from tests.races.ledger import Ledger, Row
from tests.races.player import KINDS, MOST_PLAYERS, WEIGHTS, Player, create, rows_of, timeline_of
from tests.tables.local_session import LocalSession, install

KILLS = int(os.environ.get("KILLS", "48"))
SEED = int(os.environ.get("KILL_SEED", "0"))
STEPS = 40  # what a victim's clock moves on by
LONG = 300  # kills of a long run
HUDI_RS_EVERY = 25
# Children are forked from a process that has imported all this and done nothing with it.
SERVERS = multiprocessing.get_context("forkserver")
SERVERS.set_forkserver_preload([__name__, "polars", "pyarrow.parquet"])


def be_killed(path: Path, journal: Path, number: int, said: Connection) -> None:
    """Act until the end comes; say what begins."""
    player = Player(path, journal, number % MOST_PLAYERS, install(), start=number * STEPS)
    player.plan_reach = 2 * STEPS
    said.send("ready")
    while True:
        said.send(player.step(WEIGHTS))


class Pace:
    """How long an action takes on this machine now: a kill shall hit one, not the pause before the next."""

    def __init__(self) -> None:
        self.seconds = 0.05

    def seen(self, seconds: float) -> None:
        self.seconds += (seconds - self.seconds) / 4


def _kill_one(path: Path, journals: Path, number: int, chance: random.Random, pace: Pace) -> None:
    here, there = SERVERS.Pipe()
    process = SERVERS.Process(target=be_killed, args=(path, journals / f"{number:05}.jsonl", number, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    for _ in range(chance.randint(0, 3)):
        began = time.monotonic()
        here.recv()
        pace.seen(time.monotonic() - began)
    time.sleep(chance.uniform(0, 1.5 * pace.seconds))
    process.kill()
    process.join()
    here.close()
    assert process.exitcode == -9, "the victim died by itself"


@pytest.mark.slow
@pytest.mark.timeout(KILLS * 6 + 300)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_processes_lose_and_double_nothing(session: LocalSession, tmp_path: Path, kind: str) -> None:
    path, journals = tmp_path / "table", tmp_path / "journals"
    journals.mkdir()
    create(path, kind)
    chance = random.Random(SEED)
    seen: Counter[str] = Counter()
    settled: dict[int, str] = {}
    pace = Pace()
    numbers = _numbers(max(1, KILLS // len(KINDS)))
    for kill, number in enumerate(numbers, 1):
        _kill_one(path, journals, number, chance, pace)
        if chance.random() < 0.5:
            seen["torn"] += _tear(path, chance)
        seen[_what_is_unfinished(path)] += 1
        ledger = Ledger.read(journals)
        expected = _settle(ledger, settled, rows_of(HudiTable.open(str(path))))
        table = HudiTable.open(str(path))
        for sentence in table.recover():
            seen[" ".join(sentence.split()[:4])] += 1
        assert rows_of(table) == expected, f"after kill {number} and recover"
        _nothing_is_left(table)
        if kill % HUDI_RS_EVERY == 0:
            _read_by_hudi_rs(table, session, expected)
    _read_by_hudi_rs(HudiTable.open(str(path)), session, expected)
    print(dict(seen), len(ledger.done), "writes", len(ledger.in_flight), "in flight")
    assert seen["nothing unfinished"] < len(numbers), "the kills hit nothing"


def _numbers(each: int) -> list[int]:
    """The victims' numbers: of a short run the first ones, and then the last ones of a long run."""
    last = max(each, LONG // len(KINDS))
    early = (each + 1) // 2
    return [SEED * last + n for n in (*range(1, early + 1), *range(last - (each - early) + 1, last + 1))]


def _settle(ledger: Ledger, settled: dict[int, str], shown: dict[str, Row]) -> dict[str, Row]:
    """What the table has to show: acknowledged writes and those in flight that turned out to be committed."""
    kept = [w for w in ledger.in_flight if settled.get(w.id) == "kept"]
    new = [w for w in ledger.in_flight if w.id not in settled]
    assert len(new) <= 1
    without, with_it = ledger.answer(kept), ledger.answer([*kept, *new])
    assert shown in (without, with_it), _difference(shown, without)
    for write in new:
        settled[write.id] = "kept" if shown == with_it else "gone"
    return shown


def _difference(shown: dict[str, Row], expected: dict[str, Row]) -> str:
    keys = sorted(key for key in shown.keys() | expected.keys() if shown.get(key) != expected.get(key))
    return "; ".join(f"{key}: {shown.get(key)} for {expected.get(key)}" for key in keys[:10])


def _unfinished(path: Path) -> dict[str, set[str]]:
    """instant → the endings of its files, for instants without a completed file."""
    found: dict[str, set[str]] = {}
    for name in os.listdir(timeline_of(path)):
        instant, _, ending = name.partition(".")
        instant = instant.split("_")[0]
        if instant.isdigit():
            found.setdefault(instant, set()).add(ending)
    return {i: e for i, e in found.items() if all("requested" in x or "inflight" in x for x in e)}


def _what_is_unfinished(path: Path) -> str:
    endings = sorted({e.split(".")[0] for each in _unfinished(path).values() for e in each})
    return "+".join(endings) or "nothing unfinished"


def _tear(path: Path, chance: random.Random) -> int:
    """Cut the log files of unfinished writes: their bytes never reached the disk. How many were cut."""
    cut = 0
    for instant in _unfinished(path):
        named = [name for name in marked_files(LocalStorage(str(path)), instant) if ".log." in name]
        # Most die before their files have names.
        for file in (*(path / name for name in named), *(path / FOLDER / instant).glob("*")):
            if file.exists() and file.stat().st_size:
                os.truncate(file, chance.randrange(file.stat().st_size))
                cut += 1
    return cut


def _nothing_is_left(table: HudiTable) -> None:
    """What recover leaves: no unfinished write, no marker but a running compaction's, and no finding."""
    path = Path(table.path)
    unfinished = _unfinished(path)
    for instant, endings in unfinished.items():
        assert all(e.startswith("compaction.") for e in endings), (instant, endings)
    assert len(unfinished) <= 1
    assert {p.name for p in (path / ".hoodie/.temp").glob("*")} <= set(unfinished)
    if hasattr(table, "validate"):
        findings = table.validate()
        assert not findings, findings


def _read_by_hudi_rs(table: HudiTable, session: LocalSession, expected: dict[str, Row]) -> None:
    # hudi-rs 0.5.0 does not show what was appended beside a pending compaction.
    plan = table.pending_plan()
    if isinstance(plan, Plan):
        table.execute_compaction(session, plan.instant)
    rows = read_with_hudi_rs(table.path, "snapshot").to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    assert {row["id"]: (row["ts"], row["v"]) for row in rows} == expected
