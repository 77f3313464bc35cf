"""Deletes without ordering value, Hudi's default: their commit bounds them, and compactions stay partial."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.model import BoundRule, MergeMode
from hudi_assets.engine.timeline.instants import instant_ms
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.readers import History, same_incremental, same_time_travel
from tests.interop.tables import copy_of, hudi_options
from tests.interop.test_queries_v9 import Beside, answer
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("text", pa.string())])
HOUR = 3_600_000
LATENCY = HOUR
OPEN = {
    "hudi_assets.writers": "stopped",
    "hudi_assets.data.latency": "1h",
    "hudi_assets.event.time.unit": "ms",
    "hoodie.payload.event.time.field": "ts",
    "hoodie.cleaner.commits.retained": "1000",
    "hoodie.index.type": "BUCKET",  # which one file group does not tell by its name
}


class Writer:
    """A release of Hudi."""

    def __init__(self, path: Path, version: int, hudi: Hudi) -> None:
        self.path, self.hudi = path, hudi
        self.options = hudi_options(
            name="t",
            buckets=1,
            **{"hoodie.table.timeline.timezone": "UTC", "hoodie.write.table.version": str(version)},
        )

    def write(self, ago: float, *keys: int, delete: bool = False) -> None:
        """Rows, or deletes without ordering value, of an event time so many hours ago."""
        ts = round(time.time() * 1000 - ago * HOUR)
        found = [{"id": f"k{k}", "ts": ts, "p": "a", "text": f"{k} {ago}"} for k in keys]
        table = pa.Table.from_pylist(found, SCHEMA)
        operation = {"hoodie.datasource.write.operation": "delete" if delete else "upsert"}
        self.hudi.write(self.path, table, {**self.options, **operation})


@pytest.mark.parametrize(
    ("by", "version"),
    [
        pytest.param("0.15.0", 6, id="0.15.0", marks=pytest.mark.slow),
        pytest.param("1.2.0", 6, id="1.2.0-v6"),
        pytest.param("1.2.0", 9, id="1.2.0-v9", marks=pytest.mark.slow),
    ],
)
def test_a_table_with_deletes_has_a_freshness_and_partial_compactions(
    by: str, version: int, path: Path, session: LocalSession, request: pytest.FixtureRequest
) -> None:
    both = ["hudi_0_15", "hudi_1_2"] if version == 6 else ["hudi_1_2"]
    releases: dict[str, Hudi] = {hudi.release: hudi for hudi in map(request.getfixturevalue, both)}
    writer = Writer(path, version, releases[by])
    writer.write(3, *range(6))
    writer.write(2.5, 0, 1, 2)
    writer.write(0, 1, 3, delete=True)
    writer.write(0.5, 1, 4)  # k1 is back; k4 is changed
    table = HudiTable.open(str(path), settings=OPEN)
    gone = table.state().timeline.instants[2].timestamp
    promise = table.freshness()
    assert [(one.rule, one.log_files) for one in promise.bounds] == [(BoundRule.LATENCY, 1)], promise
    assert promise.bounds[0].min_event_time == instant_ms(gone, "UTC") - LATENCY
    assert promise.freshness is not None

    before, copy = of(table, releases), copy_of(path)
    executed = []
    while not isinstance(plan := table.plan_compaction(), NoPlan):
        assert isinstance(plan, Plan)
        result = table.execute_compaction(session, plan.instant)
        executed.append(result.logs_remaining)
    assert executed, plan.reason
    # By 0.x's rules too: the base rows lie below what came after the delete.
    assert (table.config.merging.mode is MergeMode.EVENT_TIME_ORDERING_0X) == (by == "0.15.0")
    assert executed[-1] == 1, "what came after the delete stays"
    assert set(by_key(read_with_hudi_rs(str(path), "read_optimized"))) == {("p=a", f"k{k}") for k in (0, 2, 4, 5)}
    fresh = table.freshness()
    assert (fresh.freshness, fresh.bounds) == (fresh.watermark, ())
    after = of(table, releases)
    for name, rows in before.items():
        assert not differences(rows, after[name]), name
    assert {key for _, key in before["the engine"]} == {"k0", "k1", "k2", "k4", "k5"}
    if version == 6:
        for hudi in releases.values():
            same_time_travel(History(hudi, copy), History(hudi, path))
            same_incremental(History(hudi, copy), History(hudi, path))
    else:
        Beside(table, releases["1.2.0"]).check("compacted")
    writer.write(0.25, 5)
    writer.write(0, 0, delete=True)
    releases["0.15.0" if version == 6 else "1.2.0"].compaction(path, "run")
    last = of(table, releases)
    for name, rows in last.items():
        assert {key for _, key in rows} == {"k1", "k2", "k4", "k5"}, name
        assert not differences(last["the engine"], rows), name


def of(table: HudiTable, releases: dict[str, Hudi]) -> dict[str, Rows]:
    """The snapshot by every reader."""
    return {
        "the engine": answer(table, table.snapshot_tasks()),
        **{name: by_key(hudi.read(table.path)) for name, hudi in releases.items()},
        "hudi-rs": by_key(read_with_hudi_rs(table.path, "snapshot")),
    }
