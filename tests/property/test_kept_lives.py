"""Random lives of a table that is looked at now and then: what was kept of the last look equals a look anew.

Between two looks there may be many steps, so that what came may be gone again: a savepoint, a rollback whose instants
were archived, a plan. And others change the table: Apache Hudi, a person, a disk. `tests/machine/test_kept_looks.py`
has our own actions and their crashes, looked at after each.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable, SloTerms
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.table.slices import kept
from hudi_assets.engine.timeline.instants import format_instant
from tests.in_buckets import IN_BUCKETS
from tests.races.player import timeline_of
from tests.tables.kept_looks import assert_kept_is_true, looks_keep, moved_on, settle
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

Value = TypeVar("Value")
LIVES: Final = int(os.environ.get("KEPT_LIVES", "8"))
# A life that fails is not made shorter, unless KEPT_SHRINK is 1: that takes minutes.
PHASES: Final = [Phase.generate, *([Phase.shrink] if os.environ.get("KEPT_SHRINK") == "1" else [])]
# Archived soon, and nothing waits for queries that are running.
SOON: Final = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.cleaner.commits.retained": "1"}
NO_GRACE: Final = {"hudi_assets.query.grace": "0s"}
TERMS: Final = SloTerms(slo_ms=20_000)
HAPPENED: Counter[str] = Counter()


class KeptLife:
    """A table, and what it and others do. `number` chooses among what there is."""

    def __init__(self, folder: Path, session: LocalSession, version: int) -> None:
        self.folder, self.path, self.session, self.writes = folder, folder / "t", session, 0
        self.make(version)

    def make(self, version: int) -> None:
        """A table at the path, where none is."""
        self.version = version
        self.life = Life(self.path, self.session, version, **SOON, **(NO_GRACE if version > 6 else {}))
        self.life.number = self.writes
        self.away: list[tuple[Path, Path]] = []
        self.half: list[tuple[Path, bytes, Path, Path]] = []
        self.unseen: set[str] = set()
        self.write(0)

    @property
    def table(self) -> HudiTable:
        return self.life.table

    # -- looking ----------------------------------------------------------------------------------

    def look(self, number: int = 0) -> None:
        del number
        settle()
        HAPPENED["looks"] += 1
        assert_kept_is_true(self.table)
        for asked in (told_of_partitions, told_by_slo, told_of_numbers):
            moved = tried(partial(asked, self.table))
            kept_before = dict(kept._KEEPERS)
            kept.forget()
            anew = tried(partial(asked, self.table))
            kept._KEEPERS.update(kept_before)
            assert moved == anew, asked
        self.unseen.clear()

    def look_beside(self, number: int) -> None:
        """Another thread began before a write, and keeps after it what it read."""
        settle()
        begun = self.table._table.look()
        tried(lambda: begun.view)
        self.write(number)
        settle()
        tried(lambda: moved_on(self.table))
        tried(begun.keep)

    # -- what we do -------------------------------------------------------------------------------

    def write(self, number: int) -> None:
        """To all partitions or one, in time or late, with a batch or without."""
        batch = uuid.uuid4().hex if number % 5 == 0 else None
        later = -9_000 if number % 7 == 0 else 0
        tried(lambda: self.life.upsert(("", "a", "b", "c")[number % 4], later=later, batch=batch))
        self.writes = self.life.number

    def delete_without_ordering_value(self, number: int) -> None:
        keys = self.session.frame(pa.table({"id": [number % 4], "p": ["abc"[number % 3]]}))
        at = self.life.number + 4
        tried(lambda: self.table.delete(self.session, keys, clock_time=pa.scalar(at, pa.timestamp("s", "UTC")).as_py()))

    def plan(self, number: int) -> None:
        threshold = (self.life.number - number % 3) * 1000 + 500
        tried(lambda: self.table.plan_compaction(threshold=threshold))

    def compact(self, number: int) -> None:
        self.plan(number)
        self.execute(number)

    def execute(self, number: int) -> None:
        del number
        for instant in self.pending():
            done = tried(partial(self.table.execute_compaction, self.session, instant))
            HAPPENED["compacted"] += done is not None

    def pending(self) -> list[str]:
        return tried(lambda: [plan.instant for plan in self.table.state().executable_plans]) or []

    def unschedule(self, number: int) -> None:
        del number
        for instant in self.pending():
            tried(partial(self.table.unschedule, instant))

    def roll_back(self, number: int) -> None:
        del number
        instants = self.life.instants()
        if instants:
            HAPPENED["rolled back"] += tried(lambda: self.table.rollback(instants[-1])) is not None

    def savepoint(self, number: int) -> None:
        instants = self.life.instants()
        if instants:
            tried(lambda: self.table.savepoint(instants[-1 - number % min(2, len(instants))]))

    def savepoints(self) -> list[str]:
        return sorted(file.name.split(".")[0].split("_")[0] for file in timeline_of(self.path).glob("*.savepoint"))

    def delete_a_savepoint(self, number: int) -> None:
        if saved := self.savepoints():
            tried(lambda: self.table.delete_savepoint(saved[number % len(saved)]))
            HAPPENED["savepoints deleted"] += 1

    def restore(self, number: int) -> None:
        if saved := self.savepoints():
            HAPPENED["restored"] += tried(lambda: self.table.restore(saved[number % len(saved)])) is not None

    def clean(self, number: int) -> None:
        tried(lambda: self.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1 + number % 2))

    def archive(self, number: int) -> None:
        del number
        before = len(self.life.instants())
        tried(lambda: self.table.archive())
        HAPPENED["archived"] += before > len(self.life.instants())

    def recover(self, number: int) -> None:
        del number
        tried(lambda: self.table.recover())

    # -- what others do ---------------------------------------------------------------------------

    def archive_cleans_and_rollbacks(self, number: int) -> None:
        """By a count of their own: between two looks one may have come and gone. Then only a file's size is missed."""
        del number
        for file in timeline_of(self.path).iterdir():
            if (".clean" in file.name or ".rollback" in file.name) and file.name not in self.unseen:
                file.unlink()
                HAPPENED["cleans and rollbacks archived"] += 1

    def delete_and_make_anew(self, number: int) -> None:
        """In other folders, or in the same ones; of this version, or of another one."""
        if number % 2:
            for file in [one for one in self.path.rglob("*") if not one.is_dir()]:
                file.unlink()
            shutil.rmtree(self.path / ".hoodie")
        else:
            shutil.rmtree(self.path)
        self.make(self.version if number % 3 else {6: 8, 8: 9, 9: 6}[self.version])
        HAPPENED["made anew"] += 1

    def change_a_setting(self, number: int) -> None:
        file = self.path / ".hoodie/hoodie.properties"
        others = [line for line in file.read_text().splitlines() if "data.latency" not in line]
        latency = ("1s", "5s", "auto")[number % 3]
        file.write_text("\n".join([*others, f"hudi_assets.data.latency={latency}", ""]))

    def take_a_file_away(self, number: int) -> None:
        """One that a query of now reads, or any."""
        if number % 2:
            self.look()
        files = sorted(one for one in self.path.glob("p=*/*") if one.name != ".hoodie_partition_metadata")
        if number % 3:
            files = [self.path / log.path for log in self.table.state().remaining_logs] or files
        if files:
            file, away = files[number % len(files)], self.folder / uuid.uuid4().hex
            file.rename(away)
            self.away.append((file, away))
            HAPPENED["taken away"] += 1

    def give_them_back(self, number: int) -> None:
        del number
        for file, away in self.away:
            if file.parent.is_dir() and not file.exists():
                away.rename(file)
        self.away = []

    def write_half(self, number: int) -> None:
        """As Apache Hudi does under the file's own name: it grows until its commit."""
        before = self.life.files()
        instant = tried(lambda: self.life.upsert("abc"[number % 3]))
        self.writes = self.life.number
        new = [one for one in self.life.files() - before if ".log." in one]
        done = [one for one in timeline_of(self.path).glob(f"{instant}*.deltacommit") if one.is_file()]
        HAPPENED["written half"] += len(new) == len(done) == 1
        if instant and len(new) == len(done) == 1:
            file, away = self.path / new[0], self.folder / uuid.uuid4().hex
            done[0].rename(away)
            content = file.read_bytes()
            os.truncate(file, len(content) * (number % 11) // 10)  # also whole, and not committed
            self.half.append((file, content, away, done[0]))
            if number % 3:  # else somebody comes in between, and may take it back
                self.write_to_the_end(number)

    def write_to_the_end(self, number: int) -> None:
        if number % 2:
            self.look()
        for file, content, away, done in self.half:
            instant = done.name.split(".")[0].split("_")[0]
            if file.exists() and any(done.parent.glob(f"{instant}.deltacommit.*")):  # else it was taken back
                with open(file, "r+b") as growing:
                    growing.write(content)
                away.rename(done)
                HAPPENED["written to the end"] += 1
        self.half = []

    def leave_a_lost_attempt(self, number: int) -> None:
        """A base file with another write token, that no commit names."""
        bases = sorted(self.path.glob("p=*/*.parquet"))
        if bases:
            base = bases[number % len(bases)]
            file_id, _, instant = base.stem.split("_")
            shutil.copy(base, base.with_name(f"{file_id}_{self.writes}-9-{number}_{instant}.parquet"))

    def put_back_by_a_backup(self, number: int) -> None:
        """It gives the folder its time back too."""
        folders = sorted(self.path.glob("p=*"))
        if folders:
            folder = folders[number % len(folders)]
            times = folder.stat()
            for log in list(folder.glob(".*.log.*"))[:1]:
                shutil.copy(log, folder / f"{log.name.rpartition('_')[0]}_{self.writes}-7-{number}")
            os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns - number % 2 * 10**9))

    def append_beside_a_rollback(self, number: int) -> None:
        """As Apache Hudi on version 6, where the store can append."""
        logs = sorted(set(self.path.glob("p=*/.*.log.*")) - {file for file, *_ in self.half})
        if logs:
            with open(logs[number % len(logs)], "ab") as growing:
                growing.write(b"#HUDI#")
            now = format_instant(int(time.time() * 1000), "UTC")
            name = f"{now}.rollback" if self.version == 6 else f"{now}_{now}.rollback"
            (timeline_of(self.path) / name).write_bytes(uuid.uuid4().bytes)
            self.unseen.add(name)

    def lose_the_memory(self, number: int) -> None:
        del number
        shutil.rmtree(self.path / ".hoodie/.aux/hudi_assets", ignore_errors=True)


def told_of_partitions(table: HudiTable) -> object:
    return table.partition_freshness()


def told_by_slo(table: HudiTable) -> object:
    seen = table.look(TERMS)
    return seen.proposal, seen.refused


def told_of_numbers(table: HudiTable) -> object:
    return table.stats()


def tried(action: Callable[[], Value]) -> Value | None:
    """What others did may make it refuse."""
    try:
        return action()
    except (HudiAssetsError, FileNotFoundError):
        HAPPENED["refused"] += 1
        return None


# How often each comes up.
STEPS: Final[dict[Callable[[KeptLife, int], None], int]] = {
    KeptLife.look: 12,
    KeptLife.look_beside: 2,
    KeptLife.write: 10,
    KeptLife.delete_without_ordering_value: 2,
    KeptLife.plan: 2,
    KeptLife.compact: 6,
    KeptLife.execute: 2,
    KeptLife.unschedule: 1,
    KeptLife.roll_back: 2,
    KeptLife.savepoint: 2,
    KeptLife.delete_a_savepoint: 2,
    KeptLife.restore: 1,
    KeptLife.clean: 3,
    KeptLife.archive: 3,
    KeptLife.recover: 2,
    KeptLife.archive_cleans_and_rollbacks: 2,
    KeptLife.delete_and_make_anew: 1,
    KeptLife.change_a_setting: 1,
    KeptLife.take_a_file_away: 2,
    KeptLife.give_them_back: 2,
    KeptLife.write_half: 3,
    KeptLife.write_to_the_end: 2,
    KeptLife.leave_a_lost_attempt: 1,
    KeptLife.put_back_by_a_backup: 1,
    KeptLife.append_beside_a_rollback: 1,
    KeptLife.lose_the_memory: 1,
}
WEIGHTED: Final = [step for step, times in STEPS.items() for _ in range(times)]


@pytest.fixture
def _keeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with looks_keep(monkeypatch):
        yield


@pytest.mark.slow
@pytest.mark.skipif(IN_BUCKETS, reason="no folder tells of changes there")
@pytest.mark.usefixtures("_keeping")
@pytest.mark.parametrize("version", [6, 9])
def test_lives_that_are_looked_at_now_and_then(session: LocalSession, version: int) -> None:
    HAPPENED.clear()

    @settings(max_examples=LIVES, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.sampled_from(WEIGHTED), st.integers(0, 999)), min_size=30, max_size=60))
    def lives(steps: Sequence[tuple[Callable[[KeptLife, int], None], int]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            life = KeptLife(Path(folder), session, version)
            for step, number in steps:
                step(life, number)
            life.look()

    lives()
    print(dict(HAPPENED))
