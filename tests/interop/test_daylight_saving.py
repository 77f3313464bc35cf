"""Apache Hudi and this project on one table, while the clock of its zone is put forward.

The zone is of `changed_zone`: the change comes a minute or two after the start, by the machine's true clock. Rows win
by their event times, which follow the writes: so what a query has to show is known whatever the instants are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Plan
from scripts.hudi_client import Hudi
from tests.interop.changed_zone import CLOCK_JAVA, NAME, ChangedZone, process_in
from tests.interop.test_time_zones import MINUTE, OPTIONS, SETTINGS, START
from tests.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2400)]

REPEAT_S = 90
HOUR_S = 3600
# So many seconds before anything must have happened: where the machine is too slow for one, the next is tried.
LEADS_S = (75, 150, 300)
PAIRS = (("0.15.0", "6"), ("1.2.0", "9"))
BY_RELEASE = pytest.mark.parametrize(("release", "version"), PAIRS, ids=[release for release, _ in PAIRS])
Rows = dict[str, int]


class TooSlow(Exception):
    """A step came later than the clock allows."""


@dataclass
class Life:
    """A table that two JVMs of Hudi write, and this process. `told`: this process is in UTC and told of the zone."""

    path: Path
    zone: ChangedZone
    version: str
    first: Hudi
    second: Hudi
    session: LocalSession
    told: bool
    commits: list[tuple[str, int]] = field(default_factory=list)

    # -- what Hudi does ---------------------------------------------------------------------------

    def hudi_writes(self, hudi: Hudi, number: int) -> str:
        """One commit of six rows; its instant."""
        before = {instant for instant, _, _ in hudi.timeline(self.path)} if self.commits else set()
        hudi.write(self.path, _rows(number), {**self._options, "hoodie.write.table.version": self.version})
        found = [i for i, action, _ in hudi.timeline(self.path) if action == "deltacommit" and i not in before]
        assert len(found) == 1
        self.commits.append((found[0], number))
        return found[0]

    def hudi_compacts(self) -> None:
        self.first.compaction(self.path, "run", **self._metadata)

    @property
    def _metadata(self) -> dict[str, str]:
        return {"hoodie.metadata.enable": str(self.version == "9").lower()}

    @property
    def _options(self) -> dict[str, str]:
        return {**OPTIONS, **self._metadata}

    def wrong(self) -> dict[str, Any]:
        """Which answers of Hudi are not what was written, and how: {question: {key: (right, shown)}}."""
        questions: dict[str, tuple[dict[str, Any], Rows]] = {
            "snapshot": ({"query": "snapshot"}, self.rows()),
            "incremental": ({"query": "incremental", "begin": "000", "end": None}, self.rows()),
        }
        for instant, number in self.commits:
            asked = {"query": "time_travel", "as_of": instant}
            questions[f"as of {number}"] = (asked, self.rows(as_of=instant))
        answers = self.second.answers(self.path, [asked for asked, _ in questions.values()], self._metadata)
        found = {}
        for (name, (_, right)), answer in zip(questions.items(), answers, strict=True):
            shown = _by_key(answer)
            if shown != right:
                keys = sorted(right.keys() | shown.keys())
                found[name] = {k: (right.get(k), shown.get(k)) for k in keys if right.get(k) != shown.get(k)}
        return found

    def rows(self, *, as_of: str | None = None) -> Rows:
        """What a snapshot has to show: of each key the row with the latest event time, as of an instant by its text."""
        found: Rows = {}
        for instant, number in self.commits:
            if as_of is None or instant <= as_of:
                for key in _rows(number)["id"].to_pylist():
                    found[key] = max(number, found.get(key, number))
        return found

    # -- what we do -------------------------------------------------------------------------------

    def ours(self) -> HudiTable:
        told = {"hudi_assets.timeline.zone": NAME} if self.told else {}
        return HudiTable.open(str(self.path), settings={**SETTINGS, **told})

    def plans(self, number: int) -> Plan:
        plan = self.ours().plan_compaction(threshold=START + number * MINUTE)
        assert isinstance(plan, Plan), plan
        return plan

    def executes(self, plan: Plan) -> None:
        self.ours().execute_compaction(self.session, plan.instant)

    def upserts(self, number: int) -> None:
        instant = self.ours().upsert(self.session, self.session.frame(_rows(number))).instant
        assert instant is not None
        self.commits.append((instant, number))

    def check(self, step: str) -> None:
        """Every answer of Hudi's and ours is right, and so is what we promise."""
        assert self.wrong() == {}, step
        table = self.ours()
        assert _by_key(table.snapshot(self.session).toArrow()) == self.rows(), step
        compacted = _by_key(self.second.read(self.path, "read_optimized"))
        assert _by_key(table.read_optimized(self.session).toArrow()) == compacted, step
        promised = table.freshness(data_latency="1s").freshness
        assert promised is not None, step
        for key, number in self._rows_up_to(promised).items():
            assert compacted.get(key, -1) >= number, f"{step}: {key} is missing in the read-optimized view"
        assert table.validate() == (), step

    def _rows_up_to(self, event_time: int) -> Rows:
        found: Rows = {}
        for _, number in self.commits:
            if START + number * MINUTE <= event_time:
                found |= {k: max(number, found.get(k, number)) for k in _rows(number)["id"].to_pylist()}
        return found

    # -- time -------------------------------------------------------------------------------------

    def waits_until(self, seconds: float) -> None:
        """Until so many seconds after the change (before: below 0)."""
        left = self.zone.at + seconds - time.time()
        if left < 0:
            raise TooSlow(f"{-left:.0f} s late for {seconds:+.0f} s")
        time.sleep(left)


def _rows(number: int) -> pa.Table:
    keys = [f"k{n}" for n in range(number, number + 6)]
    return pa.table({"id": keys, "ts": [START + number * MINUTE] * len(keys), "v": [number] * len(keys)})


def _by_key(rows: pa.Table) -> Rows:
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


@contextmanager
def begun(
    folder: Path, release: str, version: str, session: LocalSession, monkeypatch: Any, *, by: int, lead: int, told: bool
) -> Iterator[Life]:
    """Two JVMs of Hudi in the zone, `lead` seconds before the change by `by` seconds, and this process."""
    zone = ChangedZone(folder / "zone", int(time.time()) + lead, by).made()
    with process_in(zone, NAME, monkeypatch), ThreadPoolExecutor(2) as pool:
        first, second = pool.map(Hudi, (release, release))
    try:
        with process_in(zone, "UTC" if told else NAME, monkeypatch):
            yield Life(folder / "t", zone, version, first, second, session, told)
    finally:
        first.close()
        second.close()
        shutil.rmtree(zone.folder)


def lived(play: Callable[[Life], None], path: Path, *args: Any, before: int = 0, **options: Any) -> None:
    """Play a case, with more time before the change where the machine is too slow. `before`: seconds always needed."""
    for lead in LEADS_S:
        try:
            with begun(path.parent / f"lead-{lead}", *args, lead=lead + before, **options) as life:
                play(life)
            return
        except TooSlow as slow:
            why = str(slow)
    pytest.skip(f"this machine is too slow: {why}")


# -- the zone -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [-HOUR_S, HOUR_S, -REPEAT_S])
def test_java_the_c_library_and_python_agree(by: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = ChangedZone(tmp_path, int(time.time()) + 60, by).made()
    java = str(zone.java_home / "bin" / "java")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler" not in modules:
        pytest.skip("this Java has no compiler")
    source = tmp_path / "Clock.java"
    source.write_text(CLOCK_JAVA)
    asked = [zone.at + s for s in (-by, by, -REPEAT_S, -1, 0, 1, REPEAT_S, 365 * 86400)]
    command = [java, str(source), *map(str, asked)]
    environment = {**os.environ, **zone.environment()}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()
    with process_in(zone, NAME, monkeypatch):
        by_c = [time.strftime("%Y%m%d%H%M%S", time.localtime(s)) for s in asked]
        by_python = [f"{datetime.fromtimestamp(s, ZoneInfo(NAME)):%Y%m%d%H%M%S}" for s in asked]
    assert shown[::2] == shown[1::2] == by_c == by_python
    assert zone.after - zone.before == by


# -- spring ---------------------------------------------------------------------------------------


def put_forward(life: Life) -> None:
    for number in (0, 1, 2):
        life.hudi_writes(life.first, number)
    life.executes(life.plans(1))
    life.check("compacted before the change")
    pending = life.plans(2)
    life.waits_until(1)
    life.hudi_writes(life.second, 3)
    life.check("written after the change")
    life.executes(pending)
    life.check("what was planned before the change is executed")
    life.executes(life.plans(3))
    life.upserts(4)
    life.hudi_writes(life.first, 5)
    life.check("compacted and written after the change")
    life.executes(life.plans(5))
    life.hudi_writes(life.second, 6)
    life.check("compacted again")
    life.hudi_compacts()
    life.check("Hudi compacted")


@pytest.mark.slow
@BY_RELEASE
def test_the_clock_is_put_forward(
    release: str, version: str, path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(put_forward, path, release, version, session, monkeypatch, by=HOUR_S, told=version == "9")
