"""Apache Hudi and this project on one table, while the clock of its zone is put forward or back.

The zone is of `changed_zone`: the change comes a minute or two after the start, by the machine's true clock. In autumn
it is by `REPEAT_S` seconds, so that a case lives through both passes of the time that comes twice; or by an hour, in
which all that comes before the change is in the first pass. `Life` has the control table, on which only Hudi acts.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hudi_assets.engine import Conflict
from hudi_assets.engine.model import Plan
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from scripts.hudi_client import HudiError
from tests.interop.changed_zone import CLOCK_JAVA, NAME, ChangedZone, process_in
from tests.interop.changed_zone_life import Life, lived, rows_of
from tests.interop.test_time_zones import MINUTE, START
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2400)]

REPEAT_S = 150
HOUR_S = 3600
PAIRS = (("0.15.0", "6"), ("1.2.0", "9"))
BY_RELEASE = pytest.mark.parametrize(("release", "version"), PAIRS, ids=[release for release, _ in PAIRS])


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
    alone = lived(put_forward, path, release, version, session, monkeypatch, by=HOUR_S, told=version == "9")
    assert alone == {}


# -- autumn ---------------------------------------------------------------------------------------


# 0.15.0 alone is wrong as of a write of the second pass (5): it stops reading a slice at the first log block of a later
# instant, which is one of the first pass (3).
HUDI_ALONE: dict[str, dict[str, set[str]]] = {
    "6": {
        step: {"as of 5"}
        for step in (
            "written in the second pass",
            "the writer that runs on has waited",
            "compacted and written after the second pass",
            "compacted again",
            "Hudi compacted",
        )
    },
    "9": {},
}


def put_back(life: Life) -> None:
    for number in (0, 1, 2):
        life.hudi_writes(life.first, number)
    try:
        life.executes(life.plans(1))
        pending = life.plans(2)
    except Conflict:
        life.still_before(-REPEAT_S)
        raise
    life.waits_until(-REPEAT_S)
    life.hudi_writes(life.first, 3)
    life.executes(pending)
    life.check("what was planned before is executed in the first pass")
    life.refused(3)
    life.waits_until(-15)
    last = life.hudi_writes(life.first, 4)
    life.waits_until(20)  # in both tables after the first pass's first write, by the clock
    assert life.hudi_writes(life.second, 5) < last  # a JVM that has given no instant yet
    life.still_before(REPEAT_S - 80)
    life.refused(5)
    life.check("written in the second pass")
    life.still_before(REPEAT_S - 15)
    assert life.hudi_writes(life.first, 6) > last  # it waits until its clock has passed its last instant
    assert time.time() > life.zone.at - life.zone.by - 15 * life.pace
    life.check("the writer that runs on has waited")
    life.executes(life.plans(5))
    life.upserts(7)
    life.hudi_writes(life.second, 8)
    life.check("compacted and written after the second pass")
    life.executes(life.plans(8))
    life.hudi_writes(life.first, 9)
    life.check("compacted again")
    life.hudi_compacts()
    life.check("Hudi compacted")


@pytest.mark.slow
@BY_RELEASE
def test_the_clock_is_put_back(
    release: str, version: str, path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = version == "6"
    alone = lived(
        put_back, path, release, version, session, monkeypatch, by=-REPEAT_S, told=told, before=REPEAT_S, timed=True
    )
    assert {step: set(wrong) for step, wrong in alone.items()} == HUDI_ALONE[version]
    assert all(wrong["as of 5"].keys() <= set(rows_of(5)["id"].to_pylist()) for wrong in alone.values())


# What Hudi alone answers wrongly once a JVM that starts in the second pass has written (2).
# Version 6: 0.15.0 stops reading a slice at the first log block of a later instant. Version 9: a log file that is
# completed below its group's base file belongs to the slice before it, which no query of the newest rows reads.
HUDI_ALONE_BY_AN_HOUR = {
    "6": {
        "after its own compaction": {"as of 0", "as of 1", "as of 2"},
        "written in the second pass": {"as of 0", "as of 2"},
        "a writer has waited": {"as of 0", "as of 2"},
    },
    "9": {
        step: {"snapshot", "incremental", "as of 0", "as of 1"}
        for step in ("after its own compaction", "written in the second pass", "a writer has waited")
    },
}


def put_back_by_an_hour(life: Life) -> None:
    for number in (0, 1):
        for written in (life.table, life.control, life.alone):
            life.still_before(-20)  # a write that begins later may wait for an hour
            written.write(life.first, number)
    life.still_before(-20)
    life.first.compaction(life.alone.path, "run", **life.alone.metadata)
    assert life.alone.wrong() == {}
    life.check("written in the first pass")
    life.refused(1)
    life.waits_until(1)
    assert life.hudi_writes(life.second, 2) < life.table.commits[0].instant
    life.alone.write(life.second, 2)
    life.wrong_alone["after its own compaction"] = life.alone.wrong()
    life.refused(2)
    hidden = frozenset({"hidden_rows"} if life.table.version == "9" else ())
    assert life.found(life.alone) == hidden
    life.check("written in the second pass", hidden)
    # Hudi's writer that runs on would wait for most of an hour: it begins nothing meanwhile.
    timeline = life.second.timeline(life.table.path)
    waiting = threading.Thread(target=_written_or_ended, args=(life,))
    waiting.start()
    waiting.join(timeout=20)
    assert waiting.is_alive()
    assert life.second.timeline(life.table.path) == timeline
    life.first._process.kill()
    waiting.join()
    life.check("a writer has waited", hidden)


def _written_or_ended(life: Life) -> None:
    try:
        life.table.write(life.first, 3)
    except (HudiError, OSError):
        return


@pytest.mark.slow
@BY_RELEASE
def test_the_clock_is_put_back_by_an_hour(
    release: str, version: str, path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = lived(put_back_by_an_hour, path, release, version, session, monkeypatch, by=-HOUR_S, told=version == "9")
    assert {step: set(wrong) for step, wrong in alone.items()} == HUDI_ALONE_BY_AN_HOUR[version]
    of_the_second_pass = set(rows_of(2)["id"].to_pylist())
    assert {key for wrong in alone.values() for keys in wrong.values() for key in keys} == of_the_second_pass


# -- rows behind a base file ----------------------------------------------------------------------


def _hidden(life: Life) -> tuple[str, str]:
    """Hudi compacts in the first pass; another JVM's write in the second lies below: (compaction, delta commit)."""
    for number in (0, 1):
        life.still_before(-REPEAT_S)
        life.alone.write(life.first, number)
    life.waits_until(-60)
    life.first.compaction(life.alone.path, "run", **life.alone.metadata)
    life.still_before(-15)
    assert life.found(life.alone) == set()
    life.waits_until(5)
    life.alone.write(life.second, 2)
    life.still_before(REPEAT_S - 70)
    assert "snapshot" in life.alone.wrong()
    assert life.found(life.alone) == {"hidden_rows"}
    promise = life.ours(life.alone).freshness(data_latency="1s")
    assert promise.freshness == START + 2 * MINUTE - 1
    (rows,) = promise.hidden
    assert rows.delta_commit == life.alone.commits[-1].instant
    life.waits_until(REPEAT_S + 15)  # by the clock after the last instant
    return rows.behind, rows.delta_commit


def roll_back(life: Life) -> None:
    """The compaction is rolled back and made again: the metadata table has to list the log files again."""
    compaction, _ = _hidden(life)
    ours = life.ours(life.alone)
    ours.rollback(compaction)
    assert life.found(life.alone) == set()
    assert not life.alone.wrong().keys() & {"snapshot", "incremental"}
    plan = ours.plan_compaction(threshold=START + 2 * MINUTE)
    assert isinstance(plan, Plan), plan
    ours.execute_compaction(life.session, plan.instant)
    _are_back(life)


def write_again(life: Life) -> None:
    _, lost = _hidden(life)
    life.ours(life.alone).upsert(life.session, life.session.frame(rows_of(2)))
    life.alone.found(2)
    assert life.found(life.alone) == {"hidden_rows"}
    _are_back(life, **{WRITTEN_AGAIN: lost})


def _are_back(life: Life, **more: str) -> None:
    assert life.found(life.alone, **more) == set()
    assert not life.alone.wrong().keys() & {"snapshot", "incremental"}
    assert life.ours(life.alone, **more).freshness(data_latency="1s").hidden == ()


@pytest.mark.slow
@pytest.mark.parametrize("way", [roll_back, write_again])
def test_hidden_rows_come_back(
    way: Callable[[Life], None], path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(way, path, "1.2.0", "9", session, monkeypatch, by=-REPEAT_S, told=True, before=REPEAT_S, timed=True)
