"""Random rounds by seed: either side writes, plans, executes, cleans; each round ends with answers that are compared.

`MATRIX_ROUNDS` rounds (50) from seed `MATRIX_SEED` (1). What was done so far is kept beside the interop environment
(`matrix-rounds/`): a run that was stopped goes on where it was, each cell by itself, and a finished cell is done again
from the start. The total time of a cell, over all its runs, is printed at its end.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_assets.engine import Plan
from scripts.hudi_client import interop_home
from tests.interop.matrix import timeline_files
from tests.interop.matrix.conftest import Table
from tests.interop.matrix.expectations import cells, expected
from tests.interop.matrix.kinds import SHAPES, Kind
from tests.interop.matrix.subject import VIEWS, Question, Subject
from tests.interop.tables import MINUTE, START

pytestmark = [pytest.mark.interop, pytest.mark.timeout(7200)]

ROUNDS = int(os.environ.get("MATRIX_ROUNDS", "50"))
SEED = int(os.environ.get("MATRIX_SEED", "1"))
KEYS = 14
LOOK_BACK = 10  # every so many rounds all four queries are asked, not the two views alone
SAVE = 5


class Walk:
    """One table under random actions. `horizon`: instants before it may have been cleaned away."""

    def __init__(self, table: Subject, seed: int) -> None:
        self.table = table
        self.random = random.Random(seed)
        self.round = 0
        self.minute = 0.0
        self.seconds = 0.0
        self.horizon = ""
        # By 1.x's rules, what comes after a delete without event time is newer than it: hudi-rs has another rule than
        # 1.2.0 there (docs/explanation/merge.md). By 0.x's nothing is kept out.
        self.gone: dict[int, float] = {}
        self.executed_by_hudi: set[str] = set()
        self.done: list[str] = [f"seed {seed}, {table.kind.name}, {table.shape.name}"]

    # -- going on where it stopped ----------------------------------------------------------------

    def save(self, home: Path) -> None:
        aside = home / "saving"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        shutil.copytree(self.table.path, aside / "t", symlinks=True)
        table, self.table = self.table, None  # type: ignore[assignment]
        (aside / "walk").write_bytes(pickle.dumps((self, table.oracle, table.mark)))
        self.table = table
        shutil.rmtree(home / "saved", ignore_errors=True)
        aside.rename(home / "saved")

    @staticmethod
    def resumed(home: Path, table: Subject) -> Walk:
        shutil.rmtree(table.path, ignore_errors=True)
        shutil.copytree(home / "saved/t", table.path, symlinks=True)
        walk, table.oracle, table.mark = pickle.loads((home / "saved/walk").read_bytes())
        assert isinstance(walk, Walk)
        walk.table = table
        return walk

    # -- one round --------------------------------------------------------------------------------

    def step(self) -> None:
        began = time.monotonic()
        self.round += 1
        pending = timeline_files.unfinished(self.table.path, "compaction")
        settle = [self.execute, self.execute, self.hudi_execute] if pending else [self.plan, self.plan, self.hudi_run]
        every = [self.hudi_upsert, self.hudi_upsert, self.upsert, self.upsert, self.hudi_delete, self.delete]
        self.random.choice([*every, *settle, self.random.choice([self.clean, self.hudi_clean])])()
        self.check()
        self.seconds += time.monotonic() - began

    def rows(self) -> tuple[list[tuple[int, float]], list[int]]:
        """(key, event minute) of some keys, a quarter of them late, and those that are tombstones."""
        self.minute += 10
        rows = []
        for number in sorted(self.random.sample(range(KEYS), self.random.randint(1, 6))):
            late = self.random.randint(5, 60) if self.random.random() < 0.25 else 0
            rows.append((number, max(self.minute + number / 100 - late, self.gone.get(number, -1e9) + 0.01)))
        deleted = [number for number, _ in rows if self.random.random() < 0.12]
        return rows, deleted

    def _is_gone(self, number: int) -> None:
        if not self.table.oracle.by_0_x:
            self.gone[number] = self.minute

    def said(self, words: str) -> None:
        self.done.append(f"{self.round}: {words}")

    def hudi_upsert(self) -> None:
        rows, deleted = self.rows()
        self.said(f"Hudi upserts {rows} tombstones {deleted}")
        self.table.hudi_upserts(*rows, deleted=deleted)

    def upsert(self) -> None:
        rows, deleted = self.rows()
        self.said(f"we upsert {rows} tombstones {deleted}")
        self.table.we_upsert(*rows, deleted=deleted)

    def hudi_delete(self) -> None:
        shown = self.shown()
        if shown:
            self.said(f"Hudi deletes {shown[0]}")
            self.table.hudi_deletes(shown[0])
            self._is_gone(shown[0])

    def delete(self) -> None:
        self.minute += 10
        shown = self.shown()
        if shown:
            with_time = self.random.random() < 0.5
            self.said(f"we delete {shown[0]}{' at its time' if with_time else ''}")
            self.table.we_delete((shown[0], self.minute), with_time=with_time)
            if not with_time:
                self._is_gone(shown[0])

    def shown(self) -> list[int]:
        numbers = sorted(int(key[1:]) for _, key in self.table.oracle.snapshot())
        return self.random.sample(numbers, 1) if numbers else []

    def plan(self) -> None:
        latency = self.random.choice([0, 15, 40])
        threshold = START + round((self.minute - latency) * MINUTE)
        plan = self.table.open().plan_compaction(threshold=threshold)
        self.said(f"plan {plan.instant}" if isinstance(plan, Plan) else f"no plan: {plan.reason}")

    def execute(self) -> None:
        (pending,) = timeline_files.unfinished(self.table.path, "compaction")
        self.said(f"we execute {pending}")
        self.table.we_execute(pending)

    def hudi_execute(self) -> None:
        self.said("Hudi executes")
        self.executed_by_hudi |= set(self.table.hudi_compacts("execute"))

    def hudi_run(self) -> None:
        self.said("Hudi compacts")
        self.table.hudi_compacts("run")

    def clean(self) -> None:
        self.said("we clean")
        self.table.open().clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
        self.horizon = max(self.table.oracle.instants(), default="")

    def hudi_clean(self) -> None:
        self.said("Hudi cleans")
        self.table.hudi_cleans()
        self.horizon = max(self.table.oracle.instants(), default="")

    # -- comparing --------------------------------------------------------------------------------

    def check(self) -> None:
        table, said = self.table, "; ".join(self.done)
        asked: list[Question] = list(VIEWS)
        if self.round % LOOK_BACK == 0:
            asked = [q for q in table.questions() if self._answerable(q)]
        table.right(said, questions=asked)
        table.ours_right(said, questions=asked)
        if not timeline_files.unfinished(table.path, "compaction") and not table.oracle.by_0_x:
            table.hudi_rs_right(said)  # it merges by other rules than 0.x's
        if self.round % LOOK_BACK == 0:
            table.metadata_table_right(said)
            assert not table.open().validate(), said

    def _answerable(self, question: Question) -> bool:
        """Not from before a clean; not a range over a compaction of ours that Hudi executed on version 6."""
        horizon = self.table.oracle.time(self.horizon) if self.horizon else ""
        if question.query == "time_travel":
            return question.as_of is not None and question.as_of >= self.horizon
        if question.query != "incremental":
            return True
        if question.begin < horizon:
            return False
        inside = {
            i for i in self.executed_by_hudi if question.begin < i and (question.end is None or i <= question.end)
        }
        return self.table.kind.completion_times or not inside


def begun(table: Subject) -> Walk:
    walk = Walk(table, SEED)
    walk.hudi_upsert()
    return walk


def walked(table: Subject, home: Path, rounds: int, say: Callable[[str], None]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    if (home / "saved").exists():
        walk = Walk.resumed(home, table)
        say(f"goes on after round {walk.round}")
    else:
        walk = begun(table)
    while walk.round < rounds:
        walk.step()
        if walk.round % SAVE == 0:
            walk.save(home)
    say(f"{table.kind.name}: {walk.round} rounds in {walk.seconds:.0f} s")
    shutil.rmtree(home)


@pytest.mark.parametrize("kind", cells("rounds"))
def test_rounds(kind: Kind, new: Table, capsys: pytest.CaptureFixture[str]) -> None:
    home = interop_home() / "matrix-rounds" / f"{kind.name}-{SEED}-{ROUNDS}"
    table = new(kind, random.Random(f"{SEED} {kind.name}").choice(SHAPES))

    def say(words: str) -> None:
        with capsys.disabled():
            print(f"\n{words}")

    with expected("rounds", kind):
        walked(table, home, ROUNDS, say)


@pytest.mark.parametrize("kind", cells("rounds", "1.2.0-v9-metadata-on"))
def test_few_rounds(kind: Kind, new: Table, tmp_path: Path) -> None:
    """Stopped and resumed on the way."""
    table = new(kind, SHAPES[0])
    words: list[str] = []
    with expected("rounds", kind):
        walk = begun(table)
        for _ in range(4):
            walk.step()
        walk.save(tmp_path)
        walk.step()
        walked(table, tmp_path, 8, words.append)
    assert words[0] == "goes on after round 4"
