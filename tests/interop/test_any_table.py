"""What the lives of the zoo leave out: plans that Hudi executes in a Spark of its own, and feeds of change data.

Hudi writes five commits: rows, an update of some columns, a late one, a delete and an update. Here the table is looked
at; the native executor refuses it by name before anything is written; a plan is made, and Hudi executes it. Then Hudi's
own queries give what they gave, and the freshness is what the rows written say. `tests/interop/zoo` has many more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, NoPlan, Plan, UnsupportedTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.transaction.clean import CleanResult
from scripts.hudi_client import Hudi, bundle
from tests.interop.tables import MINUTE, START
from tests.interop.test_hudi_executor import compact
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

THRESHOLD = START + 40 * MINUTE
LATENCY_MS = 3_600_000
STATED = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
    "hudi_assets.data.latency": "1h",
    "hudi_assets.query.grace": "0s",
}
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
}
PAYLOAD = "hoodie.datasource.write.payload.class"
ORDERING = "hoodie.datasource.write.precombine.field"
VERSION = "hoodie.write.table.version"
_MODEL = "org.apache.hudi.common.model."
More = Callable[[int, int, str], dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """A configuration. `words`: why it is not merged here. `more`: further columns, by key, batch and kind of batch.

    With them a delete is a row that says so.
    """

    name: str
    words: str
    options: Mapping[str, str] = field(default_factory=dict)
    release: str = "1.2.0"
    more: More | None = None

    def write(self, hudi: Hudi, path: Path) -> None:
        options = self.all_options()
        for mark, (numbers, minute, kind) in enumerate(BATCHES):
            deletes = kind == "D" and self.more is None
            given = {"hoodie.datasource.write.operation": "delete"} if deletes else {}
            hudi.write(path, self.rows(numbers, minute, mark, kind), {**options, **given})

    def all_options(self) -> dict[str, str]:
        return {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": "id",
            ORDERING: "ts",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            VERSION: "9",
            **BUCKETS,
            **self.options,
        }

    def rows(self, numbers: Iterable[int], minute: int, mark: int, kind: str) -> pa.Table:
        # An update of some columns: the other is null, its default.
        some = {"a": mark % 2 == 1, "b": mark == 2} if kind == "U" else {"a": True, "b": True}
        rows = [
            {
                "id": f"k{n}",
                "p": "ab"[n % 2],
                "ts": START + (minute + n) * MINUTE,
                "a": f"{mark}-{n}" if some["a"] else None,
                "b": mark * 100 + n if some["b"] else None,
                **(self.more(n, mark, kind) if self.more else {}),
            }
            for n in numbers
        ]
        more = self.more(0, 0, "I") if self.more else {}
        kinds = [pa.field(name, pa.int64() if isinstance(value, int) else pa.string()) for name, value in more.items()]
        return pa.Table.from_pylist(rows, pa.schema([*COLUMNS, *kinds]))


COLUMNS = (
    pa.field("id", pa.string()),
    pa.field("p", pa.string()),
    pa.field("ts", pa.int64()),
    pa.field("a", pa.string()),
    pa.field("b", pa.int64()),
)
# Keys, the minute of the first one's event, and what is done. The third batch is late.
BATCHES = ((range(8), 0, "I"), ([0, 1, 2, 3], 30, "U"), ([2, 5], 20, "U"), ([4], 58, "D"), ([1, 6], 90, "U"))
LATE = 22


def change(number: int, mark: int, kind: str) -> dict[str, Any]:
    return {"Op": kind}


CELLS = (
    Cell(
        "partial payload, v6 of 0.15.0",
        "PartialUpdateAvroPayload",
        {PAYLOAD: _MODEL + "PartialUpdateAvroPayload", VERSION: "6"},
        release="0.15.0",
    ),
    Cell("AWS DMS, v8", "AWSDmsAvroPayload", {PAYLOAD: _MODEL + "AWSDmsAvroPayload", VERSION: "8"}, more=change),
)


def of(cell: Cell) -> Any:
    return pytest.param(cell, id=cell.name, marks=pytest.mark.slow)


@dataclass(frozen=True)
class Answers:
    """What Hudi's queries give: snapshot, time travel to each commit, ranges of commits (`inner`: also one within)."""

    hudi: Hudi
    path: Path
    instants: tuple[str, ...]
    inner: bool = True

    @classmethod
    def of(cls, hudi: Hudi, path: Path, *, inner: bool = True) -> Answers:
        return cls(hudi, path, tuple(t for t, action, _ in hudi.timeline(path) if action == "deltacommit"), inner)

    def ask(self) -> list[list[tuple[Any, ...]]]:
        last = self.instants[-1]
        ranges = [{"query": "incremental", "begin": "000", "end": last}]
        if self.inner:
            ranges += [{"query": "incremental", "begin": self.instants[1], "end": self.instants[-2]}]
        past = [{"query": "time_travel", "as_of": instant} for instant in self.instants]
        asked = [{"query": "snapshot"}, *past, *ranges]
        return [plain(rows) for rows in self.hudi.answers(self.path, asked)]


def plain(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows' own columns, and the commit of each."""
    names = sorted(n for n in rows.column_names if not n.startswith("_hoodie") or n == "_hoodie_commit_time")
    return sorted((tuple(row[name] for name in names) for row in rows.to_pylist()), key=str)


def files(path: Path) -> list[str]:
    """What is written to a table, but for what a look keeps beside it."""
    return sorted(str(f) for f in path.rglob("*") if ".aux" not in f.parts and f.suffix != ".crc")


def is_looked_at(path: Path, words: str) -> None:
    """Every look answers, and the native executor refuses before anything is written."""
    table, before = HudiTable.open(str(path), settings=STATED), files(path)
    promise = table.freshness()
    assert promise.freshness == START + LATE * MINUTE - 1, promise
    assert table.validate() == ()
    assert table.stats().remaining_log_files > 0
    assert isinstance(table.plan_compaction(threshold=THRESHOLD, dry_run=True), Plan)
    due = table.look().due
    assert isinstance(due, NoPlan), due
    for said in (words, "hudi_assets.executor=hudi"):
        assert said in due.reason
        with pytest.raises(UnsupportedTable, match=said):
            table.plan_compaction(threshold=THRESHOLD)
    assert files(path) == before


def executed(cell: Cell, path: Path) -> None:
    """Plan here, let Hudi execute, in a Spark of its own."""
    settings = {**STATED, "hudi_assets.executor": "hudi", "hoodie.index.type": "BUCKET"}
    done = compact(path, THRESHOLD, jar=str(bundle(cell.release)), **settings)
    assert sum(op["logs_compacted"] for op in done.get("operations", ())) > 0, done


def promise_holds(cell: Cell, hudi: Hudi, path: Path) -> None:
    """The freshness is what the written rows say, and the read-optimized view holds what it promises."""
    table = HudiTable.open(str(path), settings=STATED)
    assert table.state().timeline.completed(Action.COMMIT)
    assert not table.state().timeline.pending_compactions
    assert table.validate() == ()
    promise = table.freshness()
    assert table.stats().remaining_log_files == 0
    assert promise.freshness == promise.computed_at - LATENCY_MS
    assert promise.freshness is not None
    written = [(n, START + (minute + n) * MINUTE) for numbers, minute, _ in BATCHES for n in numbers]
    later = {f"k{n}" for n, at in written if at > promise.freshness}
    shown, rows = (
        [row for row in hudi.read(path, query).to_pylist() if row["id"] not in later]
        for query in ("read_optimized", "snapshot")
    )
    own = ("id", "p", "ts", "a", "b")
    assert sorted([r[c] for c in own] for r in shown) == sorted([r[c] for c in own] for r in rows)


@pytest.mark.parametrize("cell", map(of, CELLS))
def test_planned_here_and_executed_by_hudi(cell: Cell, path: Path, request: pytest.FixtureRequest) -> None:
    hudi = request.getfixturevalue("hudi_1_2" if cell.release == "1.2.0" else "hudi_0_15")
    cell.write(hudi, path)
    is_looked_at(path, cell.words)
    answers = Answers.of(hudi, path)
    before = answers.ask()
    executed(cell, path)
    assert answers.ask() == before
    promise_holds(cell, hudi, path)


# -- change data


CHANGES = (
    pytest.param("1.2.0", "9", "SIMPLE", id="1.2.0, v9, simple"),
    pytest.param("1.2.0", "9", "BUCKET", id="1.2.0, v9, bucket", marks=pytest.mark.slow),
    pytest.param("0.15.0", "6", "SIMPLE", id="0.15.0, v6, simple", marks=pytest.mark.slow),
    pytest.param("0.15.0", "6", "BUCKET", id="0.15.0, v6, bucket", marks=pytest.mark.slow),
)


@pytest.mark.parametrize(("release", "version", "index"), CHANGES)
def test_change_data(
    release: str, version: str, index: str, path: Path, session: LocalSession, request: pytest.FixtureRequest
) -> None:
    """Natively compacted, in part and whole, and cleaned: Hudi's queries and its feed of changes stay."""
    hudi = request.getfixturevalue("hudi_1_2" if release == "1.2.0" else "hudi_0_15")
    given = {"hoodie.table.cdc.enabled": "true", VERSION: version, "hoodie.index.type": index}
    cell = Cell("change data", "", given, release=release)
    cell.write(hudi, path)
    answers, feeds = Answers.of(hudi, path, inner=False), feeds_of(hudi, path)
    before, changes = answers.ask(), [feed() for feed in feeds]
    assert all(changes)
    for threshold in (THRESHOLD, None):
        table = HudiTable.open(str(path), settings=STATED)
        assert plain(table.snapshot(session).toArrow()) == before[0]
        plan = table.plan_compaction(threshold=threshold)
        assert isinstance(plan, Plan)
        table.execute_compaction(session, plan.instant)
        assert table.validate() == ()
        assert answers.ask() == before
        assert [feed() for feed in feeds] == changes
    # New keys go into small base files, where the index finds keys in base files: Hudi writes their changes beside.
    hudi.write(path, cell.rows(range(8, 12), 95, 7, "I"), cell.all_options())
    cleaned = HudiTable.open(str(path), settings=STATED).clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert isinstance(cleaned, CleanResult)
    assert HudiTable.open(str(path), settings=STATED).validate() == ()
    snapshot = plain(HudiTable.open(str(path)).snapshot(session).toArrow())
    assert snapshot == plain(hudi.read(path))
    slices = {base.path.rsplit("_", 1)[1].split(".")[0] for base in HudiTable.open(str(path)).state().view.base_files}
    assert {file.name.split("_")[1].split(".")[0] for file in path.rglob("*.cdc")} <= slices
    hudi.write(path, cell.rows([1, 2], 120, 8, "U"), cell.all_options())
    last = hudi.timeline(path)[-2][0] if version == "6" else answers.instants[-1]
    assert feed_since(hudi, path, last)


def feeds_of(hudi: Hudi, path: Path) -> list[Callable[[], list[str]]]:
    """Hudi's feed of changes since each of the table's commits but the last."""
    table = HudiTable.open(str(path))
    commits = table.state().timeline.completed(Action.DELTA_COMMIT)
    begins = ["000", *((commit.completion or commit.timestamp) for commit in commits[:-1])]
    return [partial(feed_since, hudi, path, begin) for begin in begins]


def feed_since(hudi: Hudi, path: Path, begin: str) -> list[str]:
    options = {"hoodie.datasource.query.incremental.format": "cdc"}
    return sorted(map(str, hudi.read(path, "incremental", begin=begin, end=None, options=options).to_pylist()))
