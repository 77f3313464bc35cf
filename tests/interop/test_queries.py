"""Time travel and incremental queries beside Apache Hudi's own, on our tables and on theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from operator import add
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput
from hudi_assets.engine.queries.query import ReadTask, read_task
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.readers import FIRST, History
from tests.interop.tables import BUSY, Shape, compacted, hudi_options, planned, rows
from tests.interop.test_hudi_tables import SETTINGS, written_by
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def hundredths(mark: int, number: int) -> float:
    return mark * 10 + number / 100


@pytest.fixture
def releases(hudi_0_15: Hudi, hudi_1_2: Hudi) -> Mapping[str, Hudi]:
    return {"0.15.0": hudi_0_15, "1.2.0": hudi_1_2}


def answer(table: HudiTable, tasks: list[ReadTask]) -> Rows:
    batches = [batch for task in tasks for batch in read_task(task)]
    return by_key(pa.Table.from_batches(batches, table.schema()))


def as_of(table: HudiTable, t: str) -> Rows:
    return answer(table, table.time_travel_tasks(t))


def same_as_of_every_instant(table: HudiTable, releases: Mapping[str, Hudi], step: str) -> None:
    for release, hudi in releases.items():
        history = History(hudi, Path(table.path))
        for t in history.instants():
            unlike = differences(history.as_of(t), as_of(table, t))
            assert not unlike, f"{step}, as of {t}, Hudi {release} ≠ ours:\n" + "\n".join(unlike)


def same_in_every_range(table: HudiTable, releases: Mapping[str, Hudi], step: str, every: int = 1) -> None:
    """Ours is what Hudi shows of the rows that the end state holds.

    Hudi also shows a late record that an older commit beats, as long as its log file is read alone.
    """
    for release, hudi in releases.items():
        history = History(hudi, Path(table.path))
        for begin, end in list(combinations([FIRST, *history.instants()], 2))[::every]:
            held = as_of(table, end)
            shown = {key: row for key, row in history.between(begin, end).items() if held.get(key) == row}
            ours = answer(table, table.incremental_tasks(begin, end))
            unlike = differences(shown, ours)
            assert not unlike, f"{step}, ({begin}, {end}], Hudi {release} ≠ ours:\n" + "\n".join(unlike)


@pytest.mark.parametrize("log_block_format", ["parquet", pytest.param("avro", marks=pytest.mark.slow)])
def test_our_table(log_block_format: str, path: Path, session: LocalSession, releases: Mapping[str, Hudi]) -> None:
    table = Shape(log_block_format=log_block_format).create(path)

    def upsert(numbers: list[int], start: float, mark: int) -> None:
        table.upsert(session, session.frame(rows(numbers, lambda n: start + n / 100, mark)))

    upsert(list(range(9)), 0, 0)
    upsert([0, 1, 2, 9], 30, 1)
    upsert([3, 0], 10, 2)  # late for k0
    plan = planned(table, 20)
    upsert([4, 10], 60, 3)
    upsert([5], 20, 4)  # late, beside the pending plan
    same_as_of_every_instant(table, releases, "plan pending")
    same_in_every_range(table, releases, "plan pending", every=3)
    result = table.execute_compaction(session, plan.instant)
    assert result.logs_remaining > 0
    upsert([6, 11], 90, 5)
    keys = Shape().keys_of(rows([1, 9], lambda _: 95, 6))
    table.delete(session, session.frame(keys))
    same_as_of_every_instant(table, releases, "plan executed")
    compacted(table, session, 70)  # type: ignore[arg-type]
    same_as_of_every_instant(table, releases, "compacted again")
    same_in_every_range(table, releases, "compacted again", every=2)


@pytest.mark.parametrize("writer", ["0.15.0", pytest.param("1.2.0", marks=pytest.mark.slow)])
def test_hudi_s_table(writer: str, path: Path, session: LocalSession, releases: Mapping[str, Hudi]) -> None:
    written_by(releases[writer], path, hudi_options(name="t"))
    table = HudiTable.open(str(path), settings={**SETTINGS, "hoodie.table.precombine.field": "ts"})
    same_as_of_every_instant(table, releases, "as Hudi wrote it")
    same_in_every_range(table, releases, "as Hudi wrote it", every=3)
    compacted(table, session, 35)  # type: ignore[arg-type]
    releases[writer].write(path, rows([2, 11], lambda n: 120 + n, 7), hudi_options(name="t"))
    same_as_of_every_instant(table, releases, "compacted in part")
    same_in_every_range(table, releases, "compacted in part", every=3)


@pytest.mark.slow
def test_hudi_cleans_and_archives(path: Path, hudi_0_15: Hudi) -> None:
    """As of every commit there ever was: the answer of that time, or a refusal that names an instant that answers."""
    options = hudi_options(name="t") | BUSY
    truth: dict[str, Rows] = {}
    for mark in range(9):
        numbers = [mark, mark + 1, (mark * 5) % 9]
        hudi_0_15.write(path, rows(sorted(set(numbers)), partial(hundredths, mark), mark), options)
        table = HudiTable.open(str(path), settings=SETTINGS)
        newest = table.state().timeline.last_write
        assert newest is not None
        truth[newest] = by_key(hudi_0_15.read(path))
        check_right_or_refused(table, truth)
    assert next((path / ".hoodie/archived").glob(".commits_*"), None) is not None, "nothing was archived"
    assert refused(table, min(truth)) is not None, "nothing was cleaned"


def refused(table: HudiTable, t: str) -> str | None:
    """The earliest instant left, where t is refused."""
    try:
        table.time_travel_tasks(t)
    except InvalidInput as error:
        return str(error).partition("earliest instant left is ")[2].partition(":")[0]
    return None


def check_right_or_refused(table: HudiTable, truth: Mapping[str, Rows]) -> None:
    for t in truth:
        left = refused(table, t)
        for answered in [t] if left is None else [u for u in [left, *truth] if u >= left]:
            expected = truth[max(u for u in truth if u <= answered)]
            unlike = differences(expected, as_of(table, answered))
            assert not unlike, f"as of {answered} (asked for {t}):\n" + "\n".join(unlike)


@pytest.mark.slow
def test_replaced_file_groups(path: Path, releases: Mapping[str, Hudi]) -> None:
    """insert_overwrite replaces a partition's file groups; as of an instant before, they are there."""
    hudi = releases["0.15.0"]
    options = hudi_options(name="t")
    hudi.write(path, rows(range(9), lambda n: n, 0), options)
    hudi.write(path, rows([0, 1, 2], lambda n: 20 + n, 1), options)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    hudi.write(path, rows([0, 3, 12], lambda n: 40 + n, 2), overwrite)  # all of partition p=a
    hudi.write(path, rows([0, 1], lambda n: 60 + n, 3), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    instants = [i.timestamp for i in table.state().timeline.instants if i.is_completed]
    truth = {t: as_of(table, t) for t in instants}
    assert len({key for key in truth[instants[1]] if key[0].endswith("a")}) == 3
    for release, other in releases.items():
        for t in instants:
            unlike = differences(by_key(other.read(path, "time_travel", as_of=t)), truth[t])
            assert not unlike, f"as of {t}, Hudi {release} ≠ ours:\n" + "\n".join(unlike)
    same_in_every_range(table, {"0.15.0": hudi}, "after insert_overwrite")


@pytest.mark.slow
def test_forms_of_an_instant(path: Path, releases: Mapping[str, Hudi]) -> None:
    options = hudi_options(name="t")
    for mark in range(2):
        releases["0.15.0"].write(path, rows(range(4), partial(add, mark * 10), mark), options)
    table = HudiTable.open(str(path), settings=SETTINGS)
    second = table.state().timeline.last_write
    assert second is not None
    day, time = f"{second[:4]}-{second[4:6]}-{second[6:8]}", f"{second[8:10]}:{second[10:12]}:{second[12:14]}"
    for form in (second, second[:14], f"{day} {time}", f"{day} {time}.{second[14:]}", day):
        for release, hudi in releases.items():
            unlike = differences(by_key(hudi.read(path, "time_travel", as_of=form)), as_of(table, form))
            assert not unlike, f"as of {form}, Hudi {release} ≠ ours:\n" + "\n".join(unlike)
