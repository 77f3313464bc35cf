"""Clean, savepoint and archive on whole tables, in this process."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.errors import CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.model import Action, Instant, NothingToDo, Plan, State
from hudi_assets.engine.model.cleans import CleaningPolicy, CleanPlan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.files.cleaned import read_cleans, read_savepoints
from hudi_assets.engine.timeline.archive.v6 import archive_files, decode_archive
from hudi_assets.engine.timeline.archived_facts import MEMORY
from hudi_assets.engine.timeline.checked_json import seal, unseal
from hudi_assets.engine.timeline.clean_metadata import (
    CleanMetadata,
    Savepoint,
    decode_clean,
    decode_clean_plan,
    decode_savepoint,
    encode_clean,
    encode_clean_plan,
    encode_savepoint,
)
from hudi_assets.engine.transaction.clean import CleanResult
from tests.crash.tables import carried_by
from tests.tables.life import SCHEMA, Life
from tests.tables.local_session import LocalSession


@pytest.fixture
def life(tmp_path: Path, session: LocalSession) -> Life:
    return Life(tmp_path / "t", session)


# -------------------------------------------------------------------------------------------------- clean


def test_a_dry_run_changes_nothing_and_says_what_would_go(life: Life) -> None:
    life.turns(5)
    files, timeline = life.files(), life.timeline()
    would = life.table.clean(retained=2, dry_run=True)
    assert isinstance(would, CleanResult)
    assert would.instant is None
    assert (life.files(), life.timeline()) == (files, timeline)
    done = life.table.clean(retained=2)
    assert isinstance(done, CleanResult)
    assert done.deleted == would.deleted
    assert life.files() == files - set(done.deleted)
    assert life.timeline() - timeline == {f"{done.instant}.clean{state}" for state in ("", ".requested", ".inflight")}


def test_the_answer_stays_and_older_instants_are_refused(life: Life) -> None:
    life.turns(6)
    before = life.snapshot()
    done = life.table.clean(retained=3)
    assert isinstance(done, CleanResult)
    assert done.earliest_retained is not None
    assert life.snapshot() == before
    life.table.time_travel(life.session, done.earliest_retained)
    with pytest.raises(InvalidInput, match="clean"):
        life.table.time_travel(life.session, life.instants()[0])


def test_nothing_to_clean_says_why(life: Life) -> None:
    assert life.table.clean() == NothingToDo("nothing was committed yet")
    life.upsert()
    assert life.table.clean() == NothingToDo("every commit is retained (KEEP_LATEST_COMMITS, 10)")
    none = life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS")
    assert isinstance(none, NothingToDo)
    assert "no file slice" in none.reason


def test_the_newest_slice_stays_whatever_the_settings(life: Life) -> None:
    life.turns(3)
    latest = {log.path for s in life.table.state().view.latest for log in s.log_files}
    latest |= {base.path for base in life.table.state().view.base_files}
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert latest == life.files()
    with pytest.raises(InvalidInput):
        life.table.clean(retained=0)


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_symlink_to_what_goes_becomes_the_file(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch, hard_links: bool
) -> None:
    life = Life(tmp_path / "t", session, 6, **carried_by("symlink"))
    life.turns(5, carried=2)
    before = life.snapshot()
    links = [f for f in life.path.glob("p=*/.*log*") if f.is_symlink()]
    assert links
    if not hard_links:

        def refuse(source: Path, target: Path) -> None:
            if target.parent.name == "tmp":
                raise PermissionError
            link(source, target)

        link = os.link
        monkeypatch.setattr(os, "link", refuse)
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert life.snapshot() == before
    kept = [f for f in links if f.exists()]
    assert kept
    assert not any(f.is_symlink() for f in life.path.glob("p=*/.*log*"))
    # One slice of each group is left, and it can be compacted and carried over again.
    assert {name.split("_")[-1][:17] for name in life.files() if name.endswith(".parquet")} == {life.instants()[-1]}
    life.turns(1, carried=2)
    rows = life.snapshot()
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert life.snapshot() == rows


def test_a_pending_plan_keeps_what_it_reads(life: Life) -> None:
    life.turns(3)
    life.upsert()
    plan = life.table.plan_compaction(threshold=life.number * 1000 - 1)
    assert isinstance(plan, Plan)
    life.upsert()
    before = life.snapshot()
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    life.table.clean(retained=1)
    assert life.snapshot() == before
    life.table.execute_compaction(life.session, plan.instant)
    assert life.snapshot() == before


def test_a_task_attempts_base_file_goes_with_its_slice(life: Life) -> None:
    life.turns(2, carried=0)
    [base] = [b for b in life.table.state().view.base_files if b.partition == "p=a"]
    stray = life.path / base.path.replace(base.write_token, "9-9-9")
    stray.write_bytes((life.path / base.path).read_bytes())
    life.turns(2, carried=0)
    before = life.snapshot()
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert not stray.exists()
    assert life.snapshot() == before


def _replace(life: Life, partition: str) -> str:
    """A completed insert-overwrite that empties a partition, as Hudi's timeline has it."""
    state = life.table.state()
    groups = [file_id for p, file_id in state.view.groups if p == partition]
    instant = life.table._table.publisher.new_instant(state.timeline)
    body = {
        "partitionToWriteStats": {},
        "compacted": False,
        "extraMetadata": {"schema": state.avro_schema},
        "operationType": "DELETE_PARTITION",
        "partitionToReplaceFileIds": {partition: groups},
    }
    folder = life.path / ".hoodie"
    (folder / f"{instant}.replacecommit.requested").write_bytes(b"")
    (folder / f"{instant}.replacecommit.inflight").write_bytes(b"")
    (folder / f"{instant}.replacecommit").write_text(json.dumps(body))
    return instant


def test_replaced_file_groups_go_when_their_replacement_is_old(tmp_path: Path, session: LocalSession) -> None:
    keep: dict[str, Any] = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.cleaner.commits.retained": "1",
    }
    life = Life(tmp_path / "t", session, **keep)
    life.turns(2)
    gone = {f for f in life.files() if f.startswith("p=b/")}
    replaced = _replace(life, "p=b")
    before = life.snapshot()
    assert len(before) == 2
    life.upsert(ids=range(0, 4, 2))
    for number in range(3):
        life.upsert(ids=range(0, 4, 2))
        # The replacecommit stays as long as a file is there that only it hides.
        result = life.table.archive()
        assert replaced in life.instants(), number
        assert isinstance(result, ArchiveResult | NothingToDo)
    cleaned = life.table.clean()
    assert isinstance(cleaned, CleanResult)
    assert set(cleaned.deleted) >= gone
    before = life.snapshot()
    assert isinstance(life.table.archive(), ArchiveResult)
    assert replaced not in life.instants()
    assert life.snapshot() == before


def test_another_engines_pending_clean(life: Life) -> None:
    """Left alone where that engine may be at work, finished where it is said not to be."""
    life.turns(5)
    would = life.table.clean(retained=1, dry_run=True)
    assert isinstance(would, CleanResult)
    by_partition: dict[str, tuple[str, ...]] = {}
    for path in would.deleted:
        by_partition[path.split("/")[0]] = (*by_partition.get(path.split("/")[0], ()), path)
    plan = CleanPlan(CleaningPolicy.KEEP_LATEST_COMMITS, None, life.instants()[-1], by_partition)
    data = encode_clean_plan(plan, [], {p: f"hdfs://elsewhere/t/{p}" for p in would.deleted})
    instant = life.table._table.publisher.new_instant(life.table.state().timeline)
    theirs = data.replace(b"hudi_assets.writer", b"somebody.elses.key")
    (life.path / f".hoodie/{instant}.clean.requested").write_bytes(theirs)
    properties = life.path / ".hoodie/hoodie.properties"
    stopped = properties.read_text()
    properties.write_text(stopped.replace("hudi_assets.writers=stopped", "hudi_assets.writers=locked"))
    assert life.table.clean(retained=1) == NothingToDo(f"clean {instant} is pending")
    with pytest.raises(InvalidInput, match="pending"):
        life.table.savepoint()
    properties.write_text(stopped)
    finished = life.table.clean(retained=1)
    assert isinstance(finished, CleanResult)
    assert finished.instant == instant
    assert finished.deleted == would.deleted


def test_a_pending_clean_never_takes_what_is_needed_now(life: Life) -> None:
    """The plan is old, or wrong: the newest slice stays."""
    life.turns(3)
    before, files = life.snapshot(), life.files()
    by_partition = {p: tuple(f for f in files if f.startswith(p)) for p in ("p=a", "p=b")}
    plan = CleanPlan(CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, None, "", by_partition)
    instant = life.table._table.publisher.new_instant(life.table.state().timeline)
    data = encode_clean_plan(plan, [], {path: path for path in files})
    (life.path / f".hoodie/{instant}.clean.requested").write_bytes(data)
    life.table.recover()
    assert life.snapshot() == before
    assert life.files() < files
    assert f"{instant}.clean" in life.timeline()


def test_unstated_writers_are_refused(life: Life) -> None:
    life.turns(2)
    properties = life.path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("hudi_assets.writers=stopped\n", ""))
    for action in (life.table.clean, life.table.savepoint, life.table.archive):
        with pytest.raises(InvalidInput, match="writ"):
            action()
    assert isinstance(life.table.clean(dry_run=True), CleanResult | NothingToDo)


# --------------------------------------------------------------------------------------------- savepoints


def test_a_savepoint_keeps_its_instant(life: Life) -> None:
    life.turns(2)
    at = life.table.savepoint(comment="before the migration", user="me")
    assert at == life.instants()[-1]
    expected = life.snapshot()
    [savepoint] = read_savepoints(life.table.state())
    assert (savepoint.comment, savepoint.user) == ("before the migration", "me")
    life.turns(5)
    life.table.clean(retained=1)
    assert life.table.savepoints() == (at,)
    assert set(savepoint.files) <= life.files()
    rows = life.table.time_travel(life.session, at).rows()
    assert sorted((r["id"], r["ts"], r["v"], r["p"]) for r in rows) == expected
    assert life.table.savepoint(at) == at
    life.table.delete_savepoint(at)
    assert life.table.savepoints() == ()
    life.table.clean(retained=1)
    assert not set(savepoint.files) & life.files()


def test_a_savepoint_beside_a_pending_plan_has_the_slice_below_too(life: Life) -> None:
    life.turns(2)
    life.upsert()
    plan = life.table.plan_compaction(threshold=life.number * 1000 - 1)
    assert isinstance(plan, Plan)
    life.upsert()
    life.table.savepoint()
    [savepoint] = read_savepoints(life.table.state())
    read = {path for op in plan.operations for path in (*op.log_files, op.base_file) if path}
    assert read <= set(savepoint.files)


def test_a_savepoint_of_what_is_not_there_is_refused(life: Life) -> None:
    with pytest.raises(InvalidInput, match="Nothing"):
        life.table.savepoint()
    life.turns(5)
    with pytest.raises(InvalidInput, match="completed"):
        life.table.savepoint("20200101000000000")
    with pytest.raises(InvalidInput, match="no savepoint"):
        life.table.delete_savepoint(life.instants()[-1])
    first = life.instants()[0]
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    with pytest.raises(InvalidInput, match="cleaned"):
        life.table.savepoint(first)
    assert life.table.savepoint(life.instants()[-1])


def test_a_commits_policy_clean_refuses_savepoints_before_what_it_retained(life: Life) -> None:
    life.turns(6)
    done = life.table.clean(retained=2)
    assert isinstance(done, CleanResult)
    with pytest.raises(InvalidInput, match="cleaned"):
        life.table.savepoint(life.instants()[1])
    assert life.table.savepoint(done.earliest_retained) == done.earliest_retained


# ------------------------------------------------------------------------------------------------ archive


KEEP: dict[str, Any] = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}


def _facts(life: Life) -> tuple[object, ...]:
    freshness = life.table.freshness()
    stated = (freshness.freshness, freshness.threshold, freshness.instant, freshness.min_event_time)
    bars = [(b.name, b.min_event_time, b.max_event_time) for b in life.table.log_bars()]
    return (stated, bars, life.table.committed_batches(), life.snapshot())


def test_what_commits_stated_outlives_them(tmp_path: Path, session: LocalSession) -> None:
    """The threshold's compaction and the delta commits of remaining log files are archived, and forgotten nowhere."""
    life = Life(tmp_path / "t", session, **KEEP)
    life.upsert(batch="one")
    life.upsert(batch="two")
    life.compact(1)
    for _ in range(4):
        life.upsert()
    before = _facts(life)
    done = life.table.archive()
    assert isinstance(done, ArchiveResult)
    (tmp_path / "t/.hoodie/.aux/hudi_assets/event_times.json").unlink(missing_ok=True)
    assert _facts(life) == before
    assert len(life.instants()) == 2
    # A batch that was written before is not written again.
    assert life.upsert(batch="one") in done.instants


def test_what_hudis_archiver_removes_was_remembered_at_a_look(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert(batch="one")
    life.upsert()
    life.compact(1)
    for _ in range(4):
        life.upsert()
    before = _facts(life)
    for instant in life.instants()[:-2]:
        for file in (life.path / ".hoodie").glob(f"{instant}.*"):
            file.unlink()
    assert len(life.instants()) == 2
    assert _facts(life) == before


def test_a_row_that_was_combined_away_stays_in_its_log_files_range(tmp_path: Path, session: LocalSession) -> None:
    """Only the commit says that it was ingested: a scan of the log file would not find it."""
    life = Life(tmp_path / "t", session, **KEEP)
    life.upsert()
    rows = [{"id": 9, "ts": ts, "v": 0, "p": "a"} for ts in (20_000, 30_000)]
    life.table.upsert(session, session.rows(rows, SCHEMA), clock_time=datetime.fromtimestamp(60, UTC))
    life.number = 60
    for _ in range(4):
        life.upsert()
    before = [(b.name, b.min_event_time, b.max_event_time) for b in life.table.log_bars()]
    assert any(low == 20_000 for _, low, _ in before)
    assert isinstance(life.table.archive(), ArchiveResult)
    assert [(b.name, b.min_event_time, b.max_event_time) for b in life.table.log_bars()] == before


def test_memory_of_what_was_rolled_back_is_not_believed(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(4)
    life.table.freshness()
    memory = life.path / MEMORY
    first, _, rest = memory.read_bytes().partition(b"\n")
    head = unseal(first)
    body = unseal(rest)
    [column] = body["columns"]
    body["columns"][column]["threshold"] = [life.instants()[-1][:-1] + "z", 10**15]
    head["thresholds"][column] = body["columns"][column]["threshold"]
    memory.write_bytes(seal(head) + b"\n" + seal(body))
    threshold = life.table.freshness().threshold
    assert threshold is not None
    assert threshold < 10**15


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"columns": {"ts:ms": 3}, "batches": {}}', '{"columns": 1}'])
def test_a_damaged_memory_costs_a_scan_only(life: Life, damage: str) -> None:
    life.turns(4)
    before = _facts(life)
    (life.path / MEMORY).write_text(damage)
    assert _facts(life) == before


def test_a_memory_that_says_it_is_whole_and_is_damaged_is_made_anew(life: Life) -> None:
    """Its head still names the commits; its rest is needed once they are archived."""
    life.turns(4)
    before = _facts(life)
    memory = life.path / MEMORY
    whole = memory.read_bytes()
    head, _, rest = whole.partition(b"\n")
    memory.write_bytes(head + b"\n" + rest.replace(b"columns", b"colomns"))
    assert _facts(life) == before
    assert memory.read_bytes() == whole


def test_a_memory_is_written_when_the_commits_change_and_only_then(life: Life) -> None:
    life.turns(4)
    life.table.freshness()
    memory = life.path / MEMORY
    written = memory.stat().st_mtime_ns
    life.table.freshness()
    assert memory.stat().st_mtime_ns == written
    life.turns(1)
    life.table.freshness()
    assert memory.stat().st_mtime_ns != written


def test_a_memory_without_a_head_is_read(tmp_path: Path, session: LocalSession) -> None:
    """As it was kept before there was one."""
    life = Life(tmp_path / "t", session, **KEEP)
    life.turns(3)
    for _ in range(4):
        life.upsert()
    before = _facts(life)
    memory = life.path / MEMORY
    memory.write_bytes(memory.read_bytes().partition(b"\n")[2])
    for instant in life.instants()[:-2]:
        for file in (life.path / ".hoodie").glob(f"{instant}.*"):
            file.unlink()
    assert _facts(life) == before


@pytest.mark.parametrize("folder", ["archived", "history"])
def test_the_archive_holds_every_file_of_the_instants(tmp_path: Path, session: LocalSession, folder: str) -> None:
    """In the folder that the settings name, as Apache Hudi 0.15.0 and 1.2.0 have it."""
    life = Life(tmp_path / "t", session, 6, **KEEP, **{"hoodie.archivelog.folder": folder})
    life.turns(3)
    life.table.clean()
    before = life.timeline()
    result = life.table.archive()
    assert isinstance(result, ArchiveResult)
    gone = before - life.timeline()
    storage = LocalStorage(str(life.path))
    [path] = archive_files(storage, folder)
    assert path == result.file
    assert {p.name for p in (life.path / ".hoodie").glob("*/.commits_.archive*")} == {Path(path).name}
    entries = list(decode_archive(storage.read(path), path))
    names = set()
    for entry in entries:
        state = "" if entry["actionState"] == "COMPLETED" else f".{entry['actionState'].lower()}"
        names.add(f"{entry['commitTime']}.{entry['actionType']}{state}")
    assert names == gone
    done = [e for e in entries if e["actionState"] == "COMPLETED"]
    assert all(e["hoodieCommitMetadata"]["partitionToWriteStats"] for e in done)
    plans = [e for e in entries if e["actionType"] == "compaction" and e["actionState"] == "REQUESTED"]
    assert all(e["hoodieCompactionPlan"]["operations"] for e in plans)
    assert plans


@pytest.mark.parametrize("token", ["0-0-0", "9-9-9"])
def test_a_task_attempts_base_file_goes_before_its_commit(tmp_path: Path, session: LocalSession, token: str) -> None:
    """Only the commit says which of two base files counts."""
    life = Life(tmp_path / "t", session, **KEEP)
    life.turns(2, carried=0)
    compaction = life.instants()[-1]
    [base] = [b for b in life.table.state().view.base_files if b.partition == "p=a"]
    before = life.snapshot()
    stray = life.path / base.path.replace(base.write_token, token)
    older = min(life.path.glob(f"p=a/*_{life.instants()[1]}.parquet"))
    stray.write_bytes(older.read_bytes())
    assert life.snapshot() == before
    for _ in range(4):
        life.upsert(ids=range(100, 104))
    before = life.snapshot()
    done = life.table.archive()
    assert isinstance(done, ArchiveResult)
    assert compaction in done.instants
    assert not stray.exists()
    assert (life.path / base.path).exists()
    assert life.snapshot() == before


@pytest.mark.parametrize("folder", ["old/ones", "..", "metadata", ".aux"])
def test_an_archive_folder_that_is_none_of_its_own_is_refused(
    tmp_path: Path, session: LocalSession, folder: str
) -> None:
    life = Life(tmp_path / "t", session, 6, **{"hoodie.archivelog.folder": folder})
    with pytest.raises(UnsupportedTable, match="archivelog"):
        life.table.archive()


def test_a_savepoint_holds_the_archive_back(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, **KEEP)
    life.turns(1)
    at = life.table.savepoint()
    life.turns(4)
    held = life.table.archive()
    assert isinstance(held, NothingToDo)
    assert at in held.reason
    life.table.delete_savepoint(at)
    assert isinstance(life.table.archive(), ArchiveResult)


def test_files_on_no_timeline_hold_the_archive_back(tmp_path: Path, session: LocalSession) -> None:
    """A base file of an attempt that nobody knows of would count once the start has passed its instant."""
    life = Life(tmp_path / "t", session, **KEEP)
    life.turns(3)
    [base] = [b for b in life.table.state().view.base_files if b.partition == "p=a"]
    unknown = life.instants()[1][:-3] + "999"
    stray = life.path / base.path.replace(base.instant, unknown)
    stray.write_bytes((life.path / base.path).read_bytes())
    before = life.snapshot()
    for _ in range(3):
        life.table.archive()
        assert life.snapshot() == before
        assert not life.table.state().timeline.is_committed(unknown)


# -------------------------------------------------------------------------------------------------- bytes


def test_a_clean_plan_survives_the_way_through_its_file() -> None:
    earliest = Instant("20260101000000000", Action.DELTA_COMMIT, State.COMPLETED, "20260101000000000.deltacommit")
    plan = CleanPlan(CleaningPolicy.KEEP_LATEST_COMMITS, earliest, "20260102000000000", {"p=a": ("p=a/x", "p=a/.y")})
    data = encode_clean_plan(plan, ["20260101000000000"], {p: f"file:/moved/{p}" for p in plan.paths})
    found = decode_clean_plan("20260103000000000", data, "t")
    assert found.plan == plan
    assert found.is_ours
    assert found.extra["savepointed_timestamps"] == "20260101000000000"


def test_a_clean_and_a_savepoint_survive_the_way_through_their_files() -> None:
    clean = CleanMetadata("20260103000000000", "KEEP_LATEST_COMMITS", "1", "2", ("p=a/x", "y"), 5, {"k": "v"})
    assert decode_clean(clean.instant, encode_clean(clean), "t") == clean
    savepoint = Savepoint("20260101000000000", ("p=a/x", "y"), "me", "why", 7)
    assert decode_savepoint(savepoint.instant, encode_savepoint(savepoint), "t") == savepoint


@pytest.mark.parametrize(("partition", "name"), [("../out", "x"), ("/etc", "x"), ("p=a", ".."), ("p=a/../..", "x")])
def test_paths_that_lead_out_of_the_table_are_refused(partition: str, name: str) -> None:
    path = f"{partition}/{name}"
    plan = CleanPlan(CleaningPolicy.KEEP_LATEST_COMMITS, None, "", {partition: (path,)})
    with pytest.raises(CorruptTable):
        decode_clean_plan("20260103000000000", encode_clean_plan(plan, [], {path: path}), "t")


def test_cut_timeline_files_are_refused_by_name(life: Life) -> None:
    life.turns(4)
    done = life.table.clean(retained=1)
    assert isinstance(done, CleanResult)
    file = life.path / f".hoodie/{done.instant}.clean"
    file.write_bytes(file.read_bytes()[:-20])
    os.utime(file, (0, 0))  # nobody is still writing it
    with pytest.raises(CorruptTable, match="clean"):
        read_cleans(life.table.state())
