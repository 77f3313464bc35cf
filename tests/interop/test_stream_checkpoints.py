"""Hudi Streamer and Spark's streaming sink keep how far they have read in their commits' metadata: they go on from it
whatever we do to the table between their commits.

The sink is Hudi's own. Hudi Streamer could be had from no registry: Hudi's batch writer leaves the streamer's keys in
its commits, and they are looked for as the streamer does (`hudi_server.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.model import NothingToDo
from hudi_assets.engine.transaction.clean import CleanResult
from scripts.hudi_client import Hudi
from tests.interop.matrix import timeline_files
from tests.interop.matrix.conftest import FIXTURES
from tests.interop.matrix.kinds import Kind, Shape, options
from tests.interop.matrix.subject import VIEWS, Subject, batch
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

SHAPE = Shape()
V1, V2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"
SOON = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
AT_ONCE = {"hudi_assets.query.grace": "0s"}
BEYOND = {"hudi_assets.archive.beyond.checkpoint": "true"}
OWN = "hoodie.datasource.write.streaming.checkpoint.identifier"
KINDS = [
    pytest.param(Kind("0.15.0", 6, metadata=False), V1, id="0.15.0-v6"),
    pytest.param(Kind("0.15.0", 6, metadata=True), V1, id="0.15.0-v6-metadata", marks=pytest.mark.slow),
    pytest.param(Kind("1.2.0", 6, metadata=False), V1, id="1.2.0-v6", marks=pytest.mark.slow),
    pytest.param(Kind("1.2.0", 8, metadata=False), V2, id="1.2.0-v8", marks=pytest.mark.slow),
    pytest.param(Kind("1.2.0", 9, metadata=False), V1, id="1.2.0-v9-first-key", marks=pytest.mark.slow),
    pytest.param(Kind("1.2.0", 9, metadata=False), V2, id="1.2.0-v9"),
    pytest.param(Kind("1.2.0", 9, metadata=True), V2, id="1.2.0-v9-metadata", marks=pytest.mark.slow),
]
Running = Callable[[str], Hudi]


@pytest.fixture
def hudi(request: pytest.FixtureRequest, session: LocalSession) -> Running:
    def running(release: str) -> Hudi:
        started: Hudi = request.getfixturevalue(FIXTURES[release])
        return started

    return running


def housekeeper(table: Subject, **settings: str) -> HudiTable:
    one = table.open()
    return HudiTable.open(str(table.path), settings={**dict(one.config.properties), **SOON, **AT_ONCE, **settings})


def found(table: Subject, reader: str = "streamer") -> str | None:
    """From where the stream goes on."""
    answer: str | None = table.writer.ask("checkpoints", path=str(table.path), identifier="ours")[reader]
    return answer


class Streamer:
    """What Hudi Streamer leaves: each round goes on from the checkpoint of the one before."""

    def __init__(self, table: Subject, key: str) -> None:
        self.table, self.key, self.rounds = table, key, 0

    def round(self, *rows: tuple[int, float]) -> str:
        assert self.goes_on()
        self.rounds += 1
        prefix = self.key.partition(".")[0] + "."
        noted = {"hoodie.datasource.write.commitmeta.key.prefix": prefix, self.key: str(self.rounds)}
        return self.table.hudi_upserts(*rows, deleted=(), **noted)

    def goes_on(self) -> bool:
        return found(self.table) == str(self.rounds) if self.rounds else not self.table.path.exists()


@pytest.mark.parametrize(("kind", "key"), KINDS)
def test_the_streamer_goes_on(kind: Kind, key: str, hudi: Running, path: Path) -> None:
    table = Subject(kind, SHAPE, path, hudi)
    streamer = Streamer(table, key)
    streamer.round(*((number, number) for number in range(12)))
    streamer.round((0, 30), (1, 31), (4, 34), (13, 35))
    streamer.round((0, 60), (3, 61), (14, 62))
    plan = table.we_plan(40)
    assert streamer.goes_on(), "a plan is pending"
    streamer.round((0, 90), (6, 91), (1, 33))
    table.we_execute(plan.instant)
    assert streamer.goes_on(), "a part was compacted"
    table.right("a part was compacted")
    table.ours_right("a part was compacted")
    streamer.round((0, 95), (7, 96))
    table.we_compact(200)
    assert streamer.goes_on(), "all was compacted"
    table.right("all was compacted")
    table.we_upsert((0, 100), (20, 101))
    assert streamer.goes_on(), "we wrote"
    streamer.round((1, 110), (21, 111))
    table.right("we wrote, and the streamer went on")
    table.ours_right("we wrote, and the streamer went on")
    kept_through_housekeeping(table, streamer)


def kept_through_housekeeping(table: Subject, streamer: Streamer) -> None:
    """Cleaned and archived, while others write more than an archiving keeps."""
    assert "Hudi Streamer" in {writer.name for writer in table.open().profile().writers}
    table.we_compact(200)
    assert isinstance(housekeeper(table).clean(), CleanResult)
    assert streamer.goes_on(), "cleaned"
    last = max(timeline_files.completed(table.path, "deltacommit"))
    for number in range(5):
        table.we_upsert((number, 120 + number))
    table.we_compact(200)
    done = housekeeper(table).archive()
    assert isinstance(done, ArchiveResult)
    assert last not in done.instants
    assert streamer.goes_on(), "archived"
    table.right("archived", questions=VIEWS)
    streamer.round((2, 130), (22, 131))
    done = housekeeper(table).archive()
    assert isinstance(done, ArchiveResult | NothingToDo)
    assert streamer.goes_on(), "archived again"
    table.right("the streamer went on", questions=VIEWS)
    table.ours_right("the streamer went on", questions=VIEWS)
    assert not table.open().validate()


@pytest.mark.parametrize("beyond", ["we, as its owner says", "Hudi"])
def test_a_checkpoint_that_was_archived_is_lost(beyond: str, hudi: Running, path: Path) -> None:
    """What our archiver is kept from, and Hudi's own is not."""
    table = Subject(Kind("1.2.0", 9, metadata=False), SHAPE, path, hudi)
    streamer = Streamer(table, V2)
    streamer.round((0, 0), (1, 1))
    busy = {"hoodie.archive.automatic": "true", "hoodie.clean.automatic": "true"} if beyond == "Hudi" else {}
    for number in range(8):
        table.hudi_upserts((number, 10 + number), deleted=(), **{**SOON, **busy})
    if beyond != "Hudi":
        assert isinstance(housekeeper(table).archive(), NothingToDo)
        assert streamer.goes_on()
        assert isinstance(housekeeper(table, **BEYOND).archive(), ArchiveResult)
    assert found(table) is None


class Sink:
    """Spark's streaming sink on a folder: each file is a batch."""

    def __init__(self, table: Subject, folder: Path) -> None:
        self.table, self.folder, self.batches = table, folder, -1
        self.source.mkdir()

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def batch(self, *rows: tuple[int, float]) -> None:
        self.batches += 1
        self.table.mark += 1
        data = batch(rows, self.table.mark)
        pq.write_table(data, self.source / f"{self.batches}.parquet")
        before = set(timeline_files.completed_writes(self.table.path)) if self.table.path.exists() else set()
        self.run()
        assert self.table.tell_write(before, data, inserts_into_base=True) is not None

    def run(self) -> None:
        more = {OWN: "ours", "hoodie.datasource.compaction.async.enable": "false"}
        told = options(self.table.kind, SHAPE, **more)
        folders = {"source": str(self.source), "checkpoint": str(self.folder / "checkpoint")}
        self.table.writer.ask("stream", path=str(self.table.path), options=told, **folders)

    def dies_before_sparks_last_word(self) -> None:
        """Hudi has committed the batch, and Spark has not noted that: it is run again."""
        (self.folder / f"checkpoint/commits/{self.batches}").unlink()
        (self.folder / f"checkpoint/commits/.{self.batches}.crc").unlink(missing_ok=True)

    def runs_again(self) -> bool:
        """Whether a batch that was committed is committed once more."""
        before = set(timeline_files.completed(self.table.path, "deltacommit"))
        self.run()
        return set(timeline_files.completed(self.table.path, "deltacommit")) != before


@pytest.mark.parametrize(
    "kind", [Kind("0.15.0", 6, metadata=False), Kind("1.2.0", 9, metadata=False)], ids=lambda kind: kind.name
)
def test_the_sink_goes_on(kind: Kind, hudi: Running, path: Path, tmp_path: Path) -> None:
    table = Subject(kind, SHAPE, path, hudi)
    sink = Sink(table, tmp_path)
    sink.batch(*((number, number) for number in range(9)))
    sink.batch((0, 30), (1, 31))
    plan = table.we_plan(40)
    sink.batch((0, 60), (2, 61))
    table.we_execute(plan.instant)
    table.we_compact(200)
    sink.dies_before_sparks_last_word()
    assert not sink.runs_again(), "behind our compactions"
    assert found(table, "sink") == "2"
    for number in range(6):
        table.we_upsert((number, 70 + number))
    table.we_compact(200)
    assert "Spark Structured Streaming" in {writer.name for writer in table.open().profile().writers}
    assert isinstance(housekeeper(table).clean(), CleanResult)
    assert isinstance(housekeeper(table).archive(), ArchiveResult)
    sink.dies_before_sparks_last_word()
    assert not sink.runs_again(), "behind our archiving"
    sink.batch((0, 90), (3, 91))
    table.right("the sink went on", questions=VIEWS)
    table.ours_right("the sink went on", questions=VIEWS)
    for number in range(6):
        table.we_upsert((number, 100 + number))
    table.we_compact(200)
    assert isinstance(housekeeper(table, **BEYOND).archive(), ArchiveResult)
    sink.dies_before_sparks_last_word()
    assert sink.runs_again(), "the checkpoint was archived, as its owner says"
