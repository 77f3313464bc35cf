"""Writers whose clocks differ, or that share no lock, grow Hudi's small base files: rows are in no view, and we say so.

Two JVMs of one release in two zones stand for the two clocks: with a timeline in LOCAL time each takes its instants
from its own (`test_time_zones`). The index is SIMPLE, so inserts are merged into base files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import CleanResult, Finding, HudiTable
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.table.files.hidden import Hidden, hidden_files
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.timeline.instants import instant_ms
from scripts.hudi_client import Hudi
from tests.interop.test_time_zones import MINUTE, START, hudi_in
from tests.interop.test_time_zones import OPTIONS as IN_BUCKETS
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

AHEAD, BEHIND = "UTC", "America/Los_Angeles"
OPTIONS = {key: value for key, value in IN_BUCKETS.items() if "bucket" not in key} | {
    "hoodie.index.type": "SIMPLE",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.simple.index.parallelism": "2",
}
SETTINGS = {
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.writers": "stopped",
}
KINDS = [("0.15.0", "6"), ("1.2.0", "6"), ("1.2.0", "8"), ("1.2.0", "9")]


@dataclass
class Written:
    """One table and its two writers. `rows`: what the commits have put there, whether it is shown or not."""

    path: Path
    version: str
    ahead: Hudi
    behind: Hudi
    rows: dict[str, int] = field(default_factory=dict)

    def write(self, hudi: Hudi, number: int) -> str:
        """Six keys of its own; the new delta commit's instant."""
        before = self.delta_commits()
        keys = [f"k{number}-{n}" for n in range(6)]
        rows = pa.table({"id": keys, "ts": [START + number * MINUTE] * 6, "v": [number] * 6})
        hudi.write(self.path, rows, {**OPTIONS, "hoodie.write.table.version": self.version})
        self.rows |= dict.fromkeys(keys, number)
        (new,) = self.delta_commits() - before
        return new

    def delta_commits(self) -> set[str]:
        if not (self.path / ".hoodie").exists():
            return set()
        timeline = self.ahead.timeline(self.path)
        return {instant for instant, action, state in timeline if (action, state) == ("deltacommit", "COMPLETED")}

    def shown(self) -> set[int]:
        """The writes whose rows both writers' snapshots and read-optimized views have, all alike."""
        answers = []
        for hudi in (self.ahead, self.behind):
            for view in ("snapshot", "read_optimized"):
                table = hudi.read(self.path, view)
                answers.append(dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True)))
        assert all(answer == answers[0] for answer in answers)
        assert answers[0].items() <= self.rows.items()
        return set(answers[0].values())

    def ours(self, **settings: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**SETTINGS, **settings})

    def acting(self, **settings: str) -> HudiTable:
        """This process is in the zone of the one that is ahead."""
        return self.ours(**{"hudi_assets.timeline.zone": AHEAD}, **settings)

    def tells_no_zone(self, instant: str) -> None:
        """Clocks that differ by seconds do not look like a zone, for which nothing would be changed here."""
        files = [*self.path.glob(f".hoodie/**/{instant}*")]
        for file in files:
            os.utime(file, ns=(files[0].stat().st_mtime_ns,) * 2)

    def copy(self, name: str) -> Written:
        path = self.path.with_name(name)
        shutil.copytree(self.path, path)
        return replace(self, path=path, rows=dict(self.rows))

    def hidden(self, **settings: str) -> tuple[Hidden, ...]:
        return hidden_files(self.ours(**settings).state())

    def told(self, **settings: str) -> list[Finding]:
        return [one for one in self.ours(**settings).validate() if one.kind == "hidden_rows"]


@pytest.fixture(params=KINDS, ids=lambda kind: "-v".join(kind))
def written(request: pytest.FixtureRequest, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    release, version = request.param
    with (
        hudi_in(release, AHEAD, monkeypatch, by_java=True) as ahead,
        hudi_in(release, BEHIND, monkeypatch, by_java=True) as behind,
    ):
        yield Written(path, version, ahead, behind)


def test_what_grew_a_later_base_file_is_noticed(written: Written) -> None:
    """Red without the rule: Hudi shows nothing of a commit that succeeded, and the freshness passes it."""
    first = written.write(written.ahead, 0)
    second = written.write(written.ahead, 1)
    assert written.shown() == {0, 1}
    assert written.hidden() == ()

    lost = written.write(written.behind, 2)
    assert lost < first < second
    (one,) = written.hidden()
    assert (one.delta_commit.timestamp, one.behind.timestamp, one.is_base, one.gone) == (lost, second, True, False)
    assert one.holds_behind  # HoodieMergeHandle states it
    assert written.shown() == {0, 1}
    (finding,) = written.told()
    assert one.path in finding.what
    promise = written.ours().freshness(data_latency="1s")
    assert [(rows.delta_commit, rows.behind, rows.files) for rows in promise.hidden] == [(lost, second, 1)]
    # Its commit states no event times. With writers in two zones nobody may know when it began either.
    assert promise.freshness in (None, instant_ms(lost, "LOCAL") - 1_000 - 1)

    written.write(written.ahead, 3)  # made of the second's, which stays the newest for it
    assert written.shown() == {0, 1, 3}
    assert [one.delta_commit.timestamp for one in written.hidden()] == [lost]

    written.write(written.ahead, 2)  # once more
    assert written.shown() == {0, 1, 2, 3}
    again = {WRITTEN_AGAIN: lost}
    assert written.hidden(**again) == ()
    assert written.told(**again) == []
    assert written.ours(**again).freshness(data_latency="1s").hidden == ()


def test_nothing_of_ours_makes_it_worse(written: Written, session: LocalSession) -> None:
    """What would bring rows of others back is refused; our compaction and clean change no answer and keep the file."""
    first = written.write(written.ahead, 0)
    written.acting().savepoint()
    second = written.write(written.ahead, 1)
    lost = written.write(written.behind, 2)
    written.tells_no_zone(lost)
    written.write(written.ahead, 3)
    assert written.shown() == {0, 1, 3}
    (one,) = written.hidden()
    with pytest.raises(InvalidInput, match=f"{lost} is earlier and made a base file of what it wrote"):
        written.acting().rollback(second)
    with pytest.raises(InvalidInput, match=f"{lost} is not later, and made a base file of what {second} wrote"):
        written.acting().restore(first)
    written.acting().delete_savepoint(first)
    for number in (1, 3):
        written.write(written.ahead, number)  # an update: a log file
        plan = written.acting().plan_compaction(threshold=START + 9 * MINUTE)
        assert isinstance(plan, Plan), plan
        written.acting().execute_compaction(session, plan.instant)
        assert written.shown() == {0, 1, 3}
    cleaned = written.acting(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert isinstance(cleaned, CleanResult), cleaned
    assert (written.path / one.path).exists()
    assert not list(written.path.glob(f"*_{first}.parquet"))
    assert written.shown() == {0, 1, 3}
    assert [(again.path, again.behind.timestamp) for again in written.hidden()] == [(one.path, second)]
    assert written.ours().freshness(data_latency="1s").hidden
    written.ahead.clean(written.path)
    assert written.shown() == {0, 1, 3}
    assert [again.path for again in written.hidden()] == [one.path]


def test_two_writers_of_one_look(written: Written) -> None:
    """Without a lock neither sees the other. Each writes a copy here; the earlier one's files then come beside."""
    first = written.write(written.ahead, 0)
    other = written.copy("other")
    lost = other.write(other.ahead, 1)
    assert (other.shown(), other.hidden()) == ({0, 1}, ())
    second = written.write(written.ahead, 2)
    assert first < lost < second
    for file in (*other.path.glob(f"*_{lost}.parquet"), *other.path.glob(f".hoodie/**/{lost}*")):
        shutil.copy(file, written.path / file.relative_to(other.path))
    written.rows |= other.rows
    assert written.shown() == {0, 2}
    (one,) = written.hidden()
    assert (one.delta_commit.timestamp, one.behind.timestamp, one.is_base) == (lost, second, True)
    assert (one.stat.prev_commit, one.holds_behind) == (first, False)
    (finding,) = written.told()
    assert f"{second} is later, and made its own of an older one" in finding.what

    third = written.copy("third")
    third.acting().rollback(second)
    assert (third.shown(), third.hidden()) == ({0, 1}, ())

    written.write(written.ahead, 0)
    written.ahead.compaction(written.path, "run")
    written.write(written.ahead, 3)
    assert written.shown() == {0, 2, 3}
    assert [again.delta_commit.timestamp for again in written.hidden()] == [lost]
    written.write(written.ahead, 1)  # once more
    assert written.shown() == {0, 1, 2, 3}
    assert written.told(**{WRITTEN_AGAIN: lost}) == []
    assert written.ours(**{WRITTEN_AGAIN: lost}).freshness(data_latency="1s").hidden == ()


def test_writers_in_the_order_of_their_instants_hide_nothing(written: Written) -> None:
    """The one that is behind begins: its instants stay below. An update, and Hudi's compaction and clean on top."""
    for number in range(2):
        written.write(written.behind, number)
        assert written.hidden() == ()
    for number in (2, 1, 3):
        written.write(written.ahead, number)
        assert written.shown() == set(written.rows.values())
        assert written.hidden() == ()
    written.ahead.compaction(written.path, "run")
    assert any(i.action is Action.COMMIT for i in written.ours().state().timeline.instants)
    written.write(written.ahead, 4)
    written.ahead.clean(written.path)
    assert written.shown() == {0, 1, 2, 3, 4}
    assert written.hidden() == ()
    assert written.told() == []
