"""Clean, savepoint and archive beside Apache Hudi: each deletes what the other would, and reads what it wrote."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.model import Action, NothingToDo, Plan
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.archive.v6 import archive_files, decode_archive
from hudi_assets.engine.transaction.clean import CleanResult
from hudi_assets.engine.transaction.publish import system_now_ms
from scripts.hudi_client import Hudi, HudiError
from scripts.hudi_rows import Rows, by_key, differences
from tests.crash.faulty import Crash, DyingStorage
from tests.crash.tables import carried_by
from tests.interop.tables import hudi_options
from tests.tables.local_session import LocalSession
from tests.tables.steps import created, with_properties

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("p", pa.string(), nullable=False),
    ]
)
EVER = "start_ts=>'20000101000000000', end_ts=>'20990101000000000'"


def rows(number: int, ids: Iterable[int] = range(8)) -> pa.Table:
    values = [{"id": i, "ts": number * 1_000 + i, "v": f"{number}.{i}", "p": "ab"[i % 2]} for i in ids]
    return pa.Table.from_pylist(values, SCHEMA)


ARCHIVES_SOON = {
    "hoodie.archive.automatic": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


class Tale:
    """A table of ours, told step by step: upsert number n has event times from n seconds on."""

    def __init__(self, path: Path, session: LocalSession, carry_over: str = "hardlink") -> None:
        self.path = path
        self.session = session
        self.hours_ago = 0
        empty = created(path, SCHEMA, partition_fields=["p"], event_time_unit="ms")
        with_properties(empty, carried_by(carry_over))
        self.number = 0

    @classmethod
    def of(cls, path: Path, session: LocalSession, number: int) -> Tale:
        """Of a table that another engine made, with so many upserts."""
        tale = cls.__new__(cls)
        tale.path, tale.session, tale.hours_ago, tale.number = path, session, 0, number
        return tale

    @property
    def table(self) -> HudiTable:
        config = HudiTable.open(str(self.path)).config
        storage = LocalStorage(str(self.path))
        return HudiTable(storage, config, now_ms=lambda: system_now_ms() - self.hours_ago * 3_600_000)

    def upsert(self, ids: Iterable[int] = range(8)) -> str:
        self.number += 1
        done = self.table.upsert(self.session, self.session.frame(rows(self.number, ids)))
        assert done.instant is not None
        return done.instant

    def plan(self, number: int) -> Plan:
        """A plan that leaves what upserts from `number` on wrote to be carried over."""
        plan = self.table.plan_compaction(threshold=number * 1_000 - 1)
        assert isinstance(plan, Plan), plan
        return plan

    def compact(self, number: int) -> str:
        plan = self.plan(number)
        self.table.execute_compaction(self.session, plan.instant)
        return plan.instant

    def life(self, turns: int) -> None:
        """Upserts with a compaction after every second one, which carries the newest log files over."""
        for turn in range(turns):
            self.upsert()
            if turn % 2:
                self.compact(self.number)


@pytest.fixture
def tale(path: Path, session: LocalSession) -> Tale:
    return Tale(path, session)


def copied(path: Path, name: str) -> Path:
    return Path(shutil.copytree(path, path.with_name(name), symlinks=True))


def data_files(path: Path) -> set[str]:
    """Base and log files, table-relative."""
    found = (f for f in path.rglob("*") if ".hoodie" not in f.relative_to(path).parts and not f.name.endswith(".crc"))
    return {str(f.relative_to(path)) for f in found if f.is_file() and not f.name.startswith(".hoodie_")}


@contextmanager
def known_to(hudi: Hudi, path: Path) -> Iterator[str]:
    """The table's name in Hudi's catalog, which procedures take.

    CREATE TABLE writes hoodie.properties anew, without the keys that Hudi does not know (tried with 0.15.0).
    """
    properties = path / ".hoodie/hoodie.properties"
    before = properties.read_bytes()
    # Else a procedure makes a metadata table.
    hudi.ask("sql", statement="set hoodie.metadata.enable=false")
    name = "t" + hashlib.md5(str(path).encode()).hexdigest()
    hudi.ask("sql", statement=f"create table if not exists {name} using hudi location '{path}'")
    properties.write_bytes(before)
    properties.with_name(f".{properties.name}.crc").unlink(missing_ok=True)
    yield name


def call(hudi: Hudi, path: Path, procedure: str, arguments: str = "") -> list[dict[str, str]]:
    with known_to(hudi, path) as name:
        statement = f"call {procedure}(table=>'{name}'{', ' if arguments else ''}{arguments})"
        found: list[dict[str, str]] = hudi.ask("sql", statement=statement)["rows"]
        return found


def hudi_clean(hudi: Hudi, path: Path, policy: str, retained: int) -> set[str]:
    """Files that Hudi's cleaner deletes."""
    before = data_files(path)
    parameter = {"COMMITS": "retain_commits", "VERSIONS": "file_versions_retained", "HOURS": "hours_retained"}
    key = parameter[policy.rsplit("_", 1)[-1]]
    arguments = f"clean_policy=>'{policy}', {key}=>{retained}, skip_locking=>true"
    call(hudi, path, "run_clean", arguments + ", options=>'hoodie.metadata.enable=false'")
    return before - data_files(path)


def same(tale_or_path: Tale | Path, hudi: Hudi, session: LocalSession, step: str) -> Rows:
    """Assert that Hudi's snapshot and read-optimized views are ours; the snapshot."""
    path = tale_or_path if isinstance(tale_or_path, Path) else tale_or_path.path
    table = HudiTable.open(str(path))
    snapshot = by_key(table.snapshot(session).toArrow())
    for view, ours in (("snapshot", snapshot), ("read_optimized", by_key(table.read_optimized(session).toArrow()))):
        unlike = differences(ours, by_key(hudi.read(path, view)))
        assert not unlike, f"{step}: Hudi {hudi.release}'s {view} is not ours:\n" + "\n".join(unlike)
    return snapshot


# --------------------------------------------------------------------------------------- the same files


@pytest.mark.parametrize(
    ("policy", "retained"),
    [
        pytest.param("KEEP_LATEST_COMMITS", 1, marks=pytest.mark.slow),
        ("KEEP_LATEST_COMMITS", 4),
        ("KEEP_LATEST_FILE_VERSIONS", 1),
        pytest.param("KEEP_LATEST_FILE_VERSIONS", 2, marks=pytest.mark.slow),
        pytest.param("KEEP_LATEST_BY_HOURS", 2, marks=pytest.mark.slow),
    ],
)
def test_the_same_files_go(tale: Tale, hudi_0_15: Hudi, policy: str, retained: int) -> None:
    """Groups of unlike age, one of which stays as it is; a savepoint; and then a pending plan."""
    tale.hours_ago = 5
    tale.life(4)
    saved = tale.table.savepoint()
    tale.hours_ago = 0
    tale.upsert([0, 2])
    tale.compact(tale.number + 1)
    tale.life(4)
    for state in ("settled", "savepoint gone", "plan pending"):
        if state == "savepoint gone":
            tale.table.delete_savepoint(saved)
        if state == "plan pending":
            tale.upsert()
            tale.plan(tale.number)
            tale.upsert()
        theirs = hudi_clean(hudi_0_15, copied(tale.path, f"theirs-{state.replace(' ', '-')}"), policy, retained)
        ours = tale.table.clean(policy=policy, retained=retained, dry_run=True)
        deleted = set() if isinstance(ours, NothingToDo) else set(ours.deleted)
        assert deleted == theirs, f"{state}: {ours}"
        assert theirs, state


# ------------------------------------------------------------------------- each goes on after the other


@pytest.mark.parametrize("carry_over", ["hardlink", pytest.param("symlink", marks=pytest.mark.slow)])
@pytest.mark.parametrize("release", ["0.15.0", pytest.param("1.2.0", marks=pytest.mark.slow)])
def test_hudi_reads_and_goes_on_after_ours(
    path: Path, session: LocalSession, release: str, carry_over: str, request: pytest.FixtureRequest
) -> None:
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    tale = Tale(path, session, carry_over)
    tale.life(6)
    cleaned = tale.table.clean(retained=3)
    assert isinstance(cleaned, CleanResult)
    assert cleaned.earliest_retained is not None
    saved = tale.table.savepoint(comment="interop", user="us")
    same(tale, hudi, session, "after our clean and savepoint")
    for instant in (i for i in _writes(tale.table) if i >= cleaned.earliest_retained):
        ours = by_key(tale.table.time_travel(session, instant).toArrow())
        assert not differences(ours, by_key(hudi.read(path, "time_travel", as_of=instant))), instant
    assert [row["savepoint_time"] for row in call(hudi, path, "show_savepoints")] == [saved]

    # Theirs after ours; not with symbolic links, which Hudi's cleaner does not know.
    tale.table.delete_savepoint(saved)
    if carry_over == "hardlink":
        tale.upsert()
        tale.compact(tale.number)
        before = same(tale, hudi, session, "before their clean")
        assert hudi_clean(hudi, path, "KEEP_LATEST_COMMITS", 1)
        assert same(tale, hudi, session, "after their clean") == before

    # And ours after theirs.
    tale.life(2)
    before = same(tale, hudi, session, "before our second clean")
    assert isinstance(tale.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1), CleanResult)
    assert same(tale, hudi, session, "after our second clean") == before


def _writes(table: HudiTable) -> list[str]:
    return [i.timestamp for i in table.state().timeline.completed(Action.COMMIT, Action.DELTA_COMMIT)]


def test_hudi_finishes_our_pending_clean(tale: Tale, hudi_0_15: Hudi, session: LocalSession) -> None:
    tale.life(6)
    expected = tale.table.clean(retained=2, dry_run=True)
    assert isinstance(expected, CleanResult)
    storage = DyingStorage(str(tale.path))
    victim = HudiTable(storage, tale.table.config)
    original = storage._wrapped

    def dies_at_first_deletion(name: str, real: object) -> object:
        if name == "delete":
            raise Crash("before the first deletion")
        return original(name, real)  # type: ignore[arg-type]

    storage._wrapped = dies_at_first_deletion  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        victim.clean(retained=2)
    assert [i.state for i in tale.table.state().timeline.instants if i.action == "clean"] == ["inflight"]
    before = same(tale, hudi_0_15, session, "clean pending")
    assert hudi_clean(hudi_0_15, tale.path, "KEEP_LATEST_COMMITS", 100) == set(expected.deleted)
    assert same(tale, hudi_0_15, session, "after they finished it") == before


def test_hudis_savepoint_protects_from_our_clean(tale: Tale, hudi_0_15: Hudi, session: LocalSession) -> None:
    tale.life(2)
    saved = _writes(tale.table)[-1]
    expected = by_key(tale.table.snapshot(session).toArrow())
    call(hudi_0_15, tale.path, "create_savepoint", f"commit_time=>'{saved}', user=>'they', comments=>'c'")
    assert tale.table.savepoints() == (saved,)
    tale.life(6)
    assert isinstance(tale.table.clean(retained=1), CleanResult)
    assert by_key(tale.table.time_travel(session, saved).toArrow()) == expected
    # Hudi itself takes our clean's word for what is left, savepoint or not.
    with pytest.raises(HudiError, match="Cleaner cleaned up the timestamp"):
        hudi_0_15.read(tale.path, "time_travel", as_of=saved)


@pytest.mark.slow
def test_hudi_rolls_back_to_our_savepoint(tale: Tale, hudi_0_15: Hudi, session: LocalSession) -> None:
    tale.life(3)
    saved = tale.table.savepoint()
    expected = by_key(tale.table.snapshot(session).toArrow())
    tale.life(3)
    tale.table.clean(retained=1)
    call(hudi_0_15, tale.path, "rollback_to_savepoint", f"instant_time=>'{saved}'")
    assert same(tale, hudi_0_15, session, "rolled back") == expected


# ------------------------------------------------------------------------------------------------ archive


def _keep(path: Path, least: int, most: int) -> None:
    with (path / ".hoodie/hoodie.properties").open("a") as properties:
        properties.write(f"hoodie.keep.min.commits={least}\nhoodie.keep.max.commits={most}\n")
        properties.write("hoodie.cleaner.commits.retained=1\n")


@pytest.mark.parametrize("release", ["0.15.0", pytest.param("1.2.0", marks=pytest.mark.slow)])
def test_hudi_reads_our_archive_and_archives_after_it(
    tale: Tale, session: LocalSession, release: str, request: pytest.FixtureRequest
) -> None:
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    tale.life(6)
    whole = copied(tale.path, "whole")
    _keep(tale.path, 3, 4)
    tale.table.clean()
    result = tale.table.archive()
    assert isinstance(result, ArchiveResult)
    before = same(tale, hudi, session, "after our archiving")
    assert before == by_key(HudiTable.open(str(whole)).snapshot(session).toArrow())
    shown = {row["commit_time"] for row in call(hudi, tale.path, "show_archived_commits", f"limit=>100, {EVER}")}
    assert shown == set(result.instants)

    tale.life(4)
    arguments = "min_commits=>3, max_commits=>4, retain_commits=>2, enable_metadata=>false"
    call(hudi, tale.path, "archive_commits", arguments)
    assert len(_writes(tale.table)) <= 4
    archived = archive_files(LocalStorage(str(tale.path)))
    assert len(archived) == 2
    entries = [e for f in archived for e in decode_archive((tale.path / f).read_bytes(), f)]
    assert {e["commitTime"] for e in entries} > shown
    after = same(tale, hudi, session, "after their archiving")
    assert len(after) == 8
    freshness = tale.table.freshness()
    assert freshness.threshold is not None
    assert freshness.freshness is not None


@pytest.mark.slow
def test_we_archive_where_hudi_has_put_its_archive(
    path: Path, hudi_0_15: Hudi, hudi_1_2: Hudi, session: LocalSession
) -> None:
    """Tables of version 6 that 1.2.0 makes have another folder, `history`, and both releases go by it."""
    of_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
    for number in range(1, 8):
        hudi_1_2.write(path, rows(number), hudi_options(name="t") | ARCHIVES_SOON | of_6)
    settings = {
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.payload.event.time.field": "ts",
        "hudi_assets.event.time.unit": "ms",
        "hudi_assets.writers": "stopped",
    }
    with_properties(HudiTable.open(str(path)), settings)
    _keep(path, 2, 3)  # as Hudi's writers have it
    (path / ".hoodie/.hoodie.properties.crc").unlink()  # Java's, of the file as it was
    tale = Tale.of(path, session, 7)
    [*theirs] = archive_files(LocalStorage(str(path)), "history")
    before = same(tale, hudi_1_2, session, "they archived")
    assert tale.table.validate() == ()
    for _ in range(6):
        tale.upsert()
    tale.compact(10)
    tale.table.clean()
    before = same(tale, hudi_1_2, session, "we wrote and cleaned")
    result = tale.table.archive()
    assert isinstance(result, ArchiveResult)
    assert archive_files(LocalStorage(str(path)), "history") == (*theirs, result.file)
    assert not (path / ".hoodie/archived").exists()
    for hudi in (hudi_1_2, hudi_0_15):
        assert same(tale, hudi, session, "we archived") == before
        shown = {row["commit_time"] for row in call(hudi, path, "show_archived_commits", f"limit=>100, {EVER}")}
        assert shown > set(result.instants)
    for number in range(20, 26):
        hudi_0_15.write(path, rows(number), hudi_options(name="t") | ARCHIVES_SOON)
    assert len(archive_files(LocalStorage(str(path)), "history")) > len(theirs) + 1
    same(tale, hudi_0_15, session, "0.15.0 archived after us")
    assert tale.table.freshness().freshness is not None


@pytest.mark.slow
def test_hudis_archiver_beside_carried_over_log_files(tale: Tale, hudi_0_15: Hudi, session: LocalSession) -> None:
    """Hudi writes and archives while our slices, and our pending plan, show carried-over log files."""
    tale.life(2)
    options = hudi_options(name="t") | ARCHIVES_SOON
    for turn in range(6):
        tale.number += 1
        hudi_0_15.write(tale.path, rows(tale.number), options)
        shown = same(tale, hudi_0_15, session, f"write {turn}")
        assert {row["v"].split(".")[0] for row in shown.values()} == {str(tale.number)}
        if turn == 2:
            plan = tale.plan(tale.number)
            assert any(op.carried_over for op in plan.operations)
    assert min(_writes(tale.table)) > _first_instant(tale.path), "nothing was archived"
    tale.table.execute_compaction(session, plan.instant)
    for turn in range(5):
        tale.number += 1
        hudi_0_15.write(tale.path, rows(tale.number, [1, 2]), options)
        same(tale, hudi_0_15, session, f"write {turn} after the execution")
    assert plan.instant < min(_writes(tale.table)), "the compaction was not archived"
    assert len(same(tale, hudi_0_15, session, "end")) == 8


def _first_instant(path: Path) -> str:
    names = [f.name for f in path.rglob("*.log.1_*")] + [f.name for f in path.rglob("*.parquet")]
    return min(name.rsplit("_", 1)[-1][:17] for name in names if name.endswith(".parquet"))


@pytest.mark.slow
def test_hudis_archiver_cannot_pass_links_without_a_plan(tale: Tale, hudi_0_15: Hudi, session: LocalSession) -> None:
    """A planner dies between its links and its plan; Hudi then archives as far as it can."""
    tale.upsert()
    tale.upsert()
    storage = DyingStorage(str(tale.path))
    real = storage._wrapped

    def dies_at_the_plan(name: str, method: object) -> object:
        def create(path: str, data: bytes) -> object:
            if path.endswith("compaction.requested") and any(o.startswith("hard_link") for o in storage.operations):
                storage.dead = True
                raise Crash(path)
            return real(name, method)(path, data)  # type: ignore[arg-type]

        return create if name == "create" else real(name, method)  # type: ignore[arg-type]

    storage._wrapped = dies_at_the_plan  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        HudiTable(storage, tale.table.config).plan_compaction(threshold=tale.number * 1_000 - 1)
    links = {name for name in data_files(tale.path) if ".log." in name}
    [guard] = [i.timestamp for i in tale.table.state().timeline.pending(Action.COMPACTION)]
    orphans = {name for name in links if name.split("_")[1][:17] > guard}
    assert orphans
    options = hudi_options(name="t") | ARCHIVES_SOON
    for turn in range(7):
        tale.number += 1
        hudi_0_15.write(tale.path, rows(tale.number, [turn]), options)
        shown = by_key(hudi_0_15.read(tale.path, "snapshot"))
        assert len(shown) == 8, f"write {turn}"
    assert orphans <= data_files(tale.path)
    assert same(tale, hudi_0_15, session, "archived up to the guard") == shown
    tale.table.recover()
    assert not orphans & data_files(tale.path)
    hudi_0_15.write(tale.path, rows(tale.number + 1, [7]), options)
    assert len(same(tale, hudi_0_15, session, "archived past the orphans' instant")) == 8
    assert guard < min(_writes(tale.table))
