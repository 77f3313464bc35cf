"""Eight processes on one table: no acknowledged record is lost, none comes twice, none appears that was refused;
at no moment are two compactions pending; whoever loses is told why.

RACE_SECONDS: how long for each of three kinds of table (default 12; `make test-races` runs minutes).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.timeline.commit_metadata import GUARDED
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from tests.races.ledger import Journal, Ledger, faults
from tests.races.player import KINDS, Player, create, rows_of, timeline_of
from tests.tables.local_session import LocalSession, install

SECONDS = float(os.environ.get("RACE_SECONDS", "12"))
PLAYERS = 8
LEAST = 20  # steps of each process, however slow the machine
# Children are forked from a process that has imported all this and done nothing with it.
SERVERS = multiprocessing.get_context("forkserver")
SERVERS.set_forkserver_preload([__name__, "polars", "pyarrow.parquet"])


def _repeat(start: Barrier, journal: Path, work: Callable[[], object]) -> None:
    """Repeat some work; what it raises goes into the journal, as nobody sees this process's output."""
    try:
        start.wait(timeout=240)
        deadline, steps = time.monotonic() + SECONDS, 0
        while time.monotonic() < deadline or steps < LEAST:
            work()
            steps += 1
    except BaseException:
        Journal(journal).say(fault=traceback.format_exc())
        raise


def play(path: Path, journals: Path, start: Barrier, number: int) -> None:
    journal = journals / f"player-{number}.jsonl"
    player = Player(path, journal, number, install())
    _repeat(start, journal, player.step)


def look(path: Path, journals: Path, start: Barrier, number: int) -> None:
    """A reader: every snapshot holds what was acknowledged before it was asked for."""
    journal = journals / f"reader-{number}.jsonl"
    player = Player(path, journal, number, install())

    def work() -> None:
        before = Ledger.read(journals)
        answer = player.look()
        wrong = faults(answer, before, Ledger.read(journals))
        assert not wrong, wrong[:5]
        player.journal.say(looked=len(answer))

    _repeat(start, journal, work)


def watch(path: Path, journals: Path, start: Barrier) -> None:
    """Lists the timeline all the time: at most one plan is pending, guards left out."""
    journal = journals / "watcher.jsonl"
    said = Journal(journal)

    def work() -> None:
        first = _pending(path)
        # A listing is no snapshot: two count as pending together when they are so in two listings running.
        both = first & _pending(path) if len(first) > 1 else first
        assert len(both) <= 1, f"pending together: {sorted(both)}"
        said.say(watched=len(first))
        time.sleep(0.002)

    _repeat(start, journal, work)


def _pending(path: Path) -> set[str]:
    folder = timeline_of(path)
    names = set(os.listdir(folder))
    plans = {name.split(".")[0] for name in names if name.endswith(".compaction.requested")}
    done = {name.split(".")[0].split("_")[0] for name in names if name.endswith(".commit")}
    return {p for p in plans - done if _is_plan(folder / f"{p}.compaction.requested")}


def _is_plan(file: Path) -> bool:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return False
    return GUARDED not in decode_plan(file.name.split(".")[0], data, str(file)).extra_metadata


@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS * 2 + 600))
@pytest.mark.parametrize("kind", KINDS)
def test_eight_processes_on_one_table(session: LocalSession, tmp_path: Path, kind: str) -> None:
    path, journals = tmp_path / "table", tmp_path / "journals"
    journals.mkdir()
    create(path, kind)
    start = SERVERS.Barrier(PLAYERS + 2)
    folders = (path, journals, start)
    processes = [SERVERS.Process(target=play, args=(*folders, number)) for number in range(PLAYERS)]
    processes += [SERVERS.Process(target=look, args=(*folders, PLAYERS)), SERVERS.Process(target=watch, args=folders)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    ledger = Ledger.read(journals)
    failed = [line["fault"] for line in ledger.other if "fault" in line]
    assert not failed, "\n".join(failed)[-6000:]
    assert [process.exitcode for process in processes] == [0] * len(processes)

    table = HudiTable.open(str(path))
    assert rows_of(table) == ledger.answer()
    assert not ledger.in_flight
    table.recover()
    assert rows_of(table) == ledger.answer()
    _something_happened(ledger)


def _something_happened(ledger: Ledger) -> None:
    """The race was one: every kind of work was done; and each loser got a sentence."""
    kinds = Counter(next(iter(line)) for line in ledger.other)
    report = {**kinds, "written": len(ledger.done), "refused": len(ledger.refused)}
    lost = [line["why"] for line in ledger.other if "lost" in line]
    print(json.dumps(report), *Counter(why.split(" [")[0][:100] for why in lost).most_common(8), sep="\n")
    assert len(ledger.done) > PLAYERS
    assert kinds["executed"]
    assert kinds["looked"] >= LEAST
    assert kinds["watched"] >= LEAST
    assert all(len(why.split()) > 5 for why in (*lost, *ledger.refused.values()))
