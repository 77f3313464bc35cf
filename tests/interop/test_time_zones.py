"""Tables whose instants are in the zone of Hudi's writers (LOCAL, Hudi's default), and our process in another one.

We refuse by name before anything is written; told the zone, we compact, and every later answer of Hudi is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import NoPlan, Plan
from hudi_assets.engine.timeline.instants import instant_ms
from scripts.hudi_client import Hudi
from tests.tables.local_session import LocalSession
from tests.tables.steps import planned

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

START = 1_700_000_000_000
MINUTE = 60_000
PAIRS = (
    ("America/Los_Angeles", "UTC"),
    ("UTC", "Asia/Kolkata"),
    ("Europe/Berlin", "America/New_York"),
    ("Asia/Tokyo", "UTC"),
    ("Pacific/Auckland", "Pacific/Honolulu"),
    ("Asia/Kathmandu", "Asia/Kathmandu"),
)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SETTINGS = {
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.writers": "stopped",
    "hoodie.bucket.index.num.buckets": "2",
}
Rows = dict[str, int]


class Written:
    """A table that Hudi writes in one zone. `rows`: what a snapshot has to show; `before`: after each commit."""

    def __init__(self, path: Path, hudi: Hudi, version: str) -> None:
        self.path, self.hudi, self.version = path, hudi, version
        self.rows: Rows = {}
        self.before: dict[str, Rows] = {}

    def write(self, number: int) -> None:
        keys = [f"k{n}" for n in range(number, number + 6)]
        ts = [START + number * MINUTE] * len(keys)
        rows = pa.table({"id": keys, "ts": ts, "v": [number] * len(keys)})
        self.hudi.write(self.path, rows, {**OPTIONS, "hoodie.write.table.version": self.version})
        self.rows |= dict.fromkeys(keys, number)
        self.before[max(i for i, action, _ in self.hudi.timeline(self.path) if action == "deltacommit")] = {**self.rows}

    def check(self, step: str) -> None:
        """Snapshot, time travel and incremental by Hudi are what was written."""
        assert self.read("snapshot") == self.rows, step
        for instant, rows in self.before.items():
            assert self.read("time_travel", as_of=instant) == rows, f"{step}: {instant}"
        assert self.read("incremental", begin="000", end=None) == self.rows, step

    def read(self, query: str, **fields: Any) -> Rows:
        table = self.hudi.read(self.path, query, **fields)
        return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))

    def ours(self, **settings: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**SETTINGS, **settings})

    def files(self) -> dict[str, int]:
        """Every file but those of our locks, and when it was modified."""
        found = (file for file in self.path.rglob("*") if file.is_file() and ".aux" not in file.parts)
        return {str(file): file.stat().st_mtime_ns for file in found}


@contextmanager
def in_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()


@contextmanager
def hudi_in(release: str, zone: str, monkeypatch: pytest.MonkeyPatch, *, by_java: bool) -> Iterator[Hudi]:
    """A Hudi whose JVM is in a zone: by the variable TZ, or by Java's own setting."""
    with monkeypatch.context() as patch:
        if by_java:
            patch.setenv("INTEROP_JAVA_OPTIONS", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone={zone}")
        else:
            patch.setenv("TZ", zone)
        with Hudi(release) as hudi:
            yield hudi


def refusals(table: HudiTable, session: Any) -> dict[str, Callable[[], object]]:
    """Whatever makes an instant or judges age by one."""
    rows = session.frame(pa.table({"id": ["k1"], "ts": [START], "v": [9]}))
    newest = table.state().timeline.last_write or ""
    return {
        "plan": lambda: table.plan_compaction(threshold=START + MINUTE),
        "dry run": lambda: table.plan_compaction(threshold=START + MINUTE, dry_run=True),
        "upsert": lambda: table.upsert(session, rows),
        "delete": lambda: table.delete(session, rows),
        "clean": table.clean,
        "dry clean": lambda: table.clean(dry_run=True),
        "archive": table.archive,
        "savepoint": table.savepoint,
        "rollback": lambda: table.rollback(newest),
        "recover": table.recover,
    }


def offset(moment: datetime) -> str:
    """`UTC-08:00`."""
    return f"UTC{moment.isoformat()[-6:]}"


def compacted(table: HudiTable, session: Any, minute: int) -> Plan:
    plan = planned(table, START + minute * MINUTE)
    table.execute_compaction(session, plan.instant)
    return plan


def played(pair: tuple[str, str], release: str, version: str, path: Path, session: Any, monkeypatch: Any) -> None:
    writers, ours = pair
    by_java = version == "9"
    with hudi_in(release, writers, monkeypatch, by_java=by_java) as hudi, in_zone(ours, monkeypatch):
        table = Written(path, hudi, version)
        for number in range(3):
            table.write(number)
        now = datetime.now().astimezone()
        same = now.astimezone(ZoneInfo(writers)).utcoffset() == now.utcoffset()
        if not same:
            there = table.files()
            for name, act in refusals(table.ours(), session).items():
                with pytest.raises(InvalidInput, match=r"hudi_assets.timeline.zone") as refused:
                    act()
                assert offset(now) in str(refused.value), name
                assert offset(now.astimezone(ZoneInfo(writers))) in str(refused.value), name
            look = table.ours().look()
            assert isinstance(look.due, NoPlan)
            assert "hudi_assets.timeline.zone" in look.due.reason
            assert {finding.kind for finding in table.ours().validate()} == {"time_zone"}
            assert table.files() == there
        told = {} if same else {"hudi_assets.timeline.zone": writers}
        plan = compacted(table.ours(**told), session, 1)
        assert instant_ms(plan.instant, writers) <= time.time() * 1000
        table.check("compacted")
        for number in (3, 4):
            table.write(number)
        table.check("Hudi wrote")
        compacted(table.ours(**told), session, 3)
        table.write(5)
        table.check("compacted and written again")
        hudi.compaction(path, "run")
        table.check("Hudi compacted")
        assert table.read("read_optimized") == table.rows
        assert table.ours(**told).validate() == ()


def test_west_of_us(path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch) -> None:
    played(PAIRS[0], "0.15.0", "6", path, session, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("release", "version"), [("0.15.0", "6"), ("1.2.0", "9")])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pairs(
    pair: tuple[str, str],
    release: str,
    version: str,
    path: Path,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played(pair, release, version, path, session, monkeypatch)
