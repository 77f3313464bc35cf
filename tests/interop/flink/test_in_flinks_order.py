"""Tables as Hudi's Flink job leaves them, and our compactions between and beside its checkpoints.

A stand-in takes the job's steps in a JVM of Hudi's (job.py says what is the same, and what is not). Always one of its
delta commits is inflight, with log files already or without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.model import NoPlan, Plan
from scripts.hudi_client import ROOT, Hudi, HudiError
from tests.interop.tables import MINUTE, START
from tests.live.watch import rows_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3000)]

SCRIPT = ROOT / "tests/interop/flink/job.py"
STATED = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.query.grace": "0s",
}
BUCKETS, STATE = 2, 0
Row = tuple[int, int]


@pytest.fixture(scope="module")
def hudi(request: pytest.FixtureRequest) -> Iterator[Hudi]:
    with Hudi(request.param, script=SCRIPT) as running:
        yield running


class Told:
    """A job, and what its table must show: the oracle is a list of rows."""

    def __init__(self, hudi: Hudi, path: Path, version: int, buckets: int, **options: str) -> None:
        self.hudi, self.path = hudi, path
        self._request = {"path": str(path), "version": version, "buckets": buckets, "options": options}
        self.committed: dict[str, tuple[int, int, bool]] = {}
        self._open: list[tuple[str, int, int, bool]] = []
        self._mark = 0

    def start(self) -> None:
        """Or start again: what was not committed is written anew by whoever feeds the job."""
        self.hudi.ask("job", release=self.hudi.release, **self._request)
        self._open = []

    def batch(self, minute: int, keys: range, *deleted: int) -> None:
        """One mini-batch; every third key comes twice in it, the later time first."""
        rows: list[dict[str, Any]] = []
        for number in keys:
            self._mark += 1
            row: dict[str, Any] = {"id": f"k{number}", "p": "ab"[number % 2], "v": self._mark}
            row["ts"] = START + minute * MINUTE + number
            rows.append({**row, "deleted": number in deleted})
            if number % 3 == 0:
                rows.append({**row, "ts": row["ts"] - 2 * MINUTE, "v": -self._mark, "deleted": False})
        self.hudi.ask("batch", batch=rows)
        self._open += [(row["id"], row["ts"], row["v"], row["deleted"]) for row in rows]

    def checkpoint(self) -> dict[str, Any]:
        answer = self.hudi.ask("checkpoint")
        for key, ts, v, deleted in self._open:
            if key not in self.committed or ts >= self.committed[key][0]:
                self.committed[key] = (ts, v, deleted)
        self._open = []
        return answer

    def table(self, **settings: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**STATED, **settings})

    def rows(self) -> dict[str, Row]:
        return {key: (ts, v) for key, (ts, v, deleted) in self.committed.items() if not deleted}

    def agree(self, step: str) -> None:
        """We and Hudi show what is committed; both read-optimized views are the same."""
        table = self.table()
        assert rows_of(table.snapshot_tasks()) == self.rows(), step
        assert by_id(self.hudi.read(self.path).to_pylist()) == self.rows(), step
        ours = rows_of(table.read_optimized_tasks())
        assert by_id(self.hudi.read(self.path, "read_optimized").to_pylist()) == ours, step


def by_id(rows: list[Mapping[str, Any]]) -> dict[str, Row]:
    found = {row["id"]: (row["ts"], row["v"]) for row in rows}
    assert len(found) == len(rows), "a key comes twice"
    return found


def three_checkpoints(told: Told) -> None:
    """Two mini-batches in each, a delete in the second: log files of one commit beside one another."""
    told.start()
    for minute in (0, 30, 60):
        told.batch(minute, range(9))
        told.batch(minute + 5, range(6, 14), *([7] if minute else []))
        told.checkpoint()


def compacted(told: Told, session: LocalSession, minute: int) -> int:
    """How many log files were left behind."""
    plan = told.table().plan_compaction(threshold=START + minute * MINUTE)
    assert isinstance(plan, Plan), plan
    told.agree(f"planned up to minute {minute}")
    done = told.table().execute_compaction(session, plan.instant)
    return sum(operation.logs_remaining for operation in done.operations)


KINDS = [
    pytest.param("0.15.0", 6, BUCKETS, id="6-bucket"),
    pytest.param("0.15.0", 6, STATE, id="6-state"),
    pytest.param("1.2.0", 8, BUCKETS, id="8-bucket"),
    pytest.param("1.2.0", 9, BUCKETS, id="9-bucket"),
    pytest.param("1.2.0", 9, STATE, id="9-state"),
]
NEWEST = pytest.mark.parametrize(
    ("hudi", "version"), [("0.15.0", 6), ("1.2.0", 9)], indirect=["hudi"], ids=["0.15.0", "1.2.0"]
)


@pytest.mark.parametrize(("hudi", "version", "buckets"), KINDS, indirect=["hudi"])
def test_between_and_beside_checkpoints(
    hudi: Hudi, path: Path, session: LocalSession, version: int, buckets: int
) -> None:
    """Our compactions of a part of the log files lose nothing, and the job goes on in the slices that they leave."""
    told = Told(hudi, path, version, buckets)
    three_checkpoints(told)
    told.agree("before any compaction")
    told.batch(90, range(4))  # log files of an instant that is not committed
    if version == 6:
        waiting = told.table().plan_compaction(threshold=START + 20 * MINUTE)
        assert isinstance(waiting, NoPlan)
        assert "is inflight" in waiting.reason
        told.checkpoint()
        hudi.ask("end")
        (left,) = told.table().state().timeline.inflight_writes  # empty: the job ended by a checkpoint
        waiting = told.table().plan_compaction(threshold=START + 20 * MINUTE)
        assert isinstance(waiting, NoPlan)
        told.table().rollback(left.timestamp)
        assert compacted(told, session, 20) > 0
        told.agree("compacted while the job is stopped")
        told.start()
    else:
        assert compacted(told, session, 20) > 0
        told.agree("compacted beside the job")
        told.batch(95, range(2, 6))
        told.checkpoint()
        told.agree("the write that was open is committed")
        hudi.ask("end")
        told.start()
    told.batch(100, range(14), 3)
    told.checkpoint()
    told.agree("the job has started again, and written on")
    if version != 6:
        assert compacted(told, session, 70) > 0
        told.agree("compacted again")
    told.batch(130, range(3, 16))
    told.checkpoint()
    told.agree("at the end")
    hudi.ask("end")


@NEWEST
def test_a_plan_of_the_jobs(hudi: Hudi, version: int, path: Path, session: LocalSession) -> None:
    """We plan nothing beside a compaction that the job has planned, and execute it where that is asked for."""
    more = {"compaction.schedule.enabled": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    told = Told(hudi, path, version, BUCKETS, **more)
    told.start()
    told.batch(0, range(9))
    assert told.checkpoint()["planned"] is None
    told.batch(30, range(9), 4)
    planned = told.checkpoint()["planned"]
    assert planned is not None
    waiting = told.table().plan_compaction(threshold=START + 10 * MINUTE)
    assert isinstance(waiting, NoPlan)
    assert planned in waiting.reason
    told.batch(60, range(3))
    told.agree("their plan is pending")
    told.table().execute_compaction(session, planned)
    told.agree("we have executed their plan, a write is open")
    told.checkpoint()
    told.batch(90, range(9))
    again = told.checkpoint()["planned"]
    told.agree("two checkpoints later")
    if again is not None:
        hudi.ask("execute", instant=again)
        told.agree("the job has executed its own")
    hudi.ask("end")


@NEWEST
def test_a_write_that_may_be_a_checkpoint_is_the_jobs(hudi: Hudi, version: int, path: Path) -> None:
    """A job that died after a checkpoint commits it when it starts again. Were the write rolled back, it could not."""
    told = Told(hudi, path, version, BUCKETS)
    told.start()
    told.batch(0, range(6))
    told.checkpoint()
    told.batch(30, range(6))
    (left,) = told.table().state().timeline.inflight_writes
    assert told.table().validate() == ()
    with pytest.raises(InvalidInput, match="A Flink job"):
        told.table().rollback(left.timestamp)
    (path / ".hoodie/.aux/view_storage_conf.properties").unlink()
    told.table().rollback(left.timestamp)
    with pytest.raises(HudiError, match="does not exist"):
        told.checkpoint()
    hudi.ask("end")


@NEWEST
def test_changelog_mode_is_refused(hudi: Hudi, version: int, path: Path) -> None:
    """`changelog.enabled=true`: rows carry `_hoodie_operation`."""
    told = Told(hudi, path, version, BUCKETS, **{"hoodie.allow.operation.metadata.field": "true"})
    told.start()
    told.batch(0, range(6), 2)
    told.checkpoint()
    with pytest.raises(UnsupportedTable, match="_hoodie_operation"):
        rows_of(told.table().snapshot_tasks())
    hudi.ask("end")
