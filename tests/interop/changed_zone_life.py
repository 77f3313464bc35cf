"""A table that Apache Hudi and this project write while the clock of its zone changes, beside a control table.

On the control table only Hudi acts: the same JVMs write the same rows into it at the same times. What is wrong there
is Hudi's own doing. Rows win by their event times, which follow the writes: so what a query has to show is known
whatever the instants are.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import Conflict, HudiTable
from hudi_assets.engine.model import Plan
from scripts.hudi_client import Hudi
from tests.interop.changed_zone import NAME, ChangedZone, process_in
from tests.interop.test_time_zones import MINUTE, OPTIONS, SETTINGS, START
from tests.tables.local_session import LocalSession

# Where the machine is too slow for one pace, the next is tried: so many times longer lasts whatever is timed.
PACES = (1, 2, 4)
LEAD_S = 120
Rows = dict[str, int]
Shown = dict[str, int | tuple[int, ...]]
"""Several values where a key is shown more than once."""
Wrong = dict[str, dict[str, tuple[int | None, int | tuple[int, ...] | None]]]
"""Of each question that is answered wrongly: {key: (right, shown)}."""


class TooSlow(Exception):
    """A step came later than the clock allows."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A write of `number`. `mark`: what incremental queries order it by, its completion time on versions 8 and 9."""

    number: int
    instant: str
    mark: str


@dataclass
class Written:
    """One of the two tables, and what was committed to it."""

    path: Path
    version: str
    reader: Hudi
    commits: list[Commit] = field(default_factory=list)

    @property
    def metadata(self) -> dict[str, str]:
        return {"hoodie.metadata.enable": str(self.version == "9").lower()}

    def write(self, hudi: Hudi, number: int) -> None:
        """One commit of six rows."""
        hudi.write(
            self.path,
            rows_of(number),
            {**OPTIONS, **self.metadata, "hoodie.write.table.version": self.version},
        )
        self.found(number)

    def found(self, number: int) -> None:
        """Take the delta commit that is new on the timeline for the one of `number`."""
        folder = self.path / ".hoodie" / ("timeline" if self.version == "9" else "")
        names = (file.name.split(".")[0].split("_") for file in folder.glob("*.deltacommit"))
        known = {commit.instant for commit in self.commits}
        (new,) = [Commit(number, parts[0], parts[-1]) for parts in names if parts[0] not in known]
        self.commits.append(new)

    def order(self) -> list[int]:
        """The writes in the order of their instants' text."""
        return [commit.number for commit in sorted(self.commits, key=lambda commit: commit.instant)]

    def rows(self, *, as_of: str | None = None) -> Rows:
        """What a snapshot has to show: of each key the row with the latest event time, as of an instant by its text."""
        return _winners(commit.number for commit in self.commits if as_of is None or commit.instant <= as_of)

    def wrong(self) -> Wrong:
        """Which answers of Hudi are not what was written: snapshot, incremental from each commit, as of each."""
        questions: dict[str, tuple[dict[str, Any], Rows]] = {
            "snapshot": ({"query": "snapshot"}, self.rows()),
            "incremental": ({"query": "incremental", "begin": "000", "end": None}, self.rows()),
        }
        last = max(commit.mark for commit in self.commits)
        for commit in self.commits:
            asked = {"query": "time_travel", "as_of": commit.instant}
            questions[f"as of {commit.number}"] = (asked, self.rows(as_of=commit.instant))
            if commit.mark < last:
                later = _winners(other.number for other in self.commits if other.mark > commit.mark)
                questions[f"since {commit.number}"] = (
                    {"query": "incremental", "begin": commit.mark, "end": None},
                    later,
                )
        answers = self.reader.answers(self.path, [asked for asked, _ in questions.values()], self.metadata)
        found = {}
        for (name, (asked, right)), answer in zip(questions.items(), answers, strict=True):
            shown = by_key(answer)
            unlike = {k for k in right.keys() | shown.keys() if right.get(k) != shown.get(k)}
            if asked["query"] == "incremental":
                # A row that an earlier instant beats: Hudi shows it only while no compaction lies in the range.
                unlike -= {k for k in unlike if k not in shown and right[k] != self.rows()[k]}
            if unlike:
                found[name] = {k: (right.get(k), shown.get(k)) for k in sorted(unlike)}
        return found


@dataclass
class Life:
    """A table and its control, two JVMs of Hudi, and this process. `told`: it is in UTC, and told of the zone.

    `alone`: a third table, for what only Hudi is to do.

    Times in seconds are those of pace 1.
    """

    zone: ChangedZone
    pace: int
    first: Hudi
    second: Hudi
    session: LocalSession
    told: bool
    table: Written
    control: Written
    alone: Written
    wrong_alone: dict[str, Wrong] = field(default_factory=dict)
    """By step: what Hudi answers wrongly on the control table."""

    # -- what Hudi does ---------------------------------------------------------------------------

    def hudi_writes(self, hudi: Hudi, number: int) -> str:
        """One commit to each table; the instant in ours."""
        self.table.write(hudi, number)
        self.control.write(hudi, number)
        return self.table.commits[-1].instant

    def hudi_compacts(self) -> None:
        for written in (self.table, self.control):
            self.first.compaction(written.path, "run", **written.metadata)

    # -- what we do -------------------------------------------------------------------------------

    def ours(self, written: Written | None = None, **more: str) -> HudiTable:
        """Our table, or another one of the three."""
        told = {"hudi_assets.timeline.zone": NAME} if self.told else {}
        return HudiTable.open(str((written or self.table).path), settings={**SETTINGS, **told, **more})

    def plans(self, number: int) -> Plan:
        plan = self.ours().plan_compaction(threshold=START + number * MINUTE)
        assert isinstance(plan, Plan), plan
        return plan

    def executes(self, plan: Plan) -> None:
        self.ours().execute_compaction(self.session, plan.instant)

    def upserts(self, number: int) -> None:
        """One commit of ours; on the control table Hudi writes the same rows."""
        self.ours().upsert(self.session, self.session.frame(rows_of(number)))
        self.table.found(number)
        self.control.write(self.second, number)

    def refused(self, number: int) -> None:
        """Whatever would begin something says so by name, and when to come again; nothing is written."""
        there = self._files()
        actions: dict[str, Callable[[], object]] = {
            "plan": lambda: self.plans(number),
            "dry run": lambda: self.ours().plan_compaction(threshold=START + number * MINUTE, dry_run=True),
            "upsert": lambda: self.ours().upsert(self.session, self.session.frame(rows_of(number))),
        }
        for name, act in actions.items():
            with pytest.raises(Conflict, match="put back") as refused:
                act()
            assert "Try again from" in str(refused.value), name
        assert self._files() == there

    def _files(self) -> Mapping[str, int]:
        """Every file but those of our locks, and when it was modified."""
        found = (file for file in self.table.path.rglob("*") if file.is_file() and ".aux" not in file.parts)
        return {str(file): file.stat().st_mtime_ns for file in found}

    # -- what must hold ---------------------------------------------------------------------------

    def check(self, step: str, findings: frozenset[str] = frozenset()) -> None:
        """Wherever Hudi alone is right, every answer of Hudi's is right; ours are, and what we promise is in any case.

        `findings`: the kinds that `validate` finds on our table and on the control table.
        """
        if self.table.order() != self.control.order():
            raise TooSlow(f"{step}: the two tables were not written in the same pass")
        alone, found = self.control.wrong(), self.table.wrong()
        self.wrong_alone |= {step: alone} if alone else {}
        ours = {q: {k: r for k, r in rows.items() if k not in alone.get(q, {})} for q, rows in found.items()}
        assert not any(ours.values()), f"{step}: {found}; on the control table: {alone}"
        table = self.ours()
        wrong = {key: shown for key, (_, shown) in found.get("snapshot", {}).items()}
        as_hudi = {**self.table.rows(), **wrong}
        assert by_key(table.snapshot(self.session).toArrow()) == {k: v for k, v in as_hudi.items() if v is not None}, (
            step
        )
        compacted = by_key(self.second.read(self.table.path, "read_optimized"))
        assert by_key(table.read_optimized(self.session).toArrow()) == compacted, step
        promised = table.freshness(data_latency="1s").freshness
        assert promised is not None, step
        for key, number in self._rows_up_to(promised).items():
            shown = compacted.get(key)
            assert isinstance(shown, int), f"{step}: {key} in the read-optimized view"
            assert shown >= number, f"{step}: {key} in the read-optimized view"
        for written in (self.table, self.control):
            assert self.found(written) == findings, step

    def found(self, written: Written, **more: str) -> set[str]:
        """The kinds of what `validate` finds."""
        return {finding.kind for finding in self.ours(written, **more).validate()}

    def _rows_up_to(self, event_time: int) -> Rows:
        return _winners(c.number for c in self.table.commits if START + c.number * MINUTE <= event_time)

    # -- time -------------------------------------------------------------------------------------

    def waits_until(self, seconds: float) -> None:
        """Until so many seconds after the change (before: below 0)."""
        left = self.zone.at + self.pace * seconds - time.time()
        if left < 0:
            raise TooSlow(f"{-left:.0f} s late for {self.pace * seconds:+.0f} s")
        time.sleep(left)

    def still_before(self, seconds: float) -> None:
        if time.time() > self.zone.at + self.pace * seconds:
            raise TooSlow(f"it is later than {self.pace * seconds:+.0f} s")


def rows_of(number: int) -> pa.Table:
    """The rows of a write: each key is in six writes at most, the last of which wins."""
    keys = _keys(number)
    return pa.table({"id": keys, "ts": [START + number * MINUTE] * len(keys), "v": [number] * len(keys)})


def by_key(rows: pa.Table) -> Shown:
    found: dict[str, list[int]] = {}
    for key, value in zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True):
        found.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else tuple(sorted(values)) for key, values in found.items()}


def _keys(number: int) -> list[str]:
    return [f"k{n}" for n in range(number, number + 6)]


def _winners(numbers: Iterator[int]) -> Rows:
    return {key: number for number in sorted(numbers) for key in _keys(number)}


@contextmanager
def begun(
    zone: ChangedZone, pace: int, told: bool, release: str, version: str, session: LocalSession, monkeypatch: Any
) -> Iterator[Life]:
    """Two JVMs of Hudi in the zone, and this process."""
    folder = zone.folder.parent
    zone.made()
    with process_in(zone, NAME, monkeypatch), ThreadPoolExecutor(2) as pool:
        first, second = pool.map(Hudi, (release, release))
    try:
        with process_in(zone, "UTC" if told else NAME, monkeypatch):
            table, control, alone = (Written(folder / name, version, second) for name in ("t", "control", "alone"))
            yield Life(zone, pace, first, second, session, told, table, control, alone)
    finally:
        first.close()
        second.close()
        shutil.rmtree(zone.folder)


def lived(
    play: Callable[[Life], None], path: Path, *args: Any, by: int, told: bool, before: int = 0, timed: bool = False
) -> dict[str, Wrong]:
    """Play a case in which the clock changes by `by` seconds, `before` seconds later than is needed for the start.

    `timed`: the change itself takes longer where the machine is slow. Returns what Hudi alone answered wrongly, by
    step.
    """
    for pace in PACES:
        folder = path.parent / f"pace-{pace}"
        at = int(time.time()) + pace * (LEAD_S + before)
        zone = ChangedZone(folder / "zone", at, by * pace if timed else by)
        try:
            with begun(zone, pace, told, *args) as life:
                play(life)
                return life.wrong_alone
        except TooSlow as slow:
            why = str(slow)
    pytest.skip(f"this machine is too slow: {why}")
