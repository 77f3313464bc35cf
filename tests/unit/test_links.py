"""Carried-over log files: where they lead, what the commit says of it, and what a link is whose target is gone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.dagster.checks import find_unresolved
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.model import CarryOver, NoPlan, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.carried_over import decode_carried_over, encode_carried_over
from hudi_assets.engine.transaction.clean import CleanResult
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

ARCHIVES = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
SYMLINKS = {"hudi_assets.carry.over": "symlink", "hudi_assets.table.services": "ours"}
MODES = pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])


def a_life(path: Path, session: LocalSession, mode: str) -> Life:
    return Life(path, session, 6, **{**ARCHIVES, **SYMLINKS, "hudi_assets.carry.over": mode})


def links(life: Life) -> list[Path]:
    """Symbolic links to log files, by name."""
    return sorted(file for file in life.path.glob("p=*/.*log*") if file.is_symlink())


def newest(life: Life, files: list[Path]) -> list[Path]:
    """Those of the newest slices."""
    instant = max(file.name.split("_")[2].split(".")[0] for file in life.path.glob("p=*/*.parquet"))
    return [file for file in files if f"_{instant}." in file.name]


def stated(life: Life, instant: str) -> dict[str, str]:
    """Link → target, as the commit of a compaction says."""
    commit = json.loads((life.path / f".hoodie/{instant}.commit").read_text())
    operations = json.loads(commit["extraMetadata"]["symlinkOperations"])
    return {f"{p}/{one['symlink']}": f"{p}/{one['target']}" for p, listed in operations.items() for one in listed}


def forget(life: Life, instant: str) -> None:
    """Archive everything up to an instant, and leave no archive."""
    for file in (life.path / ".hoodie").glob("2*"):
        if file.name[:17] <= instant:
            file.unlink()


def asked(life: Life) -> dict[str, Callable[[], Any]]:
    table, session = life.table, life.session
    return {
        "snapshot": lambda: table.snapshot(session),
        "read optimized": lambda: table.read_optimized(session),
        "time travel": lambda: table.time_travel(session, "29990101000000"),
        "incremental": lambda: table.incremental(session, "earliest"),
        "plan": lambda: table.plan_compaction(threshold=life.number * 1000),
        "clean": lambda: table.clean(retained=1),
        "upsert": life.upsert,
    }


# -------------------------------------------------------------------------------- a target that is gone


@pytest.fixture
def archived(tmp_path: Path, session: LocalSession) -> Life:
    """Two links a partition in the newest slices; the commits that made them are archived, so is their plan."""
    life = a_life(tmp_path / "t", session, "symlink")
    life.turns(4, carried=2)
    made = newest(life, links(life))
    assert len(made) == 4
    for _ in range(4):
        life.upsert()
    life.table.archive()
    instant = made[0].name.split("_")[1].split(".")[0]
    assert not list((life.path / ".hoodie").glob(f"{instant}.*"))
    return life


def lose_target(link: Path) -> str:
    """Delete what a link leads to; its name."""
    target = os.readlink(link)
    (link.parent / target).unlink()
    return target


def test_a_link_that_leads_nowhere_is_refused_by_name(archived: Life) -> None:
    link = newest(archived, links(archived))[0]
    target = lose_target(link)
    before = archived.timeline(), archived.files()
    for what, ask in asked(archived).items():
        with pytest.raises(CorruptTable, match="missing or short") as refused:
            ask()
        assert link.name in str(refused.value), what
        assert target in str(refused.value), what
    assert (archived.timeline(), archived.files()) == before


def test_freshness_and_checks_tell_of_it(archived: Life) -> None:
    link = newest(archived, links(archived))[0]
    assert archived.table.freshness().freshness is not None
    assert archived.table.validate() == ()
    carried = archived.table.carried_over()
    assert {one.link for one in carried} == {f"{f.parent.name}/{f.name}" for f in newest(archived, links(archived))}
    storage = LocalStorage(str(archived.path))
    assert find_unresolved(storage, carried) == []
    target = lose_target(link)
    fresh = archived.table.freshness()
    assert fresh.freshness is None
    assert link.name in (fresh.reason or "")
    assert target in (fresh.reason or "")
    (found,) = [f for f in archived.table.validate() if link.name in f.path]
    assert found.kind == "missing_file"
    assert target in found.what
    (unresolved,) = find_unresolved(storage, archived.table.carried_over())
    assert link.name in unresolved
    assert target in unresolved


def test_the_link_itself_goes(tmp_path: Path, session: LocalSession) -> None:
    """The check lists what the timeline says is carried over, not what is shown."""
    life = a_life(tmp_path / "t", session, "hardlink")
    life.turns(3, carried=2)
    carried = life.table.carried_over()
    (life.path / carried[0].link).unlink()
    (unresolved,) = find_unresolved(LocalStorage(str(life.path)), life.table.carried_over())
    assert carried[0].link in unresolved


def test_a_link_of_a_slice_that_nobody_reads_now(tmp_path: Path, session: LocalSession) -> None:
    life = a_life(tmp_path / "t", session, "symlink")
    life.turns(4, carried=2)
    older = newest(life, links(life))
    as_of = life.upsert()
    life.compact()
    shown = [os.readlink(link) for link in links(life)]
    link = next(link for link in older if shown.count(os.readlink(link)) == 1)
    instant = link.name.split("_")[1].split(".")[0]
    rows = life.snapshot()
    forget(life, instant)
    for plan in (life.path / ".hoodie").glob("*.compaction.requested"):
        plan.unlink()  # the plan of the compaction after it would name it too
    life.table.time_travel(session, as_of)
    lose_target(link)
    assert life.snapshot() == rows
    assert life.table.freshness().freshness is not None
    (found,) = [f for f in life.table.validate() if f.path.endswith(link.name)]
    assert found.kind == "broken_link"
    with pytest.raises(InvalidInput):
        life.table.time_travel(session, as_of)
    # The next clean takes it along with its slice.
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert not os.path.lexists(link)
    assert life.snapshot() == rows


def test_a_link_is_read_as_of_an_instant_before_another_group_s_newest_slice(
    tmp_path: Path, session: LocalSession
) -> None:
    life = a_life(tmp_path / "t", session, "symlink")
    life.upsert()
    life.upsert(later=100_000)
    first = life.compact()
    as_of = life.upsert("b")
    life.compact()
    link = next(one for one in links(life) if one.parent.name == "p=a")
    forget(life, first)
    life.table.time_travel(session, as_of)
    lose_target(link)
    with pytest.raises(CorruptTable, match=re.escape(link.name)):
        life.table.time_travel(session, as_of)


def test_a_base_file_that_is_a_link_to_nothing(tmp_path: Path, session: LocalSession) -> None:
    """Its commit archived, the slice below would answer."""
    life = a_life(tmp_path / "t", session, "hardlink")
    life.turns(3, carried=1)
    base = max(life.path.glob("p=a/*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    instant = base.name.rpartition("_")[2].removesuffix(".parquet")
    life.upsert()
    forget(life, instant)
    base.unlink()
    base.symlink_to("gone")
    with pytest.raises(CorruptTable, match="gone"):
        life.snapshot()


def test_a_pending_plan_s_link_or_input_is_looked_at_before_anything_is_written(
    tmp_path: Path, session: LocalSession
) -> None:
    life = a_life(tmp_path / "t", session, "symlink")
    life.upsert()
    life.upsert()
    plan = life.table.plan_compaction(threshold=1_500)
    assert isinstance(plan, Plan)
    lose_target(links(life)[0])
    before = life.timeline(), life.files()
    with pytest.raises(CorruptTable, match="gone"):
        life.table.execute_compaction(session, plan.instant)
    assert (life.timeline(), life.files()) == before
    assert {"missing_link"} <= {found.kind for found in life.table.validate()}
    assert life.table.freshness().freshness is None


# -------------------------------------------------------------------------------- who may have symbolic links


def test_symbolic_links_where_others_may_clean_are_refused(tmp_path: Path, session: LocalSession) -> None:
    life = Life(tmp_path / "t", session, 6, **{"hudi_assets.carry.over": "symlink"})
    life.upsert()
    life.upsert()
    before = life.timeline(), life.files()
    for ask in (life.table.plan_compaction, lambda: life.table.plan_compaction(threshold=1_500, dry_run=True)):
        with pytest.raises(InvalidInput, match=r"hudi_assets\.table\.services=ours"):
            ask()
    assert (life.timeline(), life.files()) == before


@pytest.mark.parametrize("key", ["hoodie.clean.automatic", "hoodie.clean.async.enabled"])
def test_a_writer_that_cleans_beside_symbolic_links_is_refused(tmp_path: Path, session: LocalSession, key: str) -> None:
    life = Life(tmp_path / "t", session, 6, **SYMLINKS, **{key: "true"})
    life.upsert()
    with pytest.raises(InvalidInput, match=re.escape(key)):
        life.table.plan_compaction()


# -------------------------------------------------------------------------------- the trace


def kept(life: Life) -> set[str]:
    """Log files with event times that no compaction reaches."""
    life.upsert()
    before = life.files()
    life.upsert(later=1_000_000)
    return life.files() - before


@MODES
def test_the_commit_names_the_first_original(tmp_path: Path, session: LocalSession, mode: str) -> None:
    life = a_life(tmp_path / "t", session, mode)
    originals = kept(life)
    for turn in range(5):
        life.upsert()
        instant = life.compact()
        assert originals == set(stated(life, instant).values()), turn
        made_from = {c.made_from for op in life.table.state().plan(instant).operations for c in op.carried_over}  # type: ignore[union-attr]
        assert made_from <= life.files()
        life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
        life.table.archive()
    assert not originals & life.files(), "the originals are cleaned, and are named still"


@MODES
def test_the_trace_outlives_the_archiving_of_its_commit(tmp_path: Path, session: LocalSession, mode: str) -> None:
    life = a_life(tmp_path / "t", session, mode)
    originals = kept(life)
    for _ in range(2):
        life.upsert()
        instant = life.compact()
    for _ in range(6):
        life.upsert()
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    life.table.archive()
    assert not list((life.path / ".hoodie").glob(f"{instant}.*"))
    carried = life.table.carried_over()
    assert originals == {c.target for c in carried}
    assert find_unresolved(LocalStorage(str(life.path)), carried) == []
    assert originals <= set(stated(life, life.compact()).values())


def test_links_lead_to_files_and_not_to_links(tmp_path: Path, session: LocalSession) -> None:
    life = a_life(tmp_path / "t", session, "symlink")
    life.turns(5, carried=3)
    life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=2)
    life.turns(2, carried=3)
    assert links(life)
    assert not any((link.parent / os.readlink(link)).is_symlink() for link in links(life))


# -------------------------------------------------------------------------------- taking back


@MODES
def test_the_newest_compaction_is_taken_back_after_a_clean(tmp_path: Path, session: LocalSession, mode: str) -> None:
    life = a_life(tmp_path / "t", session, mode)
    life.turns(3, carried=2)
    life.upsert()
    before, files = life.snapshot(), life.files()
    instant = life.compact(life.number - 2)
    cleaned = life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=2)
    assert isinstance(cleaned, CleanResult)
    targets = {c.target for op in life.table.state().plan(instant).operations for c in op.carried_over}  # type: ignore[union-attr]
    assert targets & set(cleaned.deleted), "what the carried-over files were made from first is gone"
    life.table.rollback(instant)
    assert life.snapshot() == before
    assert life.files() == files - set(cleaned.deleted)
    assert life.table.validate() == ()
    life.compact()
    assert life.snapshot() == before


def test_what_the_trace_costs_in_a_commit() -> None:
    group = "p=a/.00000007-5949-550e-9edb-b4e125d9b82a-0"
    many = [
        CarryOver(f"{group}_20261122103837501.log.{n}_199-4711-815", f"{group}_20261122095114031.log.{n}_199-42-7")
        for n in range(1_000)
    ]
    text = encode_carried_over(many)
    assert len(json.dumps(text)) < 200 * len(many)
    assert decode_carried_over(text, "t") == {one.link: one.target for one in many}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"..": []}', '{"p": [{"symlink": "a/b", "target": "c"}]}', '{"p": [{"symlink": "a"}]}']
)
def test_a_trace_that_no_commit_of_ours_has(text: str) -> None:
    with pytest.raises(CorruptTable):
        decode_carried_over(text, "t")


def test_values() -> None:
    assert CarryOver("a", "b").made_from == "b"
    assert CarryOver("a", "b", "c").made_from == "c"
    assert NoPlan("x").reason == "x"
