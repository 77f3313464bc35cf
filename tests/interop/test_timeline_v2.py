"""The timeline of versions 8 and 9 beside Apache Hudi 1.2.0: each reads and goes on with what the other wrote."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.actions.cleaning.query_grace import query_time
from hudi_assets.engine.model import Action, Plan
from hudi_assets.engine.storage import LocalStorage, Storage
from hudi_assets.engine.table.files.cleaned import read_savepoints
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.timeline.archive.v8 import HISTORY, archived_instants, read_manifest
from hudi_assets.engine.timeline.commit_avro import decode_commit, encode_commit
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.transaction.clean import CleanResult
from hudi_assets.engine.transaction.publish import system_now_ms
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences
from tests.crash.faulty import Crash, DyingStorage
from tests.interop.tables import hudi_options
from tests.interop.test_clean import EVER, call, copied, data_files, hudi_clean
from tests.tables.local_session import LocalSession
from tests.tables.steps import created, with_properties

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

TIMELINE = ".hoodie/timeline"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("p", pa.string(), nullable=False),
    ]
)


class Writer:
    """Apache Hudi 1.2.0 writing a table of version 8 or 9, upsert by upsert."""

    def __init__(self, hudi: Hudi, path: Path, version: int) -> None:
        self.hudi, self.path = hudi, path
        self.number = 0
        self.options = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}

    def upsert(self, **more: str) -> str:
        self.number += 1
        values = [
            {"id": i, "ts": self.number * 1_000 + i, "v": f"{self.number}.{i}", "p": "ab"[i % 2]} for i in range(8)
        ]
        self.hudi.write(self.path, pa.Table.from_pylist(values, SCHEMA), hudi_options(name="t") | self.options | more)
        return self.commits()[-1]

    def compact(self) -> None:
        self.hudi.compaction(self.path, "run", **self.options)

    def commits(self) -> list[str]:
        """Names of the completed writes, oldest first."""
        names = (f.name for f in (self.path / TIMELINE).iterdir())
        return sorted(n for n in names if n[0] != "." and n.endswith(("commit",)) and "_" in n)

    def answers(self) -> list[Rows]:
        """Snapshot, read-optimized, and as of and between all completion times."""
        times = [name[18:35] for name in self.commits()]
        asked = [self.hudi.read(self.path, "snapshot"), self.hudi.read(self.path, "read_optimized")]
        asked += [self.hudi.read(self.path, "time_travel", as_of=time) for time in times[1:]]
        asked += [self.hudi.read(self.path, "incremental", begin=b, end=e) for b, e in pairwise(times)]
        return [by_key(rows) for rows in asked]


@pytest.fixture(params=[8, 9])
def writer(request: pytest.FixtureRequest, hudi_1_2: Hudi, path: Path) -> Writer:
    return Writer(hudi_1_2, path, request.param)


def test_hudi_reads_our_commit_files(writer: Writer) -> None:
    """Every completed write of a table, compactions too, written anew by us: nothing changes, and Hudi goes on."""
    for number in range(4):
        writer.upsert()
        if number == 1:
            writer.compact()
    before = writer.answers()
    storage = LocalStorage(str(writer.path))
    names = writer.commits()
    assert {name.rpartition(".")[2] for name in names} == {"deltacommit", "commit"}
    for name in names:
        commit = decode_commit(storage.read(f"{TIMELINE}/{name}"), name)
        ours = replace(commit, extra={**commit.extra, WRITER: "hudi-assets"})
        storage.replace(f"{TIMELINE}/{name}", encode_commit(ours))
    assert writer.answers() == before
    writer.upsert()
    writer.compact()
    rows = by_key(writer.hudi.read(writer.path, "read_optimized"))
    assert {row["v"].partition(".")[0] for row in rows.values()} == {str(writer.number)}


# ------------------------------------------------------------------------------------ our housekeeping

FEW = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.timeline.compaction.batch.size": "2",
}


class Ours:
    """A table of ours: upsert number n has event times from n seconds on."""

    def __init__(self, path: Path, session: LocalSession, version: int) -> None:
        self.path, self.session, self.version, self.number = path, session, version, 0
        empty = created(path, SCHEMA, partition_fields=["p"], event_time_unit="ms", table_version=version)
        with_properties(empty, FEW | {"hudi_assets.query.grace": "0s"})

    @property
    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path))

    def rows(self, partitions: str = "ab", later: int = 0) -> pa.Table:
        self.number += 1
        values = [
            {
                "id": i,
                "ts": self.number * 1_000 + later + i,
                "v": f"{self.number}.{i}",
                "p": partitions[i % len(partitions)],
            }
            for i in range(8)
        ]
        return pa.Table.from_pylist(values, SCHEMA)

    def upsert(self, partitions: str = "ab", later: int = 0) -> str:
        done = self.table.upsert(self.session, self.session.frame(self.rows(partitions, later))).instant
        assert done is not None
        return done

    def compact(self, number: int) -> str:
        plan = self.table.plan_compaction(threshold=number * 1_000 + 500)
        assert isinstance(plan, Plan), plan
        self.table.execute_compaction(self.session, plan.instant)
        return plan.instant

    def their_upsert(self, hudi: Hudi) -> None:
        """Hudi writes, cleans and archives."""
        options = (
            hudi_options(name="t")
            | FEW
            | {
                "hoodie.write.table.version": str(self.version),
                "hoodie.write.auto.upgrade": "false",
                "hoodie.archive.automatic": "true",
                "hoodie.clean.automatic": "true",
                "hoodie.cleaner.commits.retained": "1",
            }
        )
        hudi.write(self.path, self.rows("b"), options)

    def crossing(self) -> None:
        """A write that was requested before a compaction's instant and completed after it, as two writers make it."""
        for _ in range(2):
            self.upsert("a")
        compaction = self.compact(2)
        write = self.upsert("a", later=1_000_000)
        inside = f"{int(write) + 1:017d}"
        assert inside < self.table.state().timeline.completions[write]
        for file in [*(self.path / TIMELINE).iterdir(), *self.path.glob("*/*.parquet")]:
            if compaction in file.name:
                file.rename(file.with_name(file.name.replace(compaction, inside)))

    def housekeeping(self) -> None:
        self.table.clean(retained=1)
        self.table.archive()

    def history(self) -> list[int]:
        """Layers of the files that count."""
        return sorted(file.layer for file in read_manifest(LocalStorage(str(self.path))).files)

    def same(self, hudi: Hudi) -> Rows:
        """Assert that Hudi's snapshot and read-optimized views are ours; the snapshot."""
        snapshot = by_key(self.table.snapshot(self.session).toArrow())
        for view, ours in (
            ("snapshot", snapshot),
            ("read_optimized", by_key(self.table.read_optimized(self.session).toArrow())),
        ):
            unlike = differences(ours, by_key(hudi.read(self.path, view)))
            assert not unlike, f"Hudi's {view} is not ours:\n" + "\n".join(unlike)
        return snapshot


@pytest.mark.parametrize("version", [8, 9])
def test_each_goes_on_after_the_others_archive(path: Path, session: LocalSession, hudi_1_2: Hudi, version: int) -> None:
    """Our clean, savepoint and archive, Hudi's on top, and ours again.

    The log file of partition a is in its slice by a completion time that only the archive has.
    """
    ours = Ours(path, session, version)
    ours.crossing()
    ours.same(hudi_1_2)
    for _ in range(3):
        for _ in range(2):
            ours.upsert("b")
            ours.compact(ours.number)
        ours.housekeeping()
    assert max(ours.history()) >= 1
    logs = [log for log in ours.table.state().remaining_logs if log.partition == "p=a"]
    assert logs
    assert all(log.base_instant < (ours.table.state().timeline.start or "") for log in logs)
    ours.same(hudi_1_2)
    shown = call(hudi_1_2, path, "show_archived_commits", "limit=>100, " + EVER)
    archived = {
        i.timestamp for i in archived_instants(LocalStorage(str(path))) if i.action in ("commit", "deltacommit")
    }
    assert {row["commit_time"] for row in shown} == archived
    saved = ours.table.savepoint()
    assert {row["savepoint_time"] for row in call(hudi_1_2, path, "show_savepoints")} == {saved}
    ours.table.delete_savepoint(saved)
    names = {file.name for file in (path / HISTORY).glob("*.parquet")}
    for _ in range(6):
        ours.their_upsert(hudi_1_2)
        ours.same(hudi_1_2)
    assert not names.issubset(file.name for file in (path / HISTORY).glob("*.parquet")), "Hudi merged none of ours"
    assert archived < {i.timestamp for i in archived_instants(LocalStorage(str(path)))}
    for _ in range(2):
        for _ in range(2):
            ours.upsert("b")
            ours.compact(ours.number)
        ours.housekeeping()
        ours.same(hudi_1_2)
    assert {row["v"].partition(".")[0] for row in ours.same(hudi_1_2).values()} == {"3", str(ours.number)}
    assert ours.table.validate() == ()


# ------------------------------------------------------------------------------------- Hudi's own cleaner


@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_hudis_cleaner_needs_what_we_say(path: Path, session: LocalSession, hudi_1_2: Hudi, policy: str) -> None:
    """One less than what `query_time` asks for, and its next clean takes what the compaction replaced."""
    ours = Ours(path, session, 9)
    for _ in range(4):
        ours.upsert()
    cut = ours.compact(1)
    first = ours.table.state().timeline.instants[0].timestamp
    replaced = {name for name in data_files(path) if f"_{first}.log" in name}
    assert replaced
    properties = {
        "hoodie.cleaner.policy": policy,
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.cleaner.fileversions.retained": "1",
        "hudi_assets.query.grace": "0.001s",
    }
    found = query_time(
        properties,
        ours.table.state().timeline,
        cut,
        now_ms=system_now_ms(),
        timezone="UTC",
        where=str(path),
    )
    assert found is not None
    # Nobody writes meanwhile: in a millisecond no commit is to be expected, but one is counted.
    needed = found.needed - (1 if policy == "KEEP_LATEST_COMMITS" else 0)
    assert needed == (4 if policy == "KEEP_LATEST_COMMITS" else 2)
    enough, short = copied(path, "enough"), copied(path, "short")
    assert not hudi_clean(hudi_1_2, enough, policy, needed) & replaced
    assert hudi_clean(hudi_1_2, short, policy, needed - 1) >= replaced


# ------------------------------------------------------------------------------------ with a metadata table


@pytest.mark.parametrize("version", [9])
def test_clean_and_archive_keep_the_metadata_table(
    path: Path, session: LocalSession, hudi_1_2: Hudi, version: int
) -> None:
    """What our clean deletes leaves the metadata table; our archive never passes its last compaction, and takes
    what is older from the metadata table's own timeline."""
    writer = Writer(hudi_1_2, path, version)
    metadata = {"hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "4"}
    for number in range(8):
        writer.upsert(**metadata)
        if number in (2, 5):
            hudi_1_2.compaction(path, "run", **writer.options, **metadata)
    few = {"hoodie.metadata.keep.min.commits": "2", "hoodie.metadata.keep.max.commits": "3"}
    stated = {"hudi_assets.writers": "stopped", "hudi_assets.query.grace": "0s", **FEW, **few}
    table = HudiTable.open(str(path), settings=stated)
    before = by_key(table.snapshot(session).toArrow())
    files = data_files(path)
    cleaned = table.clean(retained=1)
    assert isinstance(cleaned, CleanResult)
    assert data_files(path) == files - set(cleaned.deleted)
    archived = table.archive()
    start = table.state().timeline.start or ""
    own = OwnTimeline.read(LocalStorage(str(path)), LayoutV8()).last_compaction
    assert own is not None
    assert isinstance(archived, ArchiveResult)
    assert start <= own.timestamp
    assert list((path / ".hoodie/metadata" / HISTORY).glob("*.parquet"))
    on = {"hoodie.metadata.enable": "true"}
    assert not differences(before, by_key(hudi_1_2.read(path, "snapshot", options=on)))
    assert {row["is_present_in_fs"] == row["is_present_in_metadata"] for row in _validated(hudi_1_2, path)} <= {True}
    writer.upsert(**metadata)
    after = by_key(hudi_1_2.read(path, "snapshot", options=on))
    assert not differences(after, by_key(hudi_1_2.read(path, "snapshot")))
    assert not differences(after, by_key(table.snapshot(session).toArrow()))


def _validated(hudi: Hudi, path: Path) -> list[dict[str, str]]:
    """Each file that Hudi finds in only one of the file system and its metadata table."""
    return call(hudi, path, "validate_metadata_table_files")


# ------------------------------------------------------------------------------------- savepoint, restore


@pytest.mark.parametrize("who", ["ours", "Hudi's"])
def test_a_savepoint_is_restored(path: Path, session: LocalSession, hudi_1_2: Hudi, who: str) -> None:
    """After the savepoint a compaction at an earlier instant was completed, and a later one, and writes."""
    ours = Ours(path, session, 9)
    for _ in range(3):
        ours.upsert()
    saved = ours.table.savepoint()
    before = ours.same(hudi_1_2)
    assert ours.compact(1) < saved
    ours.upsert()
    assert ours.compact(4) > saved
    ours.upsert("b")
    assert ours.same(hudi_1_2) != before
    ours.table.clean(retained=1)
    if who == "ours":
        ours.table.restore(saved)
    else:
        call(hudi_1_2, path, "rollback_to_savepoint", f"instant_time=>'{saved}'")
    assert ours.same(hudi_1_2) == before
    assert ours.table.validate() == ()
    ours.their_upsert(hudi_1_2)
    ours.same(hudi_1_2)
    ours.upsert()
    ours.compact(ours.number)
    ours.same(hudi_1_2)


def test_each_finishes_the_others_clean(path: Path, session: LocalSession, hudi_1_2: Hudi) -> None:
    """Ours died after publishing its clean: Hudi's next clean finishes it. Hudi's savepoint protects from ours."""
    ours = Ours(path, session, 9)
    for _ in range(3):
        ours.upsert()
        ours.compact(ours.number)
    call(hudi_1_2, path, "create_savepoint", f"commit_time=>'{ours.table.state().timeline.last_write}'")
    protected = {file for savepoint in read_savepoints(ours.table.state()) for file in savepoint.files}
    assert protected
    ours.upsert()
    ours.compact(ours.number)
    ours.upsert()
    ours.compact(ours.number)
    rehearsal = DyingStorage(str(copied(path, "rehearsal")))
    HudiTable(rehearsal, ours.table.config).clean(retained=1)
    deletions = [number for number, done in enumerate(rehearsal.operations, start=1) if done.startswith("delete p=")]
    dying: Storage = DyingStorage(str(path), deletions[1])
    with pytest.raises(Crash):
        HudiTable(dying, ours.table.config).clean(retained=1)
    [pending] = ours.table.state().timeline.pending(Action.CLEAN)
    before = ours.same(hudi_1_2)
    hudi_clean(hudi_1_2, path, "KEEP_LATEST_COMMITS", 1)
    assert pending.timestamp in {i.timestamp for i in ours.table.state().timeline.completed(Action.CLEAN)}
    assert ours.same(hudi_1_2) == before
    assert protected <= data_files(path)


@pytest.mark.parametrize("version", [8, 9])
def test_hudi_writes_into_an_empty_table_of_ours(
    hudi_1_2: Hudi, path: Path, version: int, session: LocalSession
) -> None:
    """It lists the timeline's folder before anything else, and fails where that is missing."""
    table = created(path, SCHEMA, partition_fields=["p"], data_latency=None, table_version=version, name="t")
    assert hudi_1_2.read(path).num_rows == 0
    writer = Writer(hudi_1_2, path, version)
    writer.upsert(**{"hoodie.metadata.enable": "true"})
    answer = by_key(hudi_1_2.read(path, options={"hoodie.metadata.enable": "true"}))
    assert len(answer) == 8
    assert not differences(answer, by_key(table.snapshot(session).toArrow()))
    assert table.validate() == ()
