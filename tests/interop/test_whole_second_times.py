"""Version 6 where a store tells times in whole seconds: what Hudi makes of a commit file's time.

On this machine's disk: each timeline file is given the time that a bucket would tell of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.model import Action
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.compaction import WHOLE_SLICES
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.timeline.zone import UTC
from hudi_assets.engine.transaction.publish import Publisher
from scripts.hudi_client import RELEASES, Hudi
from scripts.hudi_rows import by_key, differences
from tests.interop.beside import SETTINGS
from tests.interop.tables import MINUTE, START, rows
from tests.stores.beside_hudi import started
from tests.tables.local_session import Frame, LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(params=RELEASES, scope="module")
def hudi(request: pytest.FixtureRequest) -> Iterator[Hudi]:
    with started(request.param) as hudi:
        yield hudi


def as_in_a_bucket(path: Path) -> None:
    """Times of whole seconds."""
    for file in (path / ".hoodie").iterdir():
        told = int(file.stat().st_mtime)
        os.utime(file, (told, told))


def made(path: Path, session: LocalSession) -> HudiTable:
    """Log files alone, then a compaction, writes above it, a pending plan, and writes into its slices."""
    schema = rows([0], lambda _: 0, 0).schema
    HudiTable.create(str(path), schema, record_key=["id"], ordering_field="ts", partition_fields=["p"], buckets=2)
    table = HudiTable.open(str(path), settings={**SETTINGS, WHOLE_SLICES: "true"})

    def write(numbers: list[int], minute: int, mark: int) -> None:
        table.upsert(session, Frame(rows(numbers, lambda _: minute, mark)))

    def planned(minute: int) -> Plan:
        plan = table.plan_compaction(threshold=START + minute * MINUTE)
        assert isinstance(plan, Plan)
        return plan

    write(list(range(8)), 0, 1)
    write([0, 1, 2, 3], 10, 2)
    table.execute_compaction(session, planned(10).instant)
    write([2, 3, 4, 5], 20, 3)
    write([3, 9], 25, 4)
    plan = planned(30)
    write([0, 9, 10], 35, 5)
    as_in_a_bucket(path)
    table.execute_compaction(session, plan.instant)
    write([10, 11], 40, 6)
    planned(50)
    write([1, 11], 60, 7)
    as_in_a_bucket(path)
    return table


def wrong(hudi: Hudi, table: HudiTable) -> list[str]:
    """The questions to which Hudi's answers are not ours."""
    instants = [i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT, Action.COMMIT)]
    asked: list[tuple[dict[str, Any], Any]] = [
        ({"query": "snapshot"}, table.snapshot_tasks()),
        ({"query": "read_optimized"}, table.read_optimized_tasks()),
        *(({"query": "time_travel", "as_of": one}, table.time_travel_tasks(one)) for one in instants),
        *(
            ({"query": "incremental", "begin": low, "end": high}, table.incremental_tasks(low, high))
            for low, high in zip(instants, [*instants[2:], instants[-1]], strict=False)
            if low < high
        ),
    ]
    found = []
    theirs = hudi.answers(table.path, [question for question, _ in asked])
    for (question, tasks), answer in zip(asked, theirs, strict=True):
        ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in task.read()], table.schema()))
        if differences(by_key(answer), ours):
            found.append(str(question))
    return found


def test_a_commit_of_a_later_second_is_right(
    hudi: Hudi, session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not two of them are of one second."""
    whole = LocalStorage.capabilities.fget  # type: ignore[attr-defined]
    from dataclasses import replace

    monkeypatch.setattr(LocalStorage, "capabilities", property(lambda self: replace(whole(self), exact_times=False)))
    table = made(tmp_path / "t", session)
    print(hudi.release, wrong(hudi, table))
    monkeypatch.setattr(Publisher, "_wait_for_later_second", lambda *_: None)
    other = made(tmp_path / "other", session)
    print(hudi.release, "without waiting", wrong(hudi, other))
    # each commit a second or more after its instant, then all files of one second later
    seconds = []
    for one in (tmp_path / "other" / ".hoodie").iterdir():
        name = one.name
        if name[:17].isdecimal() and name.endswith("commit"):
            seconds.append((name, instant_ms(name[:17], UTC)))
    last = max(ms for _, ms in seconds) // 1000 + 1
    for name, ms in seconds:
        os.utime(tmp_path / "other" / ".hoodie" / name, (ms // 1000 + 1, ms // 1000 + 1))
    print(hudi.release, "a second after each instant", wrong(hudi, other))
    for name, ms in seconds:
        os.utime(tmp_path / "other" / ".hoodie" / name, (last, last))
    print(hudi.release, "all of one second, after all", wrong(hudi, other))
