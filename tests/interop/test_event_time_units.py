"""Tables that Apache Hudi writes, whose event times count in a unit that nobody states: a true promise, or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, Plan
from hudi_assets.engine.model.column_unit import Source
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key
from tests.interop.tables import hudi_options
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
SETTINGS = {"hudi_assets.writers": "stopped", "hoodie.payload.event.time.field": "ts", "hudi_assets.data.latency": "1h"}
SECOND = 1_700_000_000  # 2023-11-14
A_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000}


def write(hudi: Hudi, path: Path, version: int, times: list[int], **more: str) -> None:
    """An upsert of keys k0, k1, … with these event times."""
    rows = pa.Table.from_pylist([{"id": f"k{n}", "p": "a", "ts": ts} for n, ts in enumerate(times)], SCHEMA)
    options = hudi_options(name="t", buckets=1) | {"hoodie.write.table.version": str(version)}
    hudi.write(path, rows, options | more)


CASES = [
    pytest.param("0.15.0", 6, tuple(A_SECOND), marks=pytest.mark.slow, id="0.15.0-v6"),
    pytest.param("1.2.0", 9, ("us",), id="1.2.0-v9-us"),
    pytest.param("1.2.0", 9, ("s", "ms"), marks=pytest.mark.slow, id="1.2.0-v9"),
]


@pytest.mark.parametrize(("release", "version", "units"), CASES)
def test_the_values_tell_the_unit_or_nothing_is_promised(
    release: str,
    version: int,
    units: tuple[str, ...],
    path: Path,
    session: LocalSession,
    request: pytest.FixtureRequest,
) -> None:
    hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    for unit in units:
        count = A_SECOND[unit]
        folder = path / unit
        for offset in (0, 60, 120):
            write(hudi, folder, version, [(SECOND + offset) * count, (SECOND + offset + 5) * count])
        table = HudiTable.open(str(folder), settings=SETTINGS)
        promise = table.freshness()
        lowest = promise.min_event_time
        assert lowest in (SECOND * 1000, (SECOND + 60) * 1000)  # the first upsert may have made a base file
        assert promise.freshness == lowest - 1
        assert promise.unit is not None
        assert (promise.unit.unit, promise.unit.source) == (unit, Source.VALUES)
        before = by_key(hudi.read(folder))
        plan = table.plan_compaction(threshold=(SECOND + 65) * 1000)
        assert isinstance(plan, Plan), plan
        table.execute_compaction(session, plan.instant)
        assert table.freshness().freshness == (SECOND + 120) * 1000 - 1
        assert by_key(hudi.read(folder)) == before
        # The writer changes its mind: nobody can tell any more.
        other = A_SECOND["us" if unit == "ms" else "ms"]
        write(hudi, folder, version, [(SECOND + 180) * other] * 2)
        promise = table.freshness()
        assert promise.freshness is None
        assert "look like" in (promise.reason or "")
        with pytest.raises(InvalidInput, match="look like"):
            table.plan_compaction()
