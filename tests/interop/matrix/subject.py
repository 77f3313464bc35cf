"""A table of the matrix with its oracle: whatever either side does to it is told to the oracle, then compared."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.storage import Storage
from scripts.hudi_client import Hudi
from scripts.hudi_rows import Rows, by_key, differences, read_with_hudi_rs
from tests.interop.matrix import timeline_files
from tests.interop.matrix.kinds import Kind, Shape, options
from tests.interop.matrix.oracle import FIRST, Event, Group, Op, Oracle
from tests.interop.tables import EVERY_TYPE, MINUTE, START, row
from tests.tables.local_session import LocalSession

SCHEMA = EVERY_TYPE.append(pa.field("_hoodie_is_deleted", pa.bool_()))
# Of the incremental ranges that there are, each so-many-th is asked: a question of Hudi costs up to a second.
EVERY = int(os.environ.get("MATRIX_EVERY", "6"))
SETTINGS = {
    "hudi_assets.writers": "stopped",
    "hoodie.payload.event.time.field": "ts",
    "hudi_assets.event.time.unit": "ms",
}
Said = tuple[int, float]  # key number, event minute


@dataclass(frozen=True)
class Question:
    """One of the four queries. `begin` and `end` are where instants lie in ranges; `end` None: open."""

    query: str
    as_of: str | None = None
    begin: str = ""
    end: str | None = None

    def fields(self) -> dict[str, Any]:
        if self.query == "incremental":
            return {"query": self.query, "begin": self.begin, "end": self.end}
        return {"query": self.query} | ({"as_of": self.as_of} if self.as_of else {})


SNAPSHOT, READ_OPTIMIZED = Question("snapshot"), Question("read_optimized")
VIEWS = (SNAPSHOT, READ_OPTIMIZED)


def batch(rows: Sequence[Said], mark: int, *, deleted: Iterable[int] = ()) -> pa.Table:
    """Rows for (key number, event minute); those whose number is in `deleted` are tombstones."""
    gone = set(deleted)
    values = [{**row(number, minute, mark), "_hoodie_is_deleted": number in gone} for number, minute in rows]
    return pa.Table.from_pylist(values, SCHEMA)


def plain(rows: pa.Table) -> Rows:
    """Rows in the oracle's spelling: every column of the user's, and the commit time."""
    shown = [name for name in rows.schema.names if name != "_hoodie_commit_seqno"]
    return by_key(rows.select(shown)) if len(rows) else {}


def bucket(key: str, buckets: int) -> int:
    """Where Hudi's bucket index puts a key of ASCII: java.util.List.hashCode over one String."""
    code = 0
    for character in key:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return ((31 + code) & 0x7FFFFFFF) % buckets


@dataclass
class Subject:
    """One table. `hudi` gives the running Apache Hudi of a release. Of ranges each `every`-th is asked.

    `switch_off`: partitions of the metadata table that a write of ours would make untrue are switched off.
    """

    kind: Kind
    shape: Shape
    path: Path
    hudi: Callable[[str], Hudi]
    session: Any = field(default_factory=LocalSession)
    oracle: Oracle = field(default_factory=Oracle)
    mark: int = 0
    every: int = EVERY
    switch_off: bool = True

    # -- what Hudi does ---------------------------------------------------------------------------

    def __post_init__(self) -> None:
        self.oracle.by_0_x = self.kind.by_0_x and not (self._properties.exists() and self.is_ours)

    @property
    def _properties(self) -> Path:
        return self.path / ".hoodie/hoodie.properties"

    @property
    def writer(self) -> Hudi:
        return self.hudi(self.kind.release)

    def hudi_upserts(self, *rows: Said, deleted: Iterable[int] = (), **more: str) -> str:
        data = self._batch(rows, deleted)
        commit = self._told(lambda: self._hudi_writes(data, more), data, inserts_into_base=True)
        assert commit is not None, "Hudi wrote no commit"
        return commit

    def hudi_deletes(self, *numbers: int) -> str:
        """Hudi's own delete operation, which states no event time."""
        data = self._batch([(number, 0) for number in numbers])
        more = {"hoodie.datasource.write.operation": "delete"}
        commit = self._told(lambda: self._hudi_writes(data, more), data, deletes=Op.DELETE, inserts_into_base=True)
        assert commit is not None, "Hudi wrote no commit"
        return commit

    def _hudi_writes(self, data: pa.Table, more: Mapping[str, str]) -> None:
        mode = "append" if (self.path / ".hoodie").exists() else "overwrite"
        self.writer.write(self.path, data, options(self.kind, self.shape, **more), mode=mode)

    def unfinish(self, commit: str) -> None:
        """Hudi's newest write as it is right before its last word: its commit file is not there, its markers are."""
        file = timeline_files.completed_writes(self.path)[commit].path
        markers = self.path / ".hoodie/.temp" / commit
        kind = "CREATE" if self.kind.completion_times else "APPEND"
        for log in timeline_files.logs_of(self.path, commit):
            marker = markers / f"{log.relative_to(self.path)}.marker.{kind}"
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        file.unlink()
        timeline_files.checksum_of(file).unlink(missing_ok=True)
        self.oracle.took_back(commit)

    def hudi_compacts(self, op: str = "run") -> list[str]:
        """Hudi's `run_compaction` (schedule, execute, run); the compactions that it completed."""
        return self.compactions_told(lambda: self.hudi_compacts_untold(op))

    def hudi_compacts_untold(self, op: str) -> None:
        self.writer.compaction(self.path, op, **self.service_options())

    def hudi_cleans(self, retained: int = 1) -> None:
        """Hudi's cleaner, keeping so many versions of each file group."""
        self.call("run_clean", f"clean_policy=>'KEEP_LATEST_FILE_VERSIONS', file_versions_retained=>{retained}")

    def call(self, procedure: str, arguments: str = "") -> list[dict[str, str]]:
        """One of Hudi's procedures that take a table of the catalog; its rows.

        Making the catalog's entry writes hoodie.properties anew, without the keys that Hudi does not know (tried with
        0.15.0): the file is put back.
        """
        properties = self.path / ".hoodie/hoodie.properties"
        before = properties.read_bytes()
        name = "t" + str(abs(hash(str(self.path))))
        for key, value in self.service_options().items():
            self.writer.ask("sql", statement=f"set {key}={value}")
        self.writer.ask("sql", statement=f"create table if not exists {name} using hudi location '{self.path}'")
        if properties.read_bytes() != before:
            properties.write_bytes(before)
            properties.with_name(f".{properties.name}.crc").unlink(missing_ok=True)
        given = f"table=>'{name}'{', ' if arguments else ''}{arguments}"
        rows: list[dict[str, str]] = self.writer.ask("sql", statement=f"call {procedure}({given})")["rows"]
        return rows

    def service_options(self) -> dict[str, str]:
        """What Hudi's procedures have to be told, so that they leave the kind of table as it is."""
        return {
            "hoodie.metadata.enable": str(self.kind.metadata).lower(),
            "hoodie.write.table.version": str(self.kind.version),
            "hoodie.write.auto.upgrade": "false",
        }

    # -- what we do -------------------------------------------------------------------------------

    def open(self, storage: Storage | None = None) -> HudiTable:
        stated = {} if self.is_ours else {**SETTINGS, "hoodie.bucket.index.num.buckets": str(self.shape.buckets)}
        if self.switch_off:
            stated["hudi_assets.metadata.switch.off"] = "true"
        table = HudiTable.open(str(self.path), settings=stated)
        return table if storage is None else HudiTable(storage, table.config)

    @property
    def is_ours(self) -> bool:
        return b"hudi_assets.event.time.unit" in self._properties.read_bytes()

    def create(self) -> HudiTable:
        self.oracle.by_0_x = False
        return HudiTable.create(
            str(self.path),
            SCHEMA,
            record_key=["id"],
            ordering_field="ts",
            partition_fields=["p"] if self.shape.partitioned else [],
            buckets=self.shape.buckets,
            log_block_format=self.shape.log_blocks,
            event_time_unit="ms",
            table_version=self.kind.version,
            name="t",
        )

    def we_upsert(self, *rows: Said, deleted: Iterable[int] = (), storage: Storage | None = None) -> str:
        data = self._batch(rows, deleted)
        table = self.open(storage)
        commit = self._told(lambda: table.upsert(self.session, self.session.frame(data)), data)
        assert commit is not None
        return commit

    def we_delete(self, *rows: Said, with_time: bool = True) -> str:
        """Our delete: with the event time, or of whatever came before."""
        data = self._batch(rows)
        names = ["id", "p", "ts"] if with_time else ["id", "p"]
        op = Op.TOMBSTONE if with_time else Op.DELETE
        table = self.open()
        frame = self.session.frame(data.select(names if self.shape.partitioned else [n for n in names if n != "p"]))
        commit = self._told(lambda: table.delete(self.session, frame), data, deletes=op)
        assert commit is not None
        return commit

    def we_plan(self, minute: float, table: HudiTable | None = None) -> Plan:
        """Our plan at a threshold that must be due."""
        plan = (table or self.open()).plan_compaction(threshold=START + round(minute * MINUTE))
        assert isinstance(plan, Plan), plan
        return plan

    def we_execute(self, instant: str) -> None:
        table = self.open()
        done = self.compactions_told(lambda: table.execute_compaction(self.session, instant))
        assert done == [instant], f"executed {instant}, completed {done}"

    def we_compact(self, minute: float) -> Plan:
        """Plan and execute until nothing is left to do at the threshold; the first plan.

        On versions 8 and 9 file groups that need different instants are served one after the other.
        """
        first = self.we_plan(minute)
        plan: Plan | NoPlan = first
        while isinstance(plan, Plan):
            self.we_execute(plan.instant)
            plan = self.open().plan_compaction(threshold=START + round(minute * MINUTE))
        return first

    # -- telling the oracle -----------------------------------------------------------------------

    def _batch(self, rows: Sequence[Said], deleted: Iterable[int] = ()) -> pa.Table:
        self.mark += 1
        return batch(rows, self.mark, deleted=deleted)

    def _told(
        self, write: Callable[[], object], data: pa.Table, *, deletes: Op | None = None, inserts_into_base: bool = False
    ) -> str | None:
        """Run a write, and tell the oracle the commit that it completed; None where it completed none.

        One that died after its commit is told too: its rows count.
        """
        before = set(timeline_files.completed_writes(self.path)) if self.path.exists() else set()
        try:
            write()
        finally:
            commit = self.tell_write(before, data, deletes=deletes, inserts_into_base=inserts_into_base)
        return commit

    def tell_write(
        self, before: set[str], data: pa.Table, *, deletes: Op | None = None, inserts_into_base: bool = False
    ) -> str | None:
        new = [f for f in timeline_files.completed(self.path, "deltacommit").values() if f.requested not in before]
        assert len(new) <= 1, f"one write, and these are new: {new}"
        if not new:
            return None
        commit = new[0].requested
        self._completes(commit)
        # Hudi, which puts inserts into base files, writes a row that says it is a delete into a delete block.
        deleted = deletes or (Op.TOMBSTONE if inserts_into_base else Op.DELETED_ROW)
        rows = self._with_meta(data, commit).to_pylist()
        events = [self._event(values, deleted, every=deletes is not None) for values in rows]
        shown = plain(self._with_meta(data, commit))
        told = [
            Event(commit, op, group, key, time, shown[group[0], key] if op is Op.UPSERT else {})
            for op, group, key, time in events
        ]
        self.oracle.wrote(commit, told, inserts_into_base=inserts_into_base)
        return commit

    def _event(self, values: Mapping[str, Any], deleted: Op, *, every: bool) -> tuple[Op, Group, str, int]:
        op = deleted if every or values["_hoodie_is_deleted"] else Op.UPSERT
        group = (values["_hoodie_partition_path"], bucket(values["id"], self.shape.buckets))
        return op, group, values["id"], values["ts"]

    def _with_meta(self, data: pa.Table, commit: str) -> pa.Table:
        partitions = [f"p={p}" if self.shape.partitioned else "" for p in data["p"].to_pylist()]
        return (
            data.append_column("_hoodie_commit_time", pa.array([commit] * len(data)))
            .append_column("_hoodie_record_key", data["id"])
            .append_column("_hoodie_partition_path", pa.array(partitions))
        )

    def compactions_told(self, action: Callable[[], object]) -> list[str]:
        """Run something that may complete compactions, and tell the oracle those; also where it died after one."""
        before = set(timeline_files.completed(self.path, "commit"))
        try:
            action()
        finally:
            new = sorted(set(timeline_files.completed(self.path, "commit")) - before)
            for instant in new:
                self._completes(instant)
                self.oracle.compacted(timeline_files.compaction(self.path, instant))
        return new

    def _completes(self, instant: str) -> None:
        at = timeline_files.completed_writes(self.path)[instant].completed
        if at is not None:
            self.oracle.completions[instant] = at

    # -- asking and comparing ---------------------------------------------------------------------

    def questions(self) -> list[Question]:
        """All four queries: as of every instant, and over ranges, closed and open ones (each `every`-th).

        Which ones differs from call to call, as the table's history grows.
        """
        times = [FIRST, *self.oracle.times()]
        ranges = [*combinations(times, 2), *((begin, None) for begin in times)]
        asked = ranges[::-1][:: self.every]
        return [
            *VIEWS,
            *(Question("time_travel", as_of=instant) for instant in self.oracle.instants()),
            *(Question("incremental", begin=begin, end=end) for begin, end in asked),
        ]

    def answers_by_hudi(
        self, release: str, questions: Sequence[Question], *, metadata: bool | None = None
    ) -> list[pa.Table]:
        """Hudi's answers, through the metadata table where the kind has one (or as `metadata` says)."""
        listing = self.kind.metadata if metadata is None else metadata
        found = {"hoodie.metadata.enable": str(listing).lower()}
        return self.hudi(release).answers(self.path, [q.fields() for q in questions], found)

    def our_answers(self, questions: Sequence[Question]) -> list[pa.Table]:
        table = self.open()
        return [self._rows(table, self._tasks(table, question)) for question in questions]

    @staticmethod
    def _tasks(table: HudiTable, question: Question) -> list[ReadTask]:
        if question.query == "snapshot":
            return table.snapshot_tasks()
        if question.query == "read_optimized":
            return table.read_optimized_tasks()
        if question.query == "time_travel":
            assert question.as_of is not None
            return table.time_travel_tasks(question.as_of)
        return table.incremental_tasks(question.begin, question.end)

    @staticmethod
    def _rows(table: HudiTable, tasks: list[ReadTask]) -> pa.Table:
        return pa.Table.from_batches([b for task in tasks for b in read_task(task)], table.schema())

    def right(
        self, step: str, *, releases: Iterable[str] | None = None, questions: Sequence[Question] | None = None
    ) -> None:
        """Hudi's answers are the oracle's: of the writer's release, or of these; by default all four queries."""
        asked = self.questions() if questions is None else questions
        for release in [self.kind.release] if releases is None else releases:
            self.compare(f"{step}, Hudi {release}", asked, self.answers_by_hudi(release, asked))

    def ours_right(self, step: str, questions: Sequence[Question] | None = None) -> None:
        """Our answers are the oracle's."""
        asked = self.questions() if questions is None else questions
        self.compare(f"{step}, our engine", asked, self.our_answers(asked), late_rows=False)

    def hudi_rs_right(self, step: str) -> None:
        """hudi-rs's two views are the oracle's.

        Where it goes by the metadata table (versions 8 and 9), hudi-rs 0.5 shows no file group that is log files alone.
        """
        lacks = self._without_base_file() if self.kind.metadata and self.kind.completion_times else frozenset()
        wrong = []
        for question in VIEWS:
            right = {key: row for key, row in self.right_answer(question).items() if self._group_of(key) not in lacks}
            wrong += differences(right, plain(read_with_hudi_rs(str(self.path), question.query)))
        assert not wrong, f"{self.kind.name}, {self.shape.name}, {step}, hudi-rs:\n" + "\n".join(wrong)

    def _without_base_file(self) -> frozenset[Group]:
        found = [f for f in self.path.rglob("*-0_*") if ".hoodie" not in f.relative_to(self.path).parts]
        kinds: dict[Group, set[str]] = {}
        for file in found:
            partition = str(file.parent.relative_to(self.path)).removeprefix(".")
            number = int(file.name.lstrip(".")[:8])
            if not file.name.endswith(".crc"):
                kinds.setdefault((partition, number), set()).add("log" if file.name.startswith(".") else "base")
        return frozenset(group for group, has in kinds.items() if "base" not in has)

    def _group_of(self, key: tuple[str, str]) -> Group:
        return key[0], bucket(key[1], self.shape.buckets)

    def compare(
        self, who: str, questions: Sequence[Question], answers: Sequence[pa.Table], *, late_rows: bool = True
    ) -> None:
        wrong = []
        for question, answer in zip(questions, answers, strict=True):
            wrong += [f"{question}: {line}" for line in self.unlike(question, plain(answer), late_rows)]
        assert not wrong, f"{self.kind.name}, {self.shape.name}, {who}:\n" + "\n".join(wrong[:12])

    def unlike(self, question: Question, shown: Rows, late_rows: bool) -> list[str]:
        """Where an answer is not the oracle's; Hudi's incremental query may show late rows beside."""
        expected = self.right_answer(question)
        if late_rows and question.query == "incremental":
            may = self.oracle.late_rows(question.begin, question.end)
            shown = {key: row for key, row in shown.items() if key in expected or may.get(key) != row}
        return differences(expected, shown, limit=3)

    def right_answer(self, question: Question) -> Rows:
        if question.query == "snapshot":
            return dict(self.oracle.snapshot())  # type: ignore[arg-type]
        if question.query == "read_optimized":
            return dict(self.oracle.read_optimized())  # type: ignore[arg-type]
        if question.query == "time_travel":
            return dict(self.oracle.snapshot(question.as_of))  # type: ignore[arg-type]
        return dict(self.oracle.incremental(question.begin, question.end))  # type: ignore[arg-type]

    def metadata_table_right(self, step: str) -> None:
        """Hudi's own comparison of its metadata table with the files finds nothing."""
        if self.kind.metadata:
            found = self.call("validate_metadata_table_files")
            assert not found, f"{self.kind.name}, {step}: {found}"

    # -- copies -----------------------------------------------------------------------------------

    def copied(self, to: Path) -> Subject:
        """The same table with the same past at another path."""
        shutil.copytree(self.path, to, symlinks=True)
        return replace(self, path=to, oracle=copy.deepcopy(self.oracle))
