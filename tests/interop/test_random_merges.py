"""Random tables that Apache Hudi writes, late deletes among them, compacted by us between its writes: its answers stay.

`INTEROP_SEEDS` tables of each release (else 4, all but one of them slow), from `INTEROP_SEED` (1) on. No key is left
out, and anything goes: late rows and late deletes, ties, zeros, deletes without ordering value. Where a release's
snapshot is not that of its own compaction of a copy, it contradicts itself: those keys are counted, and there is none.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action, MergeMode, Plan
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.readers import FIRST
from tests.interop.tables import copy_of
from tests.interop.test_merge import MODEL, SETTINGS, options
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

SEED = int(os.environ.get("INTEROP_SEED", "1"))
SEEDS = os.environ.get("INTEROP_SEEDS")
KEYS = 20
SOME = 3  # instants and ranges to ask for: each costs up to a second
SCHEMA = pa.schema({"id": pa.string(), "ts": pa.int64(), "v": pa.string(), "_hoodie_is_deleted": pa.bool_()})
Question = dict[str, Any]


@dataclass
class Life:
    """One random table."""

    hudi: Hudi
    session: LocalSession
    path: Path
    seed: int
    done: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    known: dict[int, list[int]] = field(default_factory=dict)
    now: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.hudi.release}")
        self.version = 6 if self.hudi.release == "0.15.0" else self.random.choice([6, 9])
        blocks = self.random.choice(["avro", "parquet"])
        self.options = {
            **options(f"{MODEL}DefaultHoodieRecordPayload", "ts"),
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.logfile.data.block.format": blocks,
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
        }
        self.done.append(f"{self.hudi.release}, version {self.version}, seed {self.seed}, {blocks}")

    # -- what Hudi writes -----------------------------------------------------------------------------

    def write(self, operation: str, said: list[tuple[int, int, bool]]) -> None:
        self.done.append(f"{operation} " + " ".join(f"k{n}{'-' if gone else '@'}{at}" for n, at, gone in said))
        mark = str(len(self.done))
        rows = [{"id": f"k{n}", "ts": at, "v": mark, "_hoodie_is_deleted": gone} for n, at, gone in said]
        more = {**self.options, "hoodie.datasource.write.operation": operation}
        mode = "append" if self.path.exists() else "overwrite"
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), more, mode)

    def some(self) -> list[int]:
        return sorted(self.random.sample(range(KEYS), self.random.randint(4, 9)))

    def base(self) -> None:
        self.write(
            "bulk_insert", [(n, self.at(n, wild=True), False) for n in sorted(self.random.sample(range(KEYS), 12))]
        )

    def upsert(self) -> None:
        """New rows, maybe deletes among them; or many late, as old as a row of the key or zero, a third deletes."""
        self.now += 10
        wild = self.random.random() < 0.5
        deletes = self.random.choice([0, 0.3]) if not wild else 0.3
        self.write("upsert", [(n, self.at(n, wild=wild), self.random.random() < deletes) for n in self.some()])

    def at(self, number: int, *, wild: bool) -> int:
        draw = self.random.random() if wild else 1
        seen = self.known.setdefault(number, [])
        at = self.now + self.random.randint(0, 9)
        if draw < 0.35:
            at = max(0, self.now - self.random.randint(1, 30))
        elif draw < 0.5 and seen:
            at = self.random.choice(seen)
        elif draw < 0.55:
            at = 0
        seen.append(at)
        return at

    def delete(self) -> None:
        self.write("delete", [(n, 0, False) for n in self.some()[:2]])

    # -- what is compared -----------------------------------------------------------------------------

    def open(self) -> HudiTable:
        return HudiTable.open(str(self.path), settings=SETTINGS)

    def answers(self, path: Path, questions: list[Question]) -> list[Rows]:
        return [by_key(rows) for rows in self.hudi.answers(path, questions)]

    def questions(self) -> list[Question]:
        """Snapshot; as of some instants; over some ranges, and from the beginning on."""
        written = self.open().state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)
        instants = [instant.timestamp for instant in written]
        times = [FIRST, *sorted(instant.completion or instant.timestamp for instant in written)]
        ranges = [*combinations(times, 2), *((begin, None) for begin in times)]
        asked = [(FIRST, None), *self.random.sample(ranges, min(SOME, len(ranges)))]
        instants = sorted(self.random.sample(instants, min(SOME, len(instants))))
        return [
            {"query": "snapshot"},
            *({"query": "time_travel", "as_of": instant} for instant in instants),
            *({"query": "incremental", "begin": begin, "end": end} for begin, end in asked),
        ]

    def count_contradictions(self) -> None:
        """Keys of which the release's snapshot and its own compaction of a copy say different things."""
        copy = copy_of(self.path)
        if self.hudi.compaction(copy, "run", **{"hoodie.write.table.version": str(self.version)}):
            before, after = by_key(self.hudi.read(self.path)), by_key(self.hudi.read(copy))
            unlike = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
            self.counted["keys of which the release contradicts itself"] += len(unlike)

    def compact(self) -> None:
        questions = self.questions()
        before = self.answers(self.path, questions)
        table = self.open()
        plan = table.plan_compaction(threshold=max(0, self.now - self.random.choice([-9, 1, 5, 15])))
        if not isinstance(plan, Plan):
            self.done.append(f"no plan: {plan.reason}")
            return
        carried = sum(len(op.carried_over) for op in plan.operations)
        left = sum(len(op.log_files) for op in plan.operations) < len(table.state().remaining_logs)
        self.done.append(f"we compact up to {plan.threshold}, {carried} carried over")
        self.counted["compactions"] += 1
        self.counted["that left log files"] += left
        self.execute(table, plan)
        self.counted["answers"] += len(questions)
        for question, old, new in zip(questions, before, self.answers(self.path, questions), strict=True):
            old, new = (self.compared(question, rows, before[0]) for rows in (old, new))
            self.same(old, new, str(question))
        self.ours()

    def compared(self, question: Question, rows: Rows, now: Rows) -> Rows:
        """What a compaction leaves of an answer: where it lies in a range, Hudi shows what the end state holds."""
        if question["query"] == "incremental" and (question["end"] is None or self.version > 6):
            return {k: r for k, r in rows.items() if now.get(k) == r}
        return rows

    def execute(self, table: HudiTable, plan: Plan) -> None:
        table.execute_compaction(self.session, plan.instant)

    def ours(self) -> None:
        table = self.open()
        for view, ours in (
            ("snapshot", table.snapshot(self.session)),
            ("read_optimized", table.read_optimized(self.session)),
        ):
            self.same(by_key(self.hudi.read(self.path, view)), by_key(ours.toArrow()), f"our {view}")

    def same(self, left: Rows, right: Rows, what: str) -> None:
        unlike = differences(left, right)
        assert not unlike, "\n".join([*self.done, what, *unlike])

    def run(self) -> None:
        self.base()
        assert (self.open().config.merging.mode is MergeMode.EVENT_TIME_ORDERING_0X) == (self.hudi.release == "0.15.0")
        for _ in range(2):
            for step in self.random.choices([self.upsert, self.upsert, self.delete], k=self.random.randint(2, 4)):
                step()
            self.compact()
        self.upsert()
        self.count_contradictions()
        self.ours()


def seeds(few: int) -> list[Any]:
    """Those asked for; else a few, of which all but the first are slow."""
    if SEEDS is not None:
        return list(range(SEED, SEED + int(SEEDS)))
    return [SEED, *(pytest.param(SEED + n, marks=pytest.mark.slow) for n in range(1, few))]


@pytest.mark.parametrize("seed", seeds(4))
def test_tables_of_0_15(seed: int, path: Path, session: LocalSession, hudi_0_15: Hudi) -> None:
    lived(Life(hudi_0_15, session, path, seed))


@pytest.mark.parametrize("seed", seeds(4))
def test_tables_of_1_2(seed: int, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    lived(Life(hudi_1_2, session, path, seed))


def lived(life: Life) -> None:
    life.run()
    print(f"{life.done[0]}: {dict(life.counted)}")
    assert life.counted["keys of which the release contradicts itself"] == 0, "\n".join(life.done)
