"""Time travel and incremental queries against the plainest truth: what the snapshot was right after each commit.

Random tables live through upserts, late rows, ties, deletes, partial compactions, plans that wait while rows
are appended, rollbacks of the timeline into the archive, and slices that disappear. Whatever happens later, the
answer as of an instant is the recorded one, or a refusal that names an instant from which on all is there.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.model import Action
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.table.files.hidden import hidden_files
from hudi_assets.engine.timeline.archive.kind import TimelineFile
from hudi_assets.engine.timeline.instants import WRITES, format_instant
from tests.tables.local_session import LocalSession, install

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
COMMIT = "_hoodie_commit_time"
KEPT = ("id", "part", "ts", "v", COMMIT, "_hoodie_commit_seqno")
Rows = dict[str, tuple[Any, ...]]
_EPOCH_MS = 1_760_000_000_000
# So many tables; which ones is for tests/examples.py to say.
EXAMPLES = int(os.environ.get("QUERY_EXAMPLES", "15"))


# ------------------------------------------------------------------------------- what may happen


@dataclass(frozen=True)
class Upsert:
    """Rows of (key, lateness in seconds)."""

    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Delete:
    key: int
    with_order: bool


@dataclass(frozen=True)
class Compact:
    """Plan at a latency (s); execute it at once, or leave it pending."""

    latency: int
    execute: bool


@dataclass(frozen=True)
class Execute:
    pass


@dataclass(frozen=True)
class Overlap:
    """Two writers at once, of keys each: the first requested is completed last.

    `compact`: in between another engine plans and executes a compaction that does not wait for the first.
    Version 6 has no completion times: there the two come one after the other.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    compact: bool


_rows = st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0, 0, 1, 2, 5, 9])), min_size=1, max_size=4)
_keys = st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).map(tuple)
_upserts = st.builds(Upsert, _rows.map(tuple))
_steps = st.one_of(
    _upserts,
    _upserts,
    st.builds(Delete, st.integers(0, 7), st.booleans()),
    st.builds(Compact, st.sampled_from([0, 2, 4]), st.booleans()),
    st.just(Execute()),
    st.builds(Overlap, _keys, _keys, st.booleans()),
)
_lives = st.lists(_steps, min_size=3, max_size=14)
# Several slices of each group, with rows of their own: what a cleaner has something to take from.
_rounds = st.tuples(_upserts, st.lists(_steps, max_size=1), st.builds(Compact, st.sampled_from([0, 4]), st.just(True)))
_long_lives = st.lists(_rounds, min_size=2, max_size=5).map(
    lambda rounds: [step for upsert, others, compact in rounds for step in (upsert, *others, compact)]
)


@dataclass
class Life:
    """One table and what its snapshot was after each commit."""

    path: Path
    session: LocalSession
    carry_over: str
    block_format: str
    partitioned: bool
    buckets: int
    services: str
    version: int = 6
    ms: int = _EPOCH_MS
    clock: int = 100
    value: int = 0
    deleted_at: dict[int, int] = field(default_factory=dict)
    # By the instants of commits, and by the times of their completion.
    recorded: dict[str, Rows] = field(default_factory=dict)
    completed: dict[str, Rows] = field(default_factory=dict)
    # Commit → when it was completed.
    completions: dict[str, str] = field(default_factory=dict)
    compactions: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        HudiTable.create(
            str(self.path),
            SCHEMA,
            record_key=["id"],
            ordering_field="ts",
            partition_fields=["part"] if self.partitioned else [],
            buckets=self.buckets,
            table_version=self.version,
            clock="commit",
            event_time_unit="s",
            log_block_format=self.block_format,
        )
        alone = self.services != "shared" or self.carry_over == "symlink"
        settings = {
            "hudi_assets.carry.over": self.carry_over,
            "hudi_assets.table.services": "ours" if alone else "shared",
            "hudi_assets.exact.split": str(self.services == "exact split" and self.version == 6).lower(),
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
        }
        opened = HudiTable.open(str(self.path), settings=settings)
        self.table = HudiTable(opened._table.storage, opened.config, now_ms=self.tick)

    def tick(self) -> int:
        self.ms += 1
        return self.ms

    def run(self, steps: list[Any]) -> None:
        for step in steps:
            self.clock += 3
            if isinstance(step, Overlap):
                self.overlap(step)
            else:
                self.record(self.take(step))
                # Planning and executing change no answer.
                assert rows_of(self.table.snapshot_tasks()) == self.truth("9"), step
            assert hidden_files(self.table.state()) == (), step

    def record(self, instant: str | None) -> None:
        """Note the snapshot as what a commit left; a compaction's instant may lie in the past and leaves nothing."""
        if instant is None or instant in self.recorded or instant in self.compactions:
            return
        self.recorded[instant] = rows_of(self.table.snapshot_tasks())
        self.completions[instant] = self.table.state().timeline.completions.get(instant, instant)
        self.completed[self.completions[instant]] = self.recorded[instant]

    def overlap(self, step: Overlap) -> None:
        """The first writer's files are there, its instant is not on the timeline until the second is done."""
        # The file groups are there already: two writers that make them at once are in conflict.
        self.record(self.take(Upsert(tuple((key, 0) for key in {*step.first, *step.second}))))
        self.clock += 1
        first = self.take(Upsert(tuple((key, 0) for key in step.first)))
        assert first is not None
        self.clock += 1
        second = Upsert(tuple((key, 0) for key in step.second))
        if self.version == 6:
            self.record(first)
            self.record(self.take(second))
            return
        self.recorded[first] = rows_of(self.table.snapshot_tasks())
        folder = self.path / ".hoodie/timeline"
        hidden = sorted(folder.glob(f"{first}*"))
        for file in hidden:
            file.rename(self.path / ".hoodie" / file.name)
        instant = self.take(second)
        assert instant is not None
        without_first = rows_of(self.table.snapshot_tasks())
        if step.compact and self.table.pending_plan() is None:
            self.take(Compact(0, execute=True))
        for file in hidden:
            name = f"{first}_{self.now()}.deltacommit" if "_" in file.name else file.name
            (self.path / ".hoodie" / file.name).rename(folder / name)
        self.record(instant)
        self.completions[first] = self.table.state().timeline.completions[first]
        self.completed[self.completions[first]] = self.recorded[instant]
        self.completed[self.completions[instant]] = without_first

    def now(self) -> str:
        return format_instant(self.tick(), "UTC")

    def take(self, step: Any) -> str | None:
        moment = datetime.fromtimestamp(self.clock, UTC)
        pending = self.table.pending_plan()
        match step:
            case Upsert(picked):
                batch = [self.row(key, lateness, pending) for key, lateness in picked]
                return self.table.upsert(self.session, self.session.rows(batch, SCHEMA), clock_time=moment).instant
            case Delete(key, with_order):
                names = ["id", "part", *(["ts"] if with_order else [])]
                self.deleted_at[key] = self.clock
                batch = [{"id": f"k{key}", "part": f"p{key % 2}", "ts": self.clock}]
                frame = self.session.frame(pa.Table.from_pylist(batch, SCHEMA).select(names))
                return self.table.delete(self.session, frame, clock_time=moment).instant
            case Compact(latency, execute):
                plan = pending or self.table.plan_compaction(data_latency=latency * 1000)
                if isinstance(plan, NoPlan):
                    return None
                if self.version > 6:
                    self.compactions.add(plan.instant)
                if execute:
                    self.table.execute_compaction(self.session, plan.instant)
                return plan.instant
            case Execute():
                if pending is None:
                    return None
                self.table.execute_compaction(self.session, pending.instant)
                return None
        raise AssertionError(step)

    def row(self, key: int, lateness: int, pending: Plan | None) -> dict[str, object]:
        self.value += 1
        ts = self.clock - lateness
        if pending is not None:
            # An older row than a delete that a pending plan has taken: full compactions forget tombstones.
            ts = max(ts, self.deleted_at.get(key, 0) + 1)
        return {"id": f"k{key}", "part": f"p{key % 2}", "ts": ts, "v": self.value}

    # -- checks -----------------------------------------------------------------------------------

    def truth(self, t: str) -> Rows:
        known = [instant for instant in self.recorded if instant <= t]
        return self.recorded[max(known)] if known else {}

    def held_at(self, end: str) -> Rows:
        """What incremental queries start from: by completion where the table has completion times."""
        if self.version == 6:
            return self.truth(end)
        known = [time for time in self.completed if time <= end]
        return self.completed[max(known)] if known else {}

    def moments(self) -> list[str]:
        """Before everything, every instant, right after each, and the future."""
        known = {*self.recorded, *self.compactions}
        between = [str(int(instant) + 1) for instant in known]
        return ["20000101000000000", *sorted({*known, *between}), "29990101000000000"]

    def check_all(self) -> None:
        for t in self.moments():
            assert rows_of(self.table.time_travel_tasks(t)) == self.truth(t), t
        bounds = sorted(self.recorded if self.version == 6 else {*self.completed, *self.compactions})
        for begin, end in combinations(["000", *bounds], 2):
            self.check_range(begin, end)
        for begin in sorted({*self.recorded, *bounds}):
            self.check_range(begin, None)

    def check_range(self, begin: str, end: str | None) -> None:
        held = self.held_at(end or "9")
        low = "" if begin == "000" else begin
        expected = {k: r for k, r in held.items() if low < self.counted_at(r[KEPT.index(COMMIT)]) <= (end or "9")}
        assert rows_of(self.table.incremental_tasks(begin, end)) == expected, (begin, end)

    def counted_at(self, commit: str) -> str:
        return commit if self.version == 6 else self.completions[commit]

    def check_right_or_refused(self) -> int:
        """Each moment: the right answer or a refusal; the instant that it names, and all later ones, answer."""
        refused, moments, right = 0, self.moments(), set[str]()

        def check(moment: str, asked: str) -> None:
            if moment not in right:  # most are later than several that are refused
                assert rows_of(self.table.time_travel_tasks(moment)) == self.truth(moment), (moment, asked)
                right.add(moment)

        for t in moments:
            named = self.earliest_left(t)
            if named is None:
                check(t, t)
                continue
            refused += 1
            assert named > t
            for later in (named, *(m for m in moments if m > named)):
                check(later, t)
        return refused

    def earliest_left(self, t: str) -> str | None:
        """The instant that the refusal of t names; None where t is answered."""
        try:
            self.table.time_travel_tasks(t)
        except InvalidInput as error:
            return re.findall(r"earliest instant left is (\d+)", str(error))[0]
        return None

    # -- what others do to a table ----------------------------------------------------------------

    def remove(self, chosen: Iterator[bool], *, torn: bool) -> None:
        """Delete old slices by hand, as a cleaner does: whole ones, but for targets of symbolic links.

        `torn`: one file of each only, as a cleaner that died does.
        """
        state = self.table.state()
        targets = {f.link_target for files in state.listing.values() for f in files if f.link_target}
        for key, slices in sorted(state.view.groups.items()):
            merged = next(s for s in state.view.latest if (s.partition, s.file_id) == key)
            for slice_ in slices:
                if slice_.base_instant >= merged.base_instant or not next(chosen):
                    continue
                files = [f for f in (slice_.base_file, *slice_.log_files) if f and f.path not in targets]
                for file in files[:1] if torn else files:
                    (self.path / file.path).unlink()

    def archive(self, keep: int) -> int:
        """Move all but the newest `keep` writes off the timeline, into an archive as version 6 has it.

        What is unfinished, and the oldest savepoint, hold it back.
        """
        state = self.table.state()
        timeline = state.timeline
        writes = [i.timestamp for i in timeline.instants if i.action in WRITES]
        bounds = [i.timestamp for i in timeline.instants if not i.is_completed or i.action is Action.SAVEPOINT]
        gone = [t for t in writes[: max(0, len(writes) - keep)] if all(t < bound for bound in bounds)]
        folder = self.path / state.layout.timeline_folder
        files = [file for t in gone for file in sorted(folder.glob(f"{t}[._]*"))]
        if gone and self.version == 6:
            write_archive(self.path, dict.fromkeys(gone, "deltacommit"))
        elif gone:
            parsed = [(state.layout.parse_instant(file.name), file) for file in files]
            done = [TimelineFile(i, file.read_bytes(), None, file.name) for i, file in parsed if i is not None]
            state.layout.archive(state.config.properties).add(state.storage, done)
        for file in files:
            file.unlink()
        return len(gone)


def write_archive(path: Path, instants: dict[str, str]) -> None:
    schema = {
        "type": "record",
        "name": "HoodieArchivedMetaEntry",
        "fields": [{"name": "commitTime", "type": "string"}, {"name": "actionType", "type": "string"}],
    }
    content = struct.pack(">ii", 3, len(instants))
    for t, action in instants.items():
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"commitTime": t, "actionType": action})
        content += struct.pack(">i", len(out.getvalue())) + out.getvalue()
    header = {HeaderKey.INSTANT_TIME: max(instants), HeaderKey.SCHEMA: json.dumps(schema)}
    folder = path / ".hoodie/archived"
    folder.mkdir(exist_ok=True)
    name = f".commits_.archive.{len(list(folder.iterdir())) + 1}_1-0-1"
    (folder / name).write_bytes(encode_block(BlockType.AVRO_DATA, header, content))


def rows_of(tasks: list[ReadTask]) -> Rows:
    found: Rows = {}
    for task in tasks:
        for batch in read_task(task):
            for row in batch.select(list(KEPT)).to_pylist():
                assert row["id"] not in found, "a key came twice"
                found[row["id"]] = tuple(row[name] for name in KEPT)
    return found


@pytest.fixture(scope="module")
def local() -> Iterator[LocalSession]:
    with pytest.MonkeyPatch.context() as patch:
        yield install(patch.setattr)


_property = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # shrinking such a life takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_shapes = st.tuples(
    st.sampled_from(["hardlink", "symlink", "copy"]),
    st.sampled_from(["parquet", "avro"]),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.sampled_from(["shared", "ours", "exact split"]),
    st.sampled_from([6, 6, 8, 9, 9]),
)
Shape = tuple[str, str, bool, int, str, int]


def live(local: LocalSession, folder: str, shape: Shape, steps: list[Any]) -> Life:
    life = Life(Path(folder, "t"), local, *shape)
    life.run(steps)
    return life


@_property
@given(_shapes, _lives)
def test_every_answer_is_the_recorded_one(local: LocalSession, shape: Shape, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(local, folder, shape, steps).check_all()


@_property
@given(
    _shapes,
    _long_lives,
    st.sampled_from([None, None, 1, 2, 3, 5]),
    st.booleans(),
    st.lists(st.booleans(), min_size=3, max_size=8),
    st.booleans(),
)
def test_what_was_removed_is_refused_or_still_right(
    local: LocalSession,
    shape: Shape,
    steps: list[Any],
    keep: int | None,
    clean: bool,
    chosen: list[bool],
    torn: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = live(local, folder, shape, steps)
        if clean:
            life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=2)
        if keep is not None:
            life.archive(keep)
        # A clean that is archived was finished.
        life.remove(iter([*chosen, *[True] * 100]), torn=torn and keep is None)
        life.check_right_or_refused()


@_property
@given(_shapes, _long_lives, st.integers(0, 6), st.sampled_from([None, 1, 3]))
def test_cleaning_and_archiving_change_no_answer_but_to_a_refusal(
    local: LocalSession, shape: Shape, steps: list[Any], saved: int, keep: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = live(local, folder, shape, steps)
        completed = [i.timestamp for i in life.table.state().timeline.completed(*WRITES)]
        savepoint = life.table.savepoint(completed[min(saved, len(completed) - 1)])
        life.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
        if keep is not None:
            life.archive(keep)
        life.check_right_or_refused()
        assert rows_of(life.table.time_travel_tasks(savepoint)) == life.truth(savepoint)


@settings(_property, max_examples=max(1, EXAMPLES // 3))
@given(_shapes, _long_lives, _long_lives)
def test_the_table_s_own_cleans_and_archive(
    local: LocalSession, shape: Shape, steps: list[Any], later: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = live(local, folder, shape, steps)
        life.table.clean()
        life.table.archive()
        life.check_right_or_refused()
        life.run(later)
        life.table.clean()
        life.check_right_or_refused()
        life.table.archive()
        life.check_right_or_refused()
        newest = max(life.recorded)
        assert life.earliest_left(newest) is None


def test_a_dropped_partition_in_the_archive_is_missed(local: LocalSession, tmp_path: Path) -> None:
    """The groups that are left are older than the instant asked for; those that were dropped left no trace."""
    life = live(
        local,
        str(tmp_path),
        ("hardlink", "parquet", True, 1, "shared", 6),
        [Upsert(((0, 0), (1, 0))), Upsert(((0, 0),))],
    )
    first, second = sorted(life.recorded)
    dropped = str(int(first) + 1)
    for file in (life.path / ".hoodie").glob(f"{first}.*"):
        file.unlink()
    write_archive(life.path, {first: "deltacommit"})
    assert life.earliest_left(first) is None
    write_archive(life.path, {dropped: "replacecommit"})
    assert life.earliest_left(first) == dropped
    assert life.earliest_left(dropped) is None
    assert life.earliest_left(second) is None
    # An archive that cannot be read proves nothing.
    (life.path / ".hoodie/archived/.commits_.archive.9_1-0-1").write_bytes(
        encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: first, HeaderKey.SCHEMA: "{}"}, b"x")
    )
    assert life.earliest_left(first) == second
