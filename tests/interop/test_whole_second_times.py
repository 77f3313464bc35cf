"""Version 6 as in a bucket: what Hudi makes of the names of its files, and of times in whole seconds.

The bucket is a folder of this machine, so Hudi needs no hadoop-aws. Each file of the timeline is given the time that a
bucket would tell of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.hudi_table import table as opening
from hudi_assets.engine.model import Action
from hudi_assets.engine.timeline.instants import instant_ms, is_instant
from hudi_assets.engine.timeline.zone import UTC
from scripts.hudi_client import RELEASES, Hudi
from scripts.hudi_rows import by_key, differences
from tests.interop.beside import SETTINGS
from tests.interop.tables import MINUTE, START, rows
from tests.stores.beside_hudi import started
from tests.stores.folder import FolderBucket
from tests.tables.local_session import Frame, LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(params=RELEASES, scope="module")
def hudi(request: pytest.FixtureRequest) -> Iterator[Hudi]:
    with started(request.param) as hudi:
        yield hudi


def made(path: Path, session: LocalSession) -> HudiTable:
    """Log files alone, then a compaction, a write above it, a pending plan, writes into its slices, and so on."""
    schema = rows([0], lambda _: 0, 0).schema
    of = {"record_key": ["id"], "ordering_field": "ts", "partition_fields": ["p"], "buckets": 2}
    HudiTable.create(str(path), schema, table_version=6, **of)  # type: ignore[arg-type]
    table = HudiTable.open(str(path), settings=SETTINGS)

    def write(numbers: list[int], minute: int, mark: int) -> None:
        table.upsert(session, Frame(rows(numbers, lambda _: minute, mark)))

    def planned(minute: int) -> Plan:
        plan = table.plan_compaction(threshold=START + minute * MINUTE)
        assert isinstance(plan, Plan)
        return plan

    write(list(range(8)), 0, 1)
    table.execute_compaction(session, planned(10).instant)
    write([2, 3, 4, 5], 20, 2)
    plan = planned(30)
    write([0, 9, 10], 35, 3)
    table.execute_compaction(session, plan.instant)
    write([10, 11], 40, 4)
    planned(50)
    write([1, 11], 60, 5)
    return table


def timed(table: HudiTable, told: Callable[[int, int], int]) -> None:
    """Give each file of the timeline a time in seconds: of its instant and the time that it has, both in ms."""
    for file in Path(table.path, ".hoodie").iterdir():
        name = file.name.split(".")[0]
        if is_instant(name):
            seconds = told(instant_ms(name, UTC), file.stat().st_mtime_ns // 1_000_000)
            os.utime(file, (seconds, seconds))


def wrong(hudi: Hudi, table: HudiTable) -> list[str]:
    """The questions to which Hudi's answers are not ours."""
    instants = [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]
    asked: list[tuple[dict[str, Any], Any]] = [
        ({"query": "snapshot"}, table.snapshot_tasks()),
        ({"query": "read_optimized"}, table.read_optimized_tasks()),
        *(({"query": "time_travel", "as_of": one}, table.time_travel_tasks(one)) for one in instants[2::2]),
        *(
            ({"query": "incremental", "begin": low, "end": high}, table.incremental_tasks(low, high))
            for low, high in ((instants[0], instants[-1]), (instants[2], instants[4]))
        ),
    ]
    theirs = hudi.answers(table.path, [question for question, _ in asked])
    found = []
    for (question, tasks), answer in zip(asked, theirs, strict=True):
        ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in task.read()], table.schema()))
        if differences(by_key(answer), ours):
            found.append(question["query"])
    return found


def test_a_commit_of_a_later_second_than_its_instant_is_right(
    hudi: Hudi, session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction is completed in the second of the write before it, too."""
    monkeypatch.setattr(opening, "open_storage", lambda path, *_: FolderBucket(path))
    table = made(tmp_path / "t", session)
    timed(table, lambda _, told: told // 1000)
    assert wrong(hudi, table) == []
    # And 1.2.0 does not show all rows of one that looks completed before it began. 0.15.0 asks for no time.
    timed(table, lambda instant, _: instant // 1000)
    assert ("snapshot" in wrong(hudi, table)) is (hudi.release == "1.2.0")
