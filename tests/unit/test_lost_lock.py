"""Each action asks, right before it publishes, whether it still holds the lock: without it nothing is published.

Hudi's lock expires by age. Another engine may take it from a process that still works.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from tests.crash.faulty import _CHANGING
from tests.crash.tables import new_table, planned, snapshot, write
from tests.tables.local_session import LocalSession

LOCK = ".hoodie/lock"
ANOTHERS = json.dumps({"lockThreadName": "another engine"}).encode()
SETTINGS = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.cleaner.commits.retained": "1",
    "hudi_assets.query.grace": "0s",
}


class Watched:
    """LocalStorage that writes down what changes the table and when its lock is looked at.

    Another engine takes the lock right before it is looked at for the `lost`-th time (from 1).
    """

    def __init__(self, base: str, lost: int | None = None) -> None:
        self.base = base
        self.events: list[str] = []
        self._local = LocalStorage(base)
        self._lost = lost

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._local, name)
        if not callable(real) or name not in (*_CHANGING, "read"):
            return real

        def call(*args: Any) -> Any:
            path = args[-1] if name.endswith("link") or name == "publish" else args[0]
            if name != "read":
                self.events.append(f"{name} {path}")
            elif path == LOCK:
                self.events.append("looks at the lock")
                if self.events.count("looks at the lock") == self._lost:
                    self._local.replace(LOCK, ANOTHERS)
            return real(*args)

        return call


@dataclass(frozen=True)
class Act:
    """`publishes`: the first event that others see. `prepare`: what has to be there."""

    publishes: str
    run: Callable[[HudiTable, Any, str], object]
    prepare: Callable[[HudiTable, Any], str] = lambda table, session: ""


ACTS = {
    "write": Act(r"create .*\.deltacommit$", lambda table, session, _: write(table, session, 4, 9_900)),
    "plan": Act(r"create .*\.compaction\.requested$", lambda table, session, _: planned(table, 9_500)),
    "begin to execute": Act(
        r"create .*\.compaction\.inflight$",
        lambda table, session, plan: table.execute_compaction(session, plan),
        lambda table, session: planned(table, 9_500).instant,
    ),
    "complete an execution": Act(
        r"create .*\.commit$",
        lambda table, session, plan: table.execute_compaction(session, plan),
        lambda table, session: planned(table, 9_500).instant,
    ),
    "clean": Act(r"create .*\.clean\.requested$", lambda table, session, _: table.clean()),
    "archive": Act(
        r"(archived|history)/", lambda table, session, _: table.archive(), lambda table, session: str(table.clean())
    ),
    "make a savepoint": Act(r"create .*\.savepoint\.inflight$", lambda table, session, _: table.savepoint()),
    "delete a savepoint": Act(
        r"delete .*\.savepoint\.inflight$",
        lambda table, session, savepoint: table.delete_savepoint(savepoint),
        lambda table, session: table.savepoint(),
    ),
    "roll back": Act(
        r"create .*\.rollback\.requested$",
        lambda table, session, instant: table.rollback(instant),
        lambda table, session: write(table, session, 4, 9_900),
    ),
    "unschedule": Act(
        r"(create|delete) .*\.compaction\.\w+$",
        lambda table, session, plan: table.unschedule(plan),
        lambda table, session: planned(table, 9_500).instant,
    ),
    "restore": Act(
        r"create .*\.restore\.requested$",
        lambda table, session, savepoint: table.restore(savepoint),
        lambda table, session: _savepoint_and_more(table, session),
    ),
}


def _savepoint_and_more(table: HudiTable, session: Any) -> str:
    savepoint = table.savepoint()
    write(table, session, 4, 9_900)
    return savepoint


@pytest.fixture(params=[6, 9])
def path(session: LocalSession, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two compactions, and log files above the last one."""
    table = new_table(tmp_path / "table", request.param, **SETTINGS)
    for first, ts, threshold in ((0, 1_000, 0), (2, 1_500, 2_000), (0, 5_000, 0), (2, 5_500, 6_000), (4, 9_000, 0)):
        write(table, session, first, ts)
        if threshold:
            table.execute_compaction(session, planned(table, threshold).instant)
    write(table, session, 6, 9_400)
    return Path(table.path)


def watched(path: Path, lost: int | None = None) -> tuple[HudiTable, Watched]:
    storage: Any = Watched(str(path), lost)
    settings = {WRITERS: "locked", TABLE_SERVICES: "ours"}
    return HudiTable(storage, HudiTable.open(str(path), settings=settings).config), storage


def seen(table: HudiTable) -> tuple[object, ...]:
    """What readers and other engines see: answers, completed instants, pending plans and services."""
    state = table.state()
    shown = {(i.timestamp, i.action) for i in state.timeline.instants if i.is_completed}
    pending = {i.timestamp for i in (*state.timeline.pending_compactions, *state.timeline.pending_services)}
    return snapshot(table), tuple(sorted(table.read_optimized_files())), shown, pending


def _files(path: Path) -> set[Path]:
    """Data files: what nobody may have deleted."""
    return {file for file in path.iterdir() if file.suffix == ".parquet" or ".log." in file.name}


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_without_the_lock_nothing_is_published(name: str, path: Path, session: LocalSession, tmp_path: Path) -> None:
    act = ACTS[name]
    prepared = act.prepare(HudiTable.open(str(path), settings={WRITERS: "stopped", TABLE_SERVICES: "ours"}), session)
    table, storage = watched(shutil.copytree(path, tmp_path / "rehearsal"))
    act.run(table, session, prepared)
    events = storage.events
    first = next(n for n, event in enumerate(events) if re.search(act.publishes, event))
    assert events[first - 1] == "looks at the lock", events[: first + 1]
    looks = events[:first].count("looks at the lock")

    victim, _ = watched(path, looks)
    before, files = seen(victim), _files(path)
    with pytest.raises(Conflict, match="was taken from this process"):
        act.run(victim, session, prepared)
    after = HudiTable.open(str(path))
    assert seen(after) == before
    assert files <= _files(path)
    assert (path / LOCK).read_bytes() == ANOTHERS
    (path / LOCK).unlink()
    act.run(watched(path)[0], session, prepared)
