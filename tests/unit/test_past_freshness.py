"""The freshness after each write, told back from the timeline, is what the engine said at that time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from tests.races.player import timeline_of
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


class Noted:
    """A life of which the freshness is noted after each write."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.after: list[tuple[str, int | None, int]] = []

    def note(self, instant: str) -> None:
        stats = self.life.table.stats()
        self.after.append((instant, stats.freshness.freshness, stats.remaining_log_files))

    def live(self) -> None:
        for turn in range(6):
            self.note(self.life.upsert("a" if turn == 3 else "", later=-2500 if turn == 4 else 0))
            if 1 < turn < 5:
                self.note(self.life.compact(self.life.number - 1))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_it_is_what_the_engine_said_then(version: int, session: LocalSession, tmp_path: Path) -> None:
    noted = Noted(Life(tmp_path / "t", session, version))
    noted.live()
    told = noted.life.table.past_freshness()
    assert [(one.instant, one.after, one.remaining_log_files) for one in told] == noted.after
    assert [one.is_compaction for one in told].count(True) == 3
    fell = [(one.before, one.after) for one in told if one.after is not None and one.after < (one.before or 0)]
    assert (3999, 2499) in fell  # the late rows of one upsert


def test_before_a_write_the_clock_alone_has_moved_on(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    life.compact()
    life.upsert()
    first, compacted, second = life.table.past_freshness()
    assert (first.before, first.after) == (3000, 999)  # 1 s of latency below the clock; the first rows' event time
    assert (compacted.before, compacted.after) == (999, 3000)
    assert (second.before, second.after) == (4000, 1999)
    assert (first.at_ms, compacted.at_ms, second.at_ms) == (4000, 4000, 5000)
    assert second.remaining_bytes == life.table.stats().remaining_bytes


def test_what_was_archived_leaves_earlier_times_unknown(session: LocalSession, tmp_path: Path) -> None:
    noted = Noted(Life(tmp_path / "t", session))
    noted.live()
    timeline = timeline_of(noted.life.path)
    for instant, _, _ in noted.after[:3]:
        for path in timeline.glob(f"{instant}*"):
            path.unlink()
    told = noted.life.table.past_freshness()
    known = [(one.instant, one.after, one.remaining_log_files) for one in told]
    # The compaction that followed them comes before the first commit that states the clock.
    assert known == noted.after[4:]


def test_an_empty_table_has_no_past(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session)
    assert life.table.past_freshness() == ()
    assert life.table.lateness() == ()


def test_lateness_is_told_with_its_weight(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    life.upsert(later=-1500)
    assert sorted(life.table.lateness()) == [(2999, 2), (3000, 2), (4499, 2), (4500, 2)]
    assert HudiTable.open(str(life.path)).lateness() == life.table.lateness()


def test_where_a_merged_log_file_states_no_event_times_nothing_is_known(session: LocalSession, tmp_path: Path) -> None:
    noted = Noted(Life(tmp_path / "t", session))
    noted.live()
    for path in timeline_of(noted.life.path).glob("*.deltacommit"):  # as Apache Hudi's commits are
        written = path.stat()
        path.write_text(path.read_text().replace('"hudi_assets.event.time":', '"nothing":'))
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    told = [one.after for one in noted.life.table.past_freshness()]
    said = [after for _, after, _ in noted.after]
    assert told[-1] == said[-1]  # log files that are there say it themselves
    assert None in told
    assert all(then in (None, after) for then, after in zip(told, said, strict=True))
