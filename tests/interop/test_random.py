"""Random histories by seed: our writes, Hudi's, plans, executions by either, cleans; all readers agree.

`INTEROP_ROUNDS` tables (1), from `INTEROP_SEED` (1) on. A failure names its seed and every step so far.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from tests.interop.readers import Readers
from tests.interop.tables import START, Shape, frame, hudi_options, rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ROUNDS = int(os.environ.get("INTEROP_ROUNDS", "1"))
SEED = int(os.environ.get("INTEROP_SEED", "1"))
STEPS = 8
KEYS = 16


class Walk:
    """One table, a model of it (key → event minute and mark of its current row), and what was done."""

    def __init__(self, seed: int, path: Path, readers: Readers) -> None:
        self.random = random.Random(seed)
        self.readers = readers
        self.model: dict[int, tuple[float, int]] = {}
        # A key that was deleted stays so: Hudi's releases disagree about late records of deleted keys.
        self.deleted: set[int] = set()
        self.done: list[str] = [f"seed {seed}"]
        self.minute = 0
        self.mark = 0
        self.shape = Shape(
            log_block_format=self.random.choice(["parquet", "avro"]),
            buckets=self.random.choice([1, 2]),
        )
        self.done.append(f"{self.shape.log_block_format}, {self.shape.buckets} buckets")
        self.table: HudiTable = self.shape.create(path)

    def run(self) -> None:
        self.upsert()
        for _ in range(STEPS):
            step = self.random.choice(
                [
                    self.upsert,
                    self.upsert,
                    self.hudi_upsert,
                    self.delete,
                    self.plan,
                    self.compact,
                    self.compact,
                ]
            )
            step()
        self.check()
        self.settle()
        self.readers.hudi["0.15.0"].compaction(self.table.path, "run")
        self.done.append("Hudi's full compaction")
        self.readers.hudi["0.15.0"].clean(self.table.path)
        self.done.append("Hudi's clean")
        self.check()

    def batch(self) -> pa.Table:
        """Rows of a few keys, most of them new in event time, some late. The model takes what wins."""
        self.mark += 1
        self.minute += 10
        alive = [n for n in range(KEYS) if n not in self.deleted]
        numbers = sorted(self.random.sample(alive, min(len(alive), self.random.randint(1, 8))))
        minutes = {
            n: self.minute + n / 100 - (self.random.randint(5, 60) if self.random.random() < 0.25 else 0)
            for n in numbers
        }
        for n, minute in minutes.items():
            if n not in self.model or minute >= self.model[n][0]:
                self.model[n] = (minute, self.mark)
        return rows(numbers, minutes.__getitem__, self.mark)

    def upsert(self) -> None:
        batch = self.batch()
        self.table.upsert(self.readers.spark, frame(self.readers.spark, batch))
        self.done.append(f"upsert {batch['id'].to_pylist()}")

    def hudi_upsert(self) -> None:
        batch = self.batch()
        options = hudi_options(name=self.table.config.name, buckets=self.shape.buckets)
        self.readers.hudi["0.15.0"].write(self.table.path, batch, options)
        self.done.append(f"Hudi upserts {batch['id'].to_pylist()}")

    def delete(self) -> None:
        if not self.model:
            return
        number = self.random.choice(sorted(self.model))
        self.minute += 10
        keys = self.shape.keys_of(rows([number], lambda _: self.minute, 0))
        self.table.delete(self.readers.spark, frame(self.readers.spark, keys))
        del self.model[number]
        self.deleted.add(number)
        self.done.append(f"delete k{number}")

    def plan(self) -> None:
        latency = self.random.choice([0, 15, 40])
        plan = self.table.plan_compaction(threshold=START + (self.minute - latency) * 60_000)
        self.done.append(f"plan {plan.instant}" if isinstance(plan, Plan) else f"no plan: {plan.reason}")
        self.check()

    def compact(self) -> None:
        if self.table.pending_plan() is None:
            self.plan()
        self.settle()
        self.check()

    def settle(self) -> None:
        """Execute what is pending: we do, or Hudi does."""
        plan = self.table.pending_plan()
        if plan is None:
            return
        if self.random.random() < 0.3:
            # "run" plans what our plan leaves out, where there is anything, and executes that instead.
            op = self.random.choice(["run", "execute"])
            self.readers.hudi["0.15.0"].compaction(self.table.path, op)
            self.done.append(f"Hudi's {op}")
        else:
            self.table.execute_compaction(self.readers.spark, plan.instant)
            self.done.append("executed")

    def check(self) -> None:
        said = "; ".join(self.done)
        pending = self.table.pending_plan() is not None
        answers = self.readers.agree(self.table, said, hudi_rs=not pending)
        expected = {f"k{n}": (START + round(minute * 60_000), mark) for n, (minute, mark) in self.model.items()}
        shown = {row["id"]: row["ts"] for row in answers["snapshot"].values()}
        assert shown == {key: ts for key, (ts, _) in expected.items()}, said
        for row in answers["snapshot"].values():
            if row["small"] is not None:
                mark = -row["small"] - int(row["id"][1:]) * 1000
                assert mark == expected[row["id"]][1], f"{said}: {row['id']} shows mark {mark}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
@pytest.mark.slow
def test_random_history(seed: int, path: Path, readers: Readers) -> None:
    Walk(seed, path, readers).run()
