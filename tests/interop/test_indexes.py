"""Tables of Hudi's other indexes (bloom, simple, global ones): read, compacted on event time, written by Hudi again.

Such an index looks for a key in base files only. So a base file of ours has to answer it: with a bloom filter where it
asks for one, and with every key of which a row is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.format.bloom import bloom_footer, key_range
from hudi_assets.engine.table.metadata.column_stats import ColumnStatsIndex
from hudi_assets.engine.table.metadata.own_timeline import OwnTimeline
from hudi_assets.engine.table.metadata.reader import ValidInstants
from hudi_assets.engine.table.settings.indexes import parse_index_settings
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key, differences
from tests.interop.readers import History, Readers, same_incremental, same_time_travel
from tests.interop.tables import compacted, copy_of, hudi_options, planned, rows
from tests.oracle import bloom as bloom_reference
from tests.tables import local_session
from tests.tables.local_session import LocalSession
from tests.tables.metadata import column_stats

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
}
# Each insert into a file group of its own: several file groups per partition.
NEW_GROUPS = {"hoodie.parquet.small.file.limit": "0"}
FEW_TASKS = {
    f"hoodie.{what}.parallelism": "2"
    for what in ("upsert.shuffle", "delete.shuffle", "bloom.index", "simple.index", "global.simple.index")
}
Expected = dict[int, tuple[int, int]]  # key number → (minute, mark)


@dataclass(frozen=True)
class Writer:
    """A release of Hudi and the table version that it writes."""

    release: str
    version: int

    def __str__(self) -> str:
        return f"{self.release}-v{self.version}"


WRITERS = [
    pytest.param(Writer("0.15.0", 6), id="0.15.0-v6"),
    *(
        pytest.param(writer, id=str(writer), marks=pytest.mark.slow)
        for writer in (Writer("1.2.0", 6), Writer("1.2.0", 8), Writer("1.2.0", 9))
    ),
]


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> LocalSession:
    """Our side without Spark: a step is Hudi's seconds and our milliseconds."""
    return local_session.install(monkeypatch.setattr)


@pytest.fixture
def writer() -> Writer:
    """Who writes in the tests that do not say."""
    return Writer("0.15.0", 6)


@pytest.fixture
def readers(writer: Writer, spark: LocalSession, request: pytest.FixtureRequest) -> Readers:
    """Ours, the writer's and hudi-rs: one JVM at a time."""
    hudi = request.getfixturevalue("hudi_0_15" if writer.release == "0.15.0" else "hudi_1_2")
    return Readers(spark, {writer.release: hudi})  # type: ignore[arg-type]


def always(minute: int) -> Callable[[int], int]:
    return lambda number: minute


class Story:
    """A table that Hudi writes, and what every row has to be: an oracle of plain events, in event-time order."""

    def __init__(self, readers: Readers, writer: Writer, path: Path, index: str, **more: str) -> None:
        self.hudi: Hudi = readers.hudi[writer.release]
        self.path, self.readers = path, readers
        self.version = {"hoodie.write.table.version": str(writer.version)}
        self.options = hudi_options(name="t") | {
            "hoodie.index.type": index,
            "hoodie.bloom.index.update.partition.path": "true",
            "hoodie.simple.index.update.partition.path": "true",
            **FEW_TASKS,
            **self.version,
            **more,
        }
        self.mark = 0
        self.alive: Expected = {}

    def upsert(self, numbers: list[int], minute: int) -> None:
        self.mark += 1
        self.hudi.write(self.path, rows(numbers, lambda n: minute + n, self.mark), self.options)
        for number in numbers:
            if number not in self.alive or self.alive[number][0] <= minute + number:
                self.alive[number] = (minute + number, self.mark)

    def delete(self, numbers: list[int], minute: int) -> None:
        keys = rows(numbers, lambda n: minute + n, 0)
        self.hudi.write(self.path, keys, {**self.options, "hoodie.datasource.write.operation": "delete"})
        for number in numbers:
            self.alive.pop(number, None)

    def upsert_by_us(self, numbers: list[int], minute: int, **settings: str) -> None:
        self.mark += 1
        table = self.open(**{"hoodie.index.type": self.options["hoodie.index.type"], **settings})
        session = local_session.LocalSession()
        table.upsert(session, session.frame(rows(numbers, lambda n: minute + n, self.mark)))
        for number in numbers:
            if number not in self.alive or self.alive[number][0] <= minute + number:
                self.alive[number] = (minute + number, self.mark)

    def delete_by_us(self, numbers: list[int], minute: int) -> None:
        table = self.open(**{"hoodie.index.type": self.options["hoodie.index.type"]})
        session = local_session.LocalSession()
        keys = rows(numbers, lambda n: minute + n, 0).select(["id", "p", "ts"])
        table.delete(session, session.frame(keys))
        for number in numbers:
            self.alive.pop(number, None)

    def expected(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for number, (minute, mark) in self.alive.items():
            (row,) = rows([number], always(minute), mark).to_pylist()
            found[row["id"]] = (row["p"], row["ts"], row["text"])
        return found

    def open(self, **settings: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**SETTINGS, **settings})

    def check(self, step: str) -> None:
        """Every reader has the oracle's rows, none twice (`by_key` finds that) nor in two partitions."""
        answer = self.readers.agree(self.open(), step)["snapshot"]
        assert len(answer) == len({key for _, key in answer}), f"{step}: a key is in two partitions"
        found = {key: (row["p"], row["ts"], row["text"]) for (_, key), row in answer.items()}
        assert found == self.expected(), step

    def compaction(self, op: str) -> list[tuple[str, str]]:
        done = self.hudi.compaction(
            self.path, op, **{"hoodie.index.type": self.options["hoodie.index.type"], **self.version}
        )
        return [(c["timestamp"], c["state"]) for c in done]


def footers(path: Path, instant: str) -> list[tuple[list[str], dict[str, str]]]:
    """Keys and footer of each base file of an instant."""
    found = []
    for file in sorted(path.rglob(f"*_{instant}.parquet")):
        with pq.ParquetFile(file) as opened:
            keys = opened.read(columns=["_hoodie_record_key"]).column(0).to_pylist()
            found.append((keys, {k.decode(): v.decode() for k, v in opened.metadata.metadata.items()}))
    return found


CASES = [
    pytest.param("BLOOM", {}, id="bloom"),
    pytest.param("BLOOM", NEW_GROUPS, id="bloom-several-groups", marks=pytest.mark.slow),
    pytest.param("SIMPLE", {}, id="simple", marks=pytest.mark.slow),
    pytest.param("GLOBAL_BLOOM", NEW_GROUPS, id="global-bloom", marks=pytest.mark.slow),
    pytest.param("GLOBAL_SIMPLE", {}, id="global-simple", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("index", "more"), CASES)
def test_hudi_goes_on_writing_after_our_compaction(
    index: str, more: dict[str, str], writer: Writer, path: Path, readers: Readers
) -> None:
    """Inserts, updates and deletes by Hudi between compactions of ours: no row is lost, doubled or wrong."""
    story = Story(readers, writer, path, index, **more)
    story.upsert(list(range(12)), 0)
    story.upsert([0, 1, 2, 12, 13], 30)
    story.upsert([3, 4, 5, 14], 60)
    story.upsert([0, 9], 90)
    table = story.open()
    story.check("written by Hudi")

    result = compacted(table, readers.spark, 40)
    assert result.logs_compacted > 0
    assert table.stats().remaining_log_files > 0, "nothing remains, so this tests too little"
    story.check("compacted by us")
    written = footers(path, result.instant)
    assert written
    for keys, footer in written:
        filter_ = bloom_reference.read(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
        assert all(filter_.might_contain(key) for key in keys)

    # Keys that only base files of ours have, keys that remaining logs have too, and new ones.
    story.upsert([0, 1, 3, 6, 7, 15, 16], 120)
    story.delete([8, 10], 150)
    story.check("Hudi wrote after our compaction")
    compacted(table, readers.spark, 100)
    # A global index of 1.2.0 gives a deleted key another file group: read-optimized, its old base row is still there.
    story.upsert([1, 11, 17] if index.startswith("GLOBAL") else [1, 8, 11, 17], 160)
    story.check("compacted again, and Hudi wrote")
    story.compaction("run")
    story.upsert([2, 5, 18], 200)
    story.check("Hudi's own full compaction and upsert")
    assert not table.validate()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_deleted_key_that_came_back_stays_findable(writer: Writer, path: Path, readers: Readers) -> None:
    """A selected log file deletes a key, a remaining one has it anew: its base row must not go yet.

    Without it Hudi would not find the key, and insert it into another file group: the row would come twice.
    """
    story = Story(readers, writer, path, "BLOOM", **NEW_GROUPS)
    story.upsert(list(range(6)), 0)
    story.delete([1], 20)
    story.upsert([1], 60)
    compacted(story.open(), readers.spark, 30)
    story.check("compacted by us")
    story.upsert([1, 2], 90)
    story.check("the key was written again")


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_answers_through_time_do_not_change(writer: Writer, path: Path, readers: Readers) -> None:
    """Base files of delta commits among the slices: time travel and incremental as in the uncompacted table."""
    story = Story(readers, writer, path, "BLOOM")
    story.upsert(list(range(6)), 0)
    story.upsert([0, 1, 6, 7], 30)
    story.upsert([0, 2, 3], 60)
    story.upsert([1, 4], 90)
    before, after = History(story.hudi, copy_of(path)), History(story.hudi, path)
    table = story.open()
    plan = planned(table, 65)
    same_time_travel(before, after)
    table.execute_compaction(readers.spark, plan.instant)
    same_time_travel(before, after)
    if writer.version == 6:  # on versions 8 and 9 ranges are of completion times: test_queries_v9.py
        same_incremental(before, after)
    for instant in before.instants():
        ours = by_key(table.time_travel(readers.spark, instant).toArrow())
        assert not differences(before.as_of(instant), ours), instant


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_hudi_executes_our_pending_plan(writer: Writer, path: Path, readers: Readers) -> None:
    story = Story(readers, writer, path, "BLOOM")
    story.upsert(list(range(9)), 0)
    story.upsert([0, 1, 2], 30)
    story.upsert([0, 4, 5], 60)
    plan = planned(story.open(), 45)
    story.upsert([2, 3, 9], 90)
    assert story.compaction("execute") == [(plan.instant, "COMPLETED")]
    story.upsert([0, 5, 10], 120)
    story.check("Hudi executed our plan and wrote")


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_the_record_index_still_finds_every_key(writer: Writer, path: Path, readers: Readers) -> None:
    """It names a key's file group, which a compaction does not change."""
    switches = ("enable", "record.index.enable", "global.record.level.index.enable")
    metadata = {f"hoodie.metadata.{switch}": "true" for switch in switches}
    story = Story(readers, writer, path, "RECORD_INDEX", **NEW_GROUPS, **metadata)
    story.upsert(list(range(6)), 0)
    story.upsert([0, 1, 2], 30)
    story.upsert([3, 4], 60)
    assert (path / ".hoodie/metadata/record_index").is_dir()
    compacted(story.open(), readers.spark, 40)
    story.upsert([0, 1, 3, 12], 90)
    story.check("Hudi wrote after our compaction")


BY_METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.enable.data.skipping": "true",
}


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_a_bloom_index_that_goes_by_the_metadata_table(writer: Writer, path: Path, readers: Readers) -> None:
    """It looks only into base files that column_stats has: ours have entries, which are those of Hudi itself."""
    story = Story(readers, writer, path, "BLOOM", **NEW_GROUPS, **BY_METADATA)
    story.upsert(list(range(12)), 0)
    story.upsert([0, 1, 2, 12, 13], 30)
    story.upsert([3, 4, 5, 14], 60)
    assert (path / ".hoodie/metadata/column_stats").is_dir()
    compacted(story.open(), readers.spark, 40)
    story.check("compacted by us")
    _same_statistics_as_hudis(story)
    story.upsert([0, 1, 3, 6, 12, 15], 90)
    story.check("Hudi wrote after our compaction")
    story.upsert_by_us([2, 3, 16], 100, **{"hudi_assets.metadata.switch.off": "true"})
    story.upsert([1, 2, 15, 16, 17], 120)
    story.check("Hudi wrote after our write")
    for number in range(18):
        _skips_rightly(story, number)
    compacted(story.open(), readers.spark, 110)
    for turn in range(6):  # until the metadata table has been compacted
        story.upsert([0, turn, 18 + turn], 130 + turn)
    story.check("Hudi went on")
    for number in range(18):
        _skips_rightly(story, number)


def _same_statistics_as_hudis(story: Story) -> None:
    """What the footers of Hudi's own base files say to us is what Hudi wrote of them."""
    theirs = {k: v for k, v in column_stats(story.open()).items() if not k[0].startswith(".")}
    state = story.open().state()
    own = OwnTimeline.read(state.storage, state.layout)
    index = ColumnStatsIndex.of(state.storage, state.layout, own, ValidInstants(own, state.timeline))
    assert index is not None
    names = {p: [f.name for f in files if f.name.endswith(".parquet")] for p, files in state.listing.items()}
    changes = [row["ColumnStatsMetadata"] for rows in index.changes(names, {}).values() for _, row in rows]
    ours = {(fields["fileName"], fields["columnName"]): fields for fields in changes}
    assert len({name for name, _ in ours}) > 3
    assert ours.keys() == theirs.keys()
    for key, fields in ours.items():
        plain = {name: value[1] if isinstance(value, tuple) else value for name, value in fields.items()}
        assert {name: plain[name] for name in theirs[key]} == theirs[key], key


def _skips_rightly(story: Story, number: int) -> None:
    """Filters on the record key and on another column together find the row, with data skipping on."""
    ((_, ts, text),) = [row for key, row in story.expected().items() if key == f"k{number}"]
    where = f"_hoodie_record_key = 'k{number}' and ts = {ts} and region > 'a'"
    found = story.hudi.read(story.path, "snapshot", options=BY_METADATA, where=where)
    assert found.column("text").to_pylist() == [text], where


@pytest.mark.parametrize("writer", [Writer("0.15.0", 6)])
def test_a_delta_commit_with_base_files_is_rolled_back(writer: Writer, path: Path, readers: Readers) -> None:
    """An insert makes base files in a delta commit, new ones and new versions: both go, the old ones count again."""
    story = Story(readers, writer, path, "BLOOM")
    story.upsert(list(range(6)), 0)
    before, alive = by_key(story.hudi.read(path)), dict(story.alive)
    story.upsert([0, 6, 7, 8], 30)
    table = story.open()
    newest = max(time for time, action, _ in story.hudi.timeline(path) if action == "deltacommit")
    assert list(path.rglob(f"*_{newest}.parquet")), "the commit wrote no base file: this tests nothing"
    table.rollback(newest)
    assert not list(path.rglob(f"*_{newest}.parquet"))
    after = readers.agree(table, "rolled back")
    assert not differences(before, after["snapshot"])
    story.alive = alive
    story.upsert([1, 9], 60)
    story.check("Hudi wrote again")
    assert not table.validate()


@pytest.mark.slow
@pytest.mark.parametrize("writer", [Writer("0.15.0", 6), Writer("1.2.0", 9)], ids=str)
@pytest.mark.parametrize(
    "bloom",
    [
        {"hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "50"},
        {"hoodie.index.bloom.num_entries": "10", "hoodie.bloom.index.filter.dynamic.max.entries": "25"},
    ],
    ids=["simple-filter", "dynamic-beyond-its-bound"],
)
def test_our_filter_is_hudis_byte_for_byte(bloom: dict[str, str], writer: Writer, path: Path, readers: Readers) -> None:
    keys = [f"k{n}" for n in range(40)] + ["ä" * n for n in range(1, 9)] + ["日本🚲", "🚲", "\ue000x", "x" * 100, "ÿþý"]
    batch = rows(range(len(keys)), lambda n: n, 0)
    batch = batch.set_column(0, batch.schema.field("id"), pa.array(keys))
    version = {"hoodie.write.table.version": str(writer.version)}
    options = hudi_options(name="t", partition="") | {"hoodie.index.type": "BLOOM"} | version | bloom
    readers.hudi[writer.release].write(path, batch, options)
    written = list(path.glob("*.parquet"))
    assert written
    for file in written:
        with pq.ParquetFile(file) as opened:
            column = opened.read(columns=["_hoodie_record_key"]).column(0)
            theirs = {k.decode(): v.decode() for k, v in opened.metadata.metadata.items()}
        ours = bloom_footer(column, parse_index_settings(bloom, "t").bloom) | key_range(column)
        assert {key: theirs.get(key) for key in ours} == ours
        assert ("hoodie_bloom_filter_type_code" in theirs) == ("hoodie_bloom_filter_type_code" in ours)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("index", ["BLOOM", pytest.param("SIMPLE", marks=pytest.mark.slow)])
def test_hudi_and_we_write_in_turn(index: str, writer: Writer, path: Path, readers: Readers) -> None:
    """Each updates and deletes what the other has inserted, and lets the other's small files grow."""
    story = Story(readers, writer, path, index)
    story.upsert(list(range(6)), 0)
    story.upsert_by_us([0, 1, 6, 7], 20)  # into Hudi's base files, which grow
    story.check("we wrote after Hudi")
    story.upsert([1, 6, 8], 40)
    story.delete([7], 50)
    story.check("Hudi wrote after us")
    story.upsert_by_us([2, 6, 7, 9, 10], 60)
    story.delete_by_us([3], 70)
    story.check("we wrote beside log files")
    compacted(story.open(), readers.spark, 45)
    story.upsert([2, 3, 7, 9, 11], 90)
    story.check("Hudi wrote after our compaction")
    story.upsert_by_us([0, 3, 11, 12], 110)
    story.compaction("run")
    story.upsert([0, 4, 12, 13], 130)
    story.check("Hudi compacted it all, and wrote")
    assert not story.open().validate()


@pytest.mark.parametrize("writer", [Writer("0.15.0", 6)])
def test_writing_such_a_table_is_refused_by_name(
    writer: Writer, path: Path, readers: Readers, spark: LocalSession
) -> None:
    story = Story(readers, writer, path, "SIMPLE")
    story.upsert([0, 1], 0)
    table = story.open(**{"hoodie.bucket.index.num.buckets": "2"})
    with pytest.raises(UnsupportedTable, match="not a bucket's"):
        table.upsert(spark, spark.frame(rows([0], lambda n: 9, 5)))
    story.check("nothing was written")
