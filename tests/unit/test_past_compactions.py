"""What compactions cost, from the timeline alone; and what monitoring asks of one reading."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hudi_assets.engine import PastCompaction, Plan
from tests.races.player import timeline_of
from tests.tables.life import Life
from tests.tables.local_session import LocalSession


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_is_told_with_what_it_read_and_wrote(version: int, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session, version)
    life.upsert()
    sizes = {path.name: path.stat().st_size for path in life.path.glob("p=*/.*.log.*")}
    first = life.compact()
    (told,) = life.table.past_compactions()
    written = sum(path.stat().st_size for path in life.path.glob("p=*/*.parquet"))
    assert told == PastCompaction(
        instant=first,
        threshold=1500,
        completed_ms=told.completed_ms,
        duration_ms=told.duration_ms,
        file_groups=2,
        log_files=2,
        log_bytes=sum(sizes.values()),
        base_bytes=0,
        bytes_written=written,
        rows=4,
    )
    assert told.bytes_read == sum(sizes.values())
    assert abs(told.completed_ms - life.table.state().read_at_ms) < 60_000
    assert told.duration_ms is not None
    assert 0 <= told.duration_ms < 60_000


def test_base_files_that_were_read_count_while_their_size_is_known(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    life.compact()
    life.upsert()
    before = {path: path.stat().st_size for path in life.path.glob("p=*/*.parquet")}
    life.compact()
    last, first = life.table.past_compactions()
    assert last.base_bytes == sum(before.values())
    for path in before:  # as a clean does: the commit that wrote them still tells
        path.unlink()
    assert life.table.past_compactions()[0].base_bytes == sum(before.values())
    timeline = timeline_of(life.path)
    for path in timeline.glob(f"{first.instant}.*"):  # as an archiver does
        path.unlink()
    assert life.table.past_compactions()[0].base_bytes is None


def test_a_copy_without_its_files_times_has_no_duration(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(2)
    (told,) = life.table.past_compactions()
    (begun,) = timeline_of(life.path).glob(f"{told.instant}.compaction.inflight")
    later = told.completed_ms / 1000 + 5
    os.utime(begun, (later, later))
    assert life.table.past_compactions()[0].duration_ms is None


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_is_pending_since_its_file_was_written(version: int, session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session, version)
    life.upsert()
    assert life.table.metrics().pending_since_ms is None
    plan = life.table.plan_compaction(threshold=1500)
    assert isinstance(plan, Plan)
    (file,) = timeline_of(life.path).glob(f"{plan.instant}.compaction.requested")
    seen = life.table.metrics()
    since = seen.read_at_ms // 1000 * 1000 - 3_600_000
    os.utime(file, (since / 1000, since / 1000))
    again = life.table.metrics()
    assert again.pending_since_ms == since
    assert again.stats.pending == (plan.instant,)
    assert again.last_compaction is None


def test_bytes_of_log_files_are_those_of_the_files(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()
    logs = {path: path.stat().st_size for path in life.path.glob("p=*/.*.log.*")}
    instant = life.compact()
    commit = timeline_of(life.path) / f"{instant}.commit"
    told, wrong = commit.read_text(), '"totalLogSizeCompacted":1'
    commit.write_text(re.sub(r'"totalLogSizeCompacted":\d+', wrong, told))  # as Hudi 1.2.0 states something else
    assert life.table.past_compactions()[0].log_bytes == sum(logs.values())
    for path in logs:
        path.unlink()
    assert life.table.past_compactions()[0].log_bytes == sum(logs.values())  # from the commit that wrote them
