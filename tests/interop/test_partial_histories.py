"""Short histories around a delete without ordering value, compacted by us in part, beside Apache Hudi 1.2.0.

Each history has a partition of its own, so that each slice is parted by itself: a base row or none, a row or a delete,
a delete without ordering value, and what comes after it. No answer of 1.2.0 changes.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from scripts.hudi_client import Hudi
from tests.interop.tables import copy_of
from tests.interop.test_merge import SETTINGS, options
from tests.interop.test_merge_rules import BASE, DEFAULT, NATURAL, Case, History, by_1_x
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

HOUR = 3_600_000
NOW = 30  # hours on the histories' scale; a delete without ordering value is bounded an hour before
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
# The fourth place is for a second delete; and nothing is tried where nothing could be parted.
PLACES: tuple[tuple[Any, ...], ...] = (
    (None, BASE),
    (None, "r5", "r20", "d20"),
    (None, NATURAL),
    (None, "r5", "d5"),
    (None,),
    (None, "r5", "r40"),
)
HISTORIES: list[History] = [it for it in product(*PLACES) if sum(said is not None for said in it[1:]) > 1]
SOME = [it for it in HISTORIES if it[1] in (None, "r20") and it[2] and it[3] in (None, "d5") and (it[3] or it[5])]


def write(hudi: Hudi, path: Path, version: int, histories: list[History]) -> int:
    """The table, a commit for each place; when it was (epoch ms)."""
    now = round(time.time() * 1000)
    given = {
        **options(DEFAULT, "ts"),
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
    }
    for place in range(6):
        rows: list[dict[str, Any]] = []
        if place == 0:  # what comes to a file group without base file, Hudi would write into one
            first = {"ts": now - NOW * HOUR, "v": "first", "_hoodie_is_deleted": False}
            rows = [{"id": f"x{n:04d}", "p": f"k{n:04d}", **first} for n in range(len(histories))]
        for number, history in enumerate(histories):
            said = f"r{BASE}" if place == 0 and history[0] else history[place]
            if isinstance(said, str):
                at = 0 if said == NATURAL else now + (int(said[1:]) - NOW) * HOUR
                mark = f"{place} {said}" if place else "base"
                key = f"k{number:04d}"
                rows.append({"id": key, "p": key, "ts": at, "v": mark, "_hoodie_is_deleted": said[0] == "d"})
        operation = "bulk_insert" if place == 0 else "delete" if place in (2, 4) else "upsert"
        more = {**given, "hoodie.datasource.write.operation": operation}
        hudi.write(path, pa.Table.from_pylist(rows, SCHEMA), more, "append" if path.exists() else "overwrite")
    return now


def answer(rows: pa.Table, histories: list[History]) -> list[str | None]:
    shown = dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert len(shown) == len(rows), "a key came twice"
    return [shown.get(f"k{number:04d}") for number in range(len(histories))]


def different(histories: list[History], left: list[str | None], right: list[str | None]) -> list[Any]:
    return [one for one in zip(histories, left, right, strict=True) if one[1] != one[2]]


@pytest.mark.parametrize(
    ("version", "histories"),
    [
        pytest.param(6, SOME, id="v6-some"),
        pytest.param(6, HISTORIES, id="v6", marks=pytest.mark.slow),
        pytest.param(9, HISTORIES, id="v9", marks=pytest.mark.slow),
    ],
)
def test_no_partial_compaction_changes_an_answer_of_1_2(
    version: int, histories: list[History], path: Path, session: LocalSession, hudi_1_2: Hudi
) -> None:
    now = write(hudi_1_2, path, version, histories)
    before = answer(hudi_1_2.read(path), histories)
    assert not different(histories, before, [by_1_x(history, Case()) for history in histories])[:5], "the rules"
    found: Counter[str] = Counter()
    # Due are rows at 5 alone; then all but rows at 40, deletes without ordering value among them.
    for at, services in product((6, NOW - 0.01), ("shared", "ours") if version == 6 else ("shared",)):
        copy = copy_of(path)
        settings = {**SETTINGS, "hudi_assets.data.latency": "1h", "hudi_assets.table.services": services}
        table = HudiTable.open(str(copy), settings=settings)
        # On version 9 a plan takes the slices that one instant suits.
        for number in range(5):
            plan = table.plan_compaction(threshold=now + round((at - NOW) * HOUR))
            if not isinstance(plan, Plan):
                assert number, plan
                break
            table.execute_compaction(session, plan.instant)
            what = f"compaction {number} up to {at}, services {services}"
            assert not different(histories, before, answer(hudi_1_2.read(copy), histories))[:5], what
            ours = table.snapshot(session).toArrow()
            assert not different(histories, before, answer(ours, histories))[:5], f"{what}: ours"
            remaining = {log.partition for log in HudiTable.open(str(copy), settings=settings).state().remaining_logs}
            for op in plan.operations:
                found[f"up to {at}: {'in part' if op.partition in remaining else 'whole'}"] += 1
    print(dict(found))
    assert all(found[f"up to {at}: {how}"] for at in (6, NOW - 0.01) for how in ("in part", "whole")), found
