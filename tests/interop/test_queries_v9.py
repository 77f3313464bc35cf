"""Tables of versions 8 and 9: all four queries as Apache Hudi 1.2.0 has them, on our tables and on theirs.

Time travel goes by requested times, incremental ranges by completion times (`docs/explanation/queries.md`).
"""

from __future__ import annotations

import operator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.format.log_file.codec import HeaderKey, read_headers
from hudi_assets.engine.queries.query import ReadTask, read_task
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.readers import FIRST
from tests.interop.tables import BUSY, START, Shape, hudi_options, planned, rows
from tests.interop.test_hudi_tables import BATCHES, SETTINGS, written_by
from tests.interop.test_queries import check_right_or_refused, refused
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def answer(table: HudiTable, tasks: list[ReadTask]) -> Rows:
    batches = [batch for task in tasks for batch in read_task(task)]
    return by_key(pa.Table.from_batches(batches, table.schema()))


def completed(table: HudiTable) -> dict[str, str]:
    """Completed writes and compactions → when they were completed."""
    return dict(table.state().timeline.completions)


class Beside:
    """Our answers about a table, held against Apache Hudi's and hudi-rs's."""

    def __init__(self, table: HudiTable, hudi: Hudi, **options: str) -> None:
        self.table, self.hudi, self.options = table, hudi, options

    def check(self, step: str, *, hudi_rs: bool = True, every: int = 1) -> Rows:
        """Everything; `every`: only each so manieth range. Returns the snapshot."""
        snapshot = self.views(step, hudi_rs=hudi_rs)
        self.as_of_every_instant(step)
        self.in_ranges(step, every)
        return snapshot

    def views(self, step: str, *, hudi_rs: bool = True) -> Rows:
        ours = {
            "snapshot": answer(self.table, self.table.snapshot_tasks()),
            "read_optimized": answer(self.table, self.table.read_optimized_tasks()),
        }
        theirs = self._hudi([{"query": view} for view in ours])
        for (view, rows_of_view), other in zip(ours.items(), theirs, strict=True):
            _same(other, rows_of_view, f"{step}, {view}, Hudi")
            if hudi_rs:
                _same(by_key(read_with_hudi_rs(self.table.path, view)), rows_of_view, f"{step}, {view}, hudi-rs")
        return ours["snapshot"]

    def as_of_every_instant(self, step: str) -> None:
        """As of every requested time, and of one completion time."""
        times = completed(self.table)
        moments = sorted({*times, max(times.values())})
        theirs = self._hudi([{"query": "time_travel", "as_of": t} for t in moments])
        for t, other in zip(moments, theirs, strict=True):
            _same(other, answer(self.table, self.table.time_travel_tasks(t)), f"{step}, as of {t}, Hudi")

    def in_ranges(self, step: str, every: int) -> None:
        """Of Hudi's rows those that the end state holds: it also shows a late record that lost, read alone."""
        bounds = sorted(completed(self.table).values())
        ranges: list[tuple[str, str | None]] = list(combinations([FIRST, *bounds], 2))
        ranges = [*ranges[::every], *((begin, None) for begin in bounds[::every])]
        theirs = self._hudi([{"query": "incremental", "begin": b, "end": e} for b, e in ranges])
        for (begin, end), other in zip(ranges, theirs, strict=True):
            held = answer(self.table, self.table.incremental_tasks("000", end))
            shown = {key: row for key, row in other.items() if held.get(key) == row}
            ours = answer(self.table, self.table.incremental_tasks(begin, end))
            _same(shown, ours, f"{step}, ({begin}, {end}], Hudi")

    def _hudi(self, questions: list[dict[str, Any]]) -> list[Rows]:
        return [by_key(found) for found in self.hudi.answers(self.table.path, questions, self.options)]


def at_version(version: str) -> dict[str, str]:
    return hudi_options(name="t") | {"hoodie.write.table.version": version}


def _at(minute: float, number: int) -> float:
    return minute


def _same(left: Rows, right: Rows, what: str) -> None:
    unlike = differences(left, right)
    assert not unlike, f"{what} ≠ ours:\n" + "\n".join(unlike)


def compacted_at_all_cuts(table: HudiTable, session: LocalSession, minute: float) -> list[str]:
    """Serial plans at a threshold until nothing is due; their instants."""
    done = []
    while not isinstance(plan := table.plan_compaction(threshold=START + round(minute * 60_000)), NoPlan):
        table.execute_compaction(session, plan.instant)
        done.append(plan.instant)
    assert done, plan.reason
    return done


@pytest.mark.parametrize(
    ("version", "log_block_format"),
    [(9, "parquet"), pytest.param(8, "avro", marks=pytest.mark.slow), pytest.param(9, "avro", marks=pytest.mark.slow)],
)
def test_our_table(version: int, log_block_format: str, path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    shape = Shape(log_block_format=log_block_format, options={"table_version": version})
    table = shape.create(path)
    beside = Beside(table, hudi_1_2)

    def upsert(numbers: list[int], start: float, mark: int) -> None:
        table.upsert(session, session.frame(rows(numbers, lambda n: start + n / 100, mark)))

    upsert(list(range(9)), 0, 0)
    upsert([0, 1, 2, 9], 30, 1)
    upsert([3, 0], 10, 2)  # late for k0
    plan = planned(table, 20)
    upsert([4, 10], 60, 3)
    upsert([5], 20, 4)  # late, beside the pending plan
    before = beside.check("plan pending", hudi_rs=False, every=4)
    table.execute_compaction(session, plan.instant)
    assert beside.check("plan executed", every=4) == before
    upsert([6, 11], 90, 5)
    keys = shape.keys_of(rows([1, 9], lambda _: 95, 6))
    table.delete(session, session.frame(keys))
    before = beside.views("more written")
    assert len(compacted_at_all_cuts(table, session, 70)) > 0
    assert beside.check("compacted again", every=2) == before


CASES = [
    pytest.param({"hoodie.write.table.version": "9"}, id="v9-avro-logs"),
    pytest.param(
        {"hoodie.write.table.version": "9", "hoodie.logfile.data.block.format": "parquet"},
        id="v9-parquet-logs",
    ),
    pytest.param({"hoodie.write.table.version": "8"}, id="v8-avro-logs"),
    pytest.param(
        {
            "hoodie.write.table.version": "9",
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        },
        id="v9-commit-time",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("more", CASES)
def test_hudi_s_table(more: dict[str, str], path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    options = hudi_options(name="t") | more
    table = written_by(hudi_1_2, path, options)
    assert str(table.config.table_version) == more["hoodie.write.table.version"]
    beside = Beside(table, hudi_1_2)
    before = beside.check("as Hudi wrote it", every=4)
    assert table.stats().freshness.freshness is None  # no data latency is stated
    compacted_at_all_cuts(table, session, 35)
    assert beside.check("compacted by us", every=4) == before
    hudi_1_2.write(path, rows([2, 11], lambda n: 120 + n, 7), options)
    before = beside.check("Hudi went on", every=4)
    hudi_1_2.compaction(path, "run")
    assert beside.views("compacted by Hudi") == before


def test_positions_in_log_blocks_are_of_the_base_file_they_name(
    path: Path, session: LocalSession, hudi_1_2: Hudi
) -> None:
    """Hudi may merge by the positions of rows in the base file: those of a base file from before our compaction."""
    options = at_version("9") | {"hoodie.index.type": "SIMPLE", "hoodie.write.record.positions": "true"}
    for mark, (numbers, start) in enumerate(BATCHES):
        hudi_1_2.write(path, rows(numbers, partial(operator.add, start), mark), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    storage = table.state().storage
    named = [
        header.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
        for log in table.state().remaining_logs
        for header in read_headers(partial(storage.read_at, log.path), log.size)
    ]
    assert any(named), "no log block has positions: this tests nothing"
    by_position = Beside(table, hudi_1_2, **{"hoodie.merge.use.record.positions": "true"})
    before = by_position.views("as Hudi wrote it")
    done = compacted_at_all_cuts(table, session, 35)
    left = [log for log in table.state().remaining_logs if log.base_instant > done[-1]]
    assert left, "no log file with positions remains: this tests nothing"
    assert by_position.views("compacted by us") == before
    hudi_1_2.write(path, rows([2, 4], lambda n: 120 + n, 7), options)
    by_position.views("Hudi went on")


def test_overlapping_writers(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """Two writers at once: log order is by requested times, ranges are by completion."""
    table = Shape(options={"table_version": 9}).create(path)
    instants: list[str] = []
    for mark, numbers in enumerate([[*range(6)], [0, 1], [0, 2], [3]]):
        minute = 10 if mark else 0
        frame = session.frame(rows(numbers, partial(_at, minute), mark))
        instants.append(str(table.upsert(session, frame).instant))
    first, second = instants[1:3]
    times = completed(table)
    # The first is completed after all others.
    done = path / f".hoodie/timeline/{first}_{times[first]}.deltacommit"
    done.rename(done.with_name(f"{first}_{int(max(times.values())) + 1}.deltacommit"))
    beside = Beside(table, hudi_1_2)
    before = beside.check("as written")
    assert before[("p=a", "k0")]["_hoodie_commit_time"] == second
    compacted_at_all_cuts(table, session, 5)
    assert beside.check("compacted", every=2) == before


def test_a_column_that_hudi_adds(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    options = at_version("9")
    hudi_1_2.write(path, rows(range(6), lambda n: n, 0), options)
    hudi_1_2.write(path, rows([0, 1], lambda n: 30 + n, 1), options)
    wider = rows([1, 2], lambda n: 60 + n, 2).append_column("extra", pa.array(["x", "y"]))
    hudi_1_2.write(path, wider, {**options, "hoodie.datasource.write.reconcile.schema": "true"})
    table = HudiTable.open(str(path), settings=SETTINGS)
    assert "extra" in table.schema().names
    beside = Beside(table, hudi_1_2)
    before = beside.views("a column added", hudi_rs=False)
    compacted_at_all_cuts(table, session, 35)
    assert beside.views("compacted", hudi_rs=False) == before


def test_a_plan_of_ours_is_what_it_says(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """Hudi executes our plan at a past instant; every answer stays."""
    options = at_version("9")
    table = written_by(hudi_1_2, path, options)
    beside = Beside(table, hudi_1_2)
    before = beside.views("as Hudi wrote it")
    plan = planned(table, 35)
    assert isinstance(plan, Plan)
    assert plan.instant < max(completed(table))
    hudi_1_2.compaction(path, "execute")
    assert beside.check("Hudi executed our plan", every=4) == before


@pytest.mark.slow
def test_hudi_compacts_cleans_and_archives(path: Path, hudi_1_2: Hudi) -> None:
    """As of every commit there ever was: the answer of that time, or a refusal that names an instant that answers."""
    truth: dict[str, Rows] = {}
    for mark in range(9):
        numbers = sorted({mark, mark + 1, (mark * 5) % 9})
        frame = rows(numbers, partial(operator.add, mark * 10), mark)
        hudi_1_2.write(path, frame, at_version("9") | BUSY)
        table = HudiTable.open(str(path), settings=SETTINGS)
        newest = table.state().timeline.last_write
        assert newest is not None
        truth[newest] = by_key(hudi_1_2.read(path))
        check_right_or_refused(table, truth)
    assert list((path / ".hoodie/timeline/history").glob("*.parquet")), "nothing was archived"
    assert refused(table, min(truth)) is not None, "nothing was cleaned"


@pytest.mark.slow
def test_a_row_after_a_delete_without_ordering_value(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """An older one than the base row: Hudi shows the base row again until a compaction, the engine the row."""
    shape = Shape(options={"table_version": 9})
    table = shape.create(path)
    key = ("p=b", "k1")

    def upsert(minute: float, mark: int) -> None:
        table.upsert(session, session.frame(rows([1], lambda _: minute, mark)))

    def shown() -> tuple[int, int]:
        ours = answer(table, table.snapshot_tasks())
        return by_key(hudi_1_2.read(path))[key]["small"], ours[key]["small"]

    upsert(10, 0)
    compacted_at_all_cuts(table, session, 20)
    gone = rows([1], lambda _: 10, 1).select(["id", "p"])
    table.delete(session, session.frame(gone))
    upsert(5, 2)
    assert shown() == (-1000, -1002)
    compacted_at_all_cuts(table, session, 20)
    assert shown() == (-1002, -1002)
