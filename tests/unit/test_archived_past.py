"""Time travel to before the active timeline: the archive's plans say which slice came after which."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.model import Plan
from hudi_assets.engine.timeline.compaction_plan import archived_plan
from hudi_assets.engine.timeline.instants import WRITES
from tests.tables.life import SCHEMA, Life
from tests.tables.local_session import LocalSession
from tests.unit.test_housekeeping_v2 import crossing

FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
Rows = list[tuple[object, ...]]


@pytest.fixture(params=[6, pytest.param(8, marks=pytest.mark.slow), 9])
def life(request: pytest.FixtureRequest, tmp_path: Path, session: LocalSession) -> Life:
    return Life(tmp_path / "t", session, request.param, **FEW)


def archived(life: Life, turns: int = 5) -> dict[str, Rows]:
    """Upserts and compactions that are archived and of which nothing was cleaned; the rows as of each."""
    seen = {}
    for _ in range(turns):
        life.upsert()
        seen[life.instants()[-1]] = life.snapshot()
        if life.number > 1:
            life.compact(life.number - 1)
    assert isinstance(life.table.archive(), ArchiveResult)
    return seen


def as_of(life: Life, instant: str) -> Rows | None:
    """None where it is refused."""
    try:
        rows = life.table.time_travel(life.session, instant).rows()
    except (InvalidInput, CorruptTable):
        return None
    return sorted((r["id"], r["ts"], r["v"], r["p"]) for r in rows)


def bases(life: Life, partition: str) -> list[Path]:
    """The base files of a partition's group, oldest first."""
    return sorted(life.path.glob(f"p={partition}/*.parquet"), key=lambda p: p.stem.rsplit("_", 1)[-1])


def test_what_was_archived_and_not_cleaned_is_answered(life: Life) -> None:
    seen = archived(life)
    assert sum(instant not in life.instants() for instant in seen) >= 3
    assert {instant: as_of(life, instant) for instant in seen} == seen


@pytest.mark.slow
def test_a_slice_that_is_gone_is_still_missed(life: Life) -> None:
    """Whatever the archive says of the slices that are left, it names the one that is not."""
    seen = archived(life, turns=6)
    gone = bases(life, "a")[1]
    gone.unlink()
    found = {instant: as_of(life, instant) for instant in seen}
    assert None in found.values()
    assert all(rows is None or rows == seen[instant] for instant, rows in found.items())


@pytest.mark.slow
def test_a_log_file_that_is_gone_is_missed_though_its_commit_is_archived(life: Life) -> None:
    seen, refused = archived(life), 0
    logs = sorted(life.path.glob("p=a/.*.log.*"))
    for log in logs:
        hidden = log.rename(life.path / "hidden")
        found = {instant: as_of(life, instant) for instant in seen}
        hidden.rename(log)
        assert all(rows is None or rows == seen[instant] for instant, rows in found.items()), log
        refused += None in found.values()
    assert refused >= len(logs) - 2


def test_a_log_file_requested_before_its_slice_is_missed_there_too(tmp_path: Path, session: LocalSession) -> None:
    """As of instants before the slice in which it is, and from its own on: of two writers, as `crossing` makes it."""
    life = Life(tmp_path / "t", session, 9, **FEW)
    crossing(life)
    write = life.instants()[-2]  # the last one is the compaction
    then = life.snapshot()
    life.number = 2_000  # so that the first compaction takes that write too
    for _ in range(6):
        life.upsert("b")
        life.compact(life.number)
    assert isinstance(life.table.archive(), ArchiveResult)
    assert write not in life.instants()
    assert as_of(life, write) == then
    [log] = life.path.glob(f"p=a/.*_{write}.log.*")
    log.unlink()
    assert as_of(life, write) is None


def test_an_archive_that_cannot_be_read_proves_nothing(life: Life) -> None:
    seen = archived(life)
    for folder in ("archived", "timeline/history"):
        for file in (life.path / ".hoodie" / folder).glob("*"):
            if file.suffix == ".parquet" or "archive." in file.name:
                file.write_bytes(b"no archive")
    found = {instant: as_of(life, instant) for instant in seen}
    assert None in found.values()
    assert all(rows is None or rows == seen[instant] for instant, rows in found.items())


def test_a_plan_without_what_ours_add_is_one_too() -> None:
    """As Hudi 0.15.0 archives it: by its own schema."""
    operation = {"baseInstantTime": "1", "deltaFilePaths": [".g_1.log.1_0-0-0"], "fileId": "g", "partitionPath": "p"}
    found = archived_plan("2", {"operations": [operation], "version": 2}, "t")
    assert isinstance(found, Plan)
    assert found.operations[0].log_files == ("p/.g_1.log.1_0-0-0",)


def test_archiving_changes_no_range(life: Life) -> None:
    """Not even one that ends while a bulk insert, archived since, was at work."""
    for _ in range(3):
        load(life)
        life.upsert()
        life.compact(life.number)
    moments = sorted(
        {
            moment
            for i in life.table.state().timeline.completed(*WRITES)
            for moment in (i.timestamp, i.completion or i.timestamp)
        }
    )
    pairs = list(combinations_with_replacement(moments, 2))
    before = {pair: between(life, *pair) for pair in pairs}
    assert isinstance(life.table.archive(), ArchiveResult)
    answers = {pair: between(life, *pair) for pair in pairs}
    assert {pair: rows for pair, rows in answers.items() if rows is not None and rows != before[pair]} == {}
    assert any(answers.values())


def load(life: Life) -> None:
    """A bulk insert into a partition of its own."""
    number = life.number
    row = {"id": 100 + number, "ts": number * 1000, "v": number, "p": f"load{number}"}
    life.table.bulk_insert(
        life.session, life.session.rows([row], SCHEMA), clock_time=datetime.fromtimestamp(number, UTC)
    )


def between(life: Life, begin: str, end: str) -> Rows | None:
    """None where it is refused."""
    try:
        rows = life.table.incremental(life.session, begin, end).rows()
    except (InvalidInput, CorruptTable):
        return None
    return sorted((r["id"], r["ts"], r["v"], r["p"]) for r in rows)
