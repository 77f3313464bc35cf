"""A table as it stands: timeline, commits, plans, file view and what is known of each log file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from hudi_assets.engine.avro import schema as avro_schema
from hudi_assets.engine.collector import no_collecting
from hudi_assets.engine.compaction.strategy import LogSummary
from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.event_time.units import EventTimeUnit, unit_of
from hudi_assets.engine.layout.seam import Layout
from hudi_assets.engine.logs.reader import CommittedInstants, read_summary_from_headers, scan_summary
from hudi_assets.engine.model import NO_THRESHOLD, Action, BaseFile, Instant, LogFile, Plan, State
from hudi_assets.engine.schema import evolution
from hudi_assets.engine.schema.schema_on_read import schema_on_read
from hudi_assets.engine.settings.config import EVENT_TIME_FIELD, TableConfig
from hudi_assets.engine.slices.file_view import FileView, GroupKey, build_view
from hudi_assets.engine.slices.listing import DataFiles, parse, walk
from hudi_assets.engine.storage import SCRATCH, FileInfo, Storage
from hudi_assets.engine.timeline.commit_metadata import (
    BATCH_ID,
    EVENT_TIME,
    GUARDED,
    INTERNAL_SCHEMA,
    SCHEMA,
    CommitMetadata,
    WriteStat,
)
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from hudi_assets.engine.timeline.instants import WRITES, Timeline, instant_ms, latest_states
from hudi_assets.engine.timeline.kept import Kept
from hudi_assets.engine.timeline.memory import (
    EventTimeMemory,
    KeptMemory,
    Memory,
    newest_batches,
    read_memory,
    stated_logs,
    write_memory,
)
from hudi_assets.engine.timeline.sealed import seal, unseal
from hudi_assets.engine.timeline.settled import read_settled

META_COLUMNS = avro_schema.META_COLUMNS
SUMMARIES = f"{SCRATCH}/event_times.json"
# Archivers keep more completed writes than these, whatever their settings.
_NEVER_ARCHIVED = 2


# A process keeps what it decoded: in all so many write stats (some 600 bytes each), and log files of plans.
COMMITS: Final = Kept[CommitMetadata](500_000, lambda commit: 1 + len(commit.stats))
PLANS: Final = Kept[Plan](
    500_000, lambda plan: 1 + sum(1 + len(op.log_files) + len(op.carried_over) for op in plan.operations)
)


@dataclass(frozen=True)
class TableState:
    """One reading of a table. Values are computed when asked for, from the one timeline read first."""

    storage: Storage
    config: TableConfig
    layout: Layout
    timeline: Timeline
    timeline_files: Mapping[str, FileInfo]
    # The true clock just before the timeline was listed: what was committed later is not in this reading.
    read_at_ms: int
    # The schema that a write in progress gives the table; None: its newest commit's.
    evolved_schema: str | None = None

    @classmethod
    def read(cls, storage: Storage, config: TableConfig, layout: Layout, now_ms: Callable[[], int]) -> TableState:
        read_at_ms = now_ms()
        listing = storage.list_files(layout.timeline_folder)
        instants = [i for i in (layout.parse_instant(f.name) for f in listing) if i is not None]
        files = {file.name: file for file in listing}
        return cls(storage, config, layout, Timeline(latest_states(instants)), files, read_at_ms)

    @cached_property
    def timeline_sizes(self) -> Mapping[str, int]:
        """Name → size of the files on the active timeline."""
        return {name: file.size for name, file in self.timeline_files.items()}

    @property
    def now_ms(self) -> int:
        """The table's clock, epoch ms: the system's, or the newest commit's in a replayed stream."""
        if self.config.clock == "system":
            return self.read_at_ms
        times = (commit.clock_time for _, commit in self.commits_newest_first())
        # Commits come in order of the stream, so the newest ones tell; a compaction states none.
        return next((time for time in times if time is not None), 0)

    @property
    def oldest_unfinished_ms(self) -> int | None:
        """When the oldest unfinished write was requested, epoch ms; None where none is unfinished."""
        unfinished = [i.timestamp for i in self.timeline.inflight_writes]
        return instant_ms(min(unfinished), self.config.timezone) if unfinished else None

    # -- commits and plans ------------------------------------------------------------------------

    def commit(self, instant: Instant) -> CommitMetadata:
        """A completed write's metadata (deltacommit, commit, replacecommit)."""
        found = self._commits.get(instant.file_name)
        if found is None:
            found = self._commits[instant.file_name] = self._read_commit(instant)
        return found

    @cached_property
    def _commits(self) -> dict[str, CommitMetadata]:
        """Those of this reading that were asked for: there may be more than a process keeps."""
        return {}

    def _read_commit(self, instant: Instant) -> CommitMetadata:
        path = f"{self.layout.timeline_folder}/{instant.file_name}"

        def decode() -> CommitMetadata:
            with no_collecting():
                where = f"{self.storage.base}: {path}"
                return read_settled(self.storage, path, lambda data: self.layout.decode_commit(data, where))

        file = self.timeline_files.get(instant.file_name)
        return decode() if file is None else COMMITS.get((self.storage, self.layout), file, decode)

    def plan(self, timestamp: str) -> Plan | None:
        """The compaction plan of an instant, pending or completed; None where there is no plan file."""
        path = self.layout.instant_path(timestamp, Action.COMPACTION, State.REQUESTED)
        file = self.timeline_files.get(path.rsplit("/", 1)[-1])
        if file is None:
            return None

        def decode() -> Plan:
            where = f"{self.storage.base}: {path}"
            return read_settled(self.storage, path, lambda data: decode_plan(timestamp, data, where))

        return PLANS.get(self.storage, file, decode)

    @cached_property
    def pending_plans(self) -> tuple[Plan, ...]:
        plans = (self.plan(i.timestamp) for i in self.timeline.pending_compactions)
        return tuple(plan for plan in plans if plan is not None)

    @cached_property
    def guards(self) -> frozenset[str]:
        """Instants of empty plans that only guard links whose plan is not published yet."""
        return frozenset(p.instant for p in self.pending_plans if GUARDED in p.extra_metadata)

    @property
    def executable_plans(self) -> tuple[Plan, ...]:
        return tuple(plan for plan in self.pending_plans if plan.instant not in self.guards)

    def commits_newest_first(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        for instant in reversed(self.timeline.completed(*WRITES)):
            yield instant, self.commit(instant)

    @cached_property
    def avro_schema(self) -> str:
        """The table's newest Avro schema, without meta columns."""
        if self.evolved_schema is not None:
            return self.evolved_schema
        for _, commit in self.commits_newest_first():
            if commit.extra.get(INTERNAL_SCHEMA):
                raise schema_on_read(self.storage)
            if commit.extra.get(SCHEMA):
                return commit.extra[SCHEMA]
        if self.config.create_schema:
            return self.config.create_schema
        raise CorruptTable("Neither a commit nor hoodie.properties has a schema.", where=self.storage.base)

    def in_schema_of(self, instant: str) -> TableState:
        """This reading with the schema that the table had at an instant; with today's where that was archived."""
        for earlier, commit in self.commits_newest_first():
            if earlier.timestamp < instant and commit.extra.get(SCHEMA):
                return replace(self, evolved_schema=commit.extra[SCHEMA])
        return self

    @cached_property
    def avro_schema_with_meta(self) -> str:
        """The schema as log blocks and base files carry it: Hudi's meta columns first."""
        return evolution.with_meta_columns(self.avro_schema)

    @cached_property
    def data_schema(self) -> pa.Schema:
        schema: pa.Schema = avro_schema.avro_to_arrow_schema(self.avro_schema)
        return pa.schema([field for field in schema if field.name not in META_COLUMNS])

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's Arrow schema, meta columns first."""
        ordering = self.config.ordering_field
        if ordering and ordering not in self.data_schema.names:
            raise CorruptTable(f"The table has no column {ordering!r} to order records by.", where=self.storage.base)
        return avro_schema.with_meta_columns(self.data_schema)

    # -- files ------------------------------------------------------------------------------------

    @cached_property
    def listing(self) -> Mapping[str, list[FileInfo]]:
        """Partition → its files."""
        return dict(walk(self.storage))

    @cached_property
    def data_files(self) -> DataFiles:
        """Partition → its log and base files, committed or not."""
        return parse(self.listing, self.layout)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Path → size of every log and base file that is there."""
        return {file.path: file.size for files in self.data_files.values() for file in files}

    @cached_property
    def replaced(self) -> Mapping[GroupKey, str]:
        """The file groups that a completed replacecommit replaced, and its instant."""
        found: dict[GroupKey, str] = {}
        for instant in self.timeline.completed(Action.REPLACE_COMMIT):
            for partition, ids in self.commit(instant).replaced.items():
                found |= {(partition, file_id): instant.timestamp for file_id in ids}
        return found

    @cached_property
    def view(self) -> FileView:
        return self._view(frozenset(self.replaced))

    @cached_property
    def view_with_replaced(self) -> FileView:
        """The file groups that were replaced as well: a query of the past and the cleaner see them."""
        return self._view(frozenset()) if self.replaced else self.view

    def _view(self, replaced: frozenset[GroupKey]) -> FileView:
        return build_view(
            self.data_files,
            self.timeline,
            self.layout,
            plans=self.pending_plans,
            replaced=replaced,
            named=self._names,
            completion_of=self.completion_of,
        )

    def completion_of(self, instant: str) -> str | None:
        """When a write was completed; its own time where that is archived and not known any more; None: it is not."""
        known = self.timeline.completions.get(instant)
        if known is not None or not self._archived(instant):
            return known
        return self.archived_completions.get(instant, instant)

    def slice_instant(self, log: LogFile) -> str:
        """The base instant of the slice that a log file belongs to, or did before it was deleted."""
        opened = self._opened.get((log.partition, log.file_id), frozenset())
        return next(iter(self.layout.cut(sorted(opened), [log], self.completion_of)))

    @cached_property
    def _opened(self) -> Mapping[GroupKey, frozenset[str]]:
        """Base instants of all slices that files, commits or plans tell of."""
        found = {k: {s.base_instant for s in slices} for k, slices in self.view_with_replaced.groups.items()}
        for plan in self.pending_plans:
            for op in plan.operations:
                found.setdefault((op.partition, op.file_id), set()).add(plan.instant)
        for instant, commit in self.commits_newest_first():
            for stat in commit.stats:
                if stat.log_version is None and stat.path:
                    found.setdefault((stat.partition, stat.file_id), set()).add(instant.timestamp)
        return {key: frozenset(instants) for key, instants in found.items()}

    @cached_property
    def archived_completions(self) -> Mapping[str, str]:
        """Completion times of archived writes, where the archive keeps them; read when first asked for."""
        return self.layout.archive.completions(self.storage)

    def _names(self, base: BaseFile) -> bool:
        """True where the commit of a base file's instant lists it."""
        instants = (i for i in self.timeline.completed(*WRITES) if i.timestamp == base.instant)
        return any(stat.path == base.path for i in instants for stat in self.commit(i).stats)

    @cached_property
    def committed(self) -> CommittedInstants:
        done = frozenset(i.timestamp for i in self.timeline.completed(*WRITES))
        return CommittedInstants(done, self.timeline.start)

    @cached_property
    def remaining_logs(self) -> tuple[LogFile, ...]:
        """Every committed log file that no completed compaction has merged."""
        return tuple(log for slice_ in self.view.latest for log in slice_.log_files)

    # -- event times ------------------------------------------------------------------------------

    @cached_property
    def event_time_column(self) -> tuple[str, EventTimeUnit]:
        """The event-time column and its unit; `InvalidInput` where the settings name none that fits."""
        name = self.config.event_time_field
        if name is None:
            raise InvalidInput(
                f"The table names no event-time field ({EVENT_TIME_FIELD}).",
                where=self.storage.base,
                hint="Give one: --event-time-field, or event_time_field in the component's YAML.",
            )
        if name not in self.data_schema.names:
            raise InvalidInput(
                f"The table has no column {name!r} to take event times from.",
                where=self.storage.base,
                hint=f"It has: {', '.join(self.data_schema.names)}.",
            )
        return name, unit_of(self.data_schema.field(name).type, self.config.event_time_unit, name)

    @cached_property
    def event_time_tag(self) -> str:
        """Column and unit, as our commits state them: ranges and thresholds of another column say nothing."""
        column, unit = self.event_time_column
        return f"{column}:{unit}"

    @cached_property
    def summaries(self) -> Mapping[str, LogSummary]:
        """What is known of each remaining log file, by path: write stats, else the cache, else a scan."""
        stats = self._own_stats()
        with suppress(OSError):  # a table that this process may only read keeps no memory
            self.remember(newest=_NEVER_ARCHIVED)
        found: dict[str, LogSummary] = {}
        missing = []
        for log in self.remaining_logs:
            stat = stats.get(log.path) or stats.get(log.original)
            # A file that grew since (HDFS-like appends) is not what its stat says.
            if stat is not None and stat.size == log.size:
                low, high = stat.min_event_time, stat.max_event_time
                if low is not None and high is not None:
                    found[log.path] = LogSummary(low, high, stat.num_deletes)
                    continue
            missing.append(log)
        found |= self._scanned(missing)
        return found

    def _own_stats(self) -> Mapping[str, WriteStat]:
        """Write stats of commits of ours: only those have event times of a known unit and meaning."""
        bases = [s.base_instant for s in self.view.latest if s.log_files]
        if not bases:
            return {}
        stats = self._remembered_stats()
        oldest = min(bases)
        for instant in self.timeline.completed(*WRITES):
            if instant.timestamp >= oldest:
                commit = self.commit(instant)
                if commit.extra.get(EVENT_TIME) == self.event_time_tag:
                    stats.update({stat.path: stat for stat in commit.stats if stat.log_version is not None})
        return stats

    def _remembered_stats(self) -> dict[str, WriteStat]:
        """Write stats of archived commits of ours."""
        oldest = self._kept_memory.oldest
        if not oldest or not self._archived(oldest):
            return {}
        return {
            path: WriteStat(
                path=path,
                partition=path.rpartition("/")[0],
                file_id="",
                prev_commit="",
                size=log.size,
                num_deletes=log.deletes,
                min_event_time=log.min_event_time,
                max_event_time=log.max_event_time,
            )
            for path, log in self._memory.of(self.event_time_tag).logs.items()
            if self._archived(log.instant)
        }

    def _scanned(self, logs: list[LogFile]) -> dict[str, LogSummary]:
        """Summaries from the log files themselves, kept beside the table: log files never change."""
        if not logs:
            return {}
        column, unit = self.event_time_column
        known = self._read_cache(column, unit)
        fresh = 0
        result = {}
        for log in logs:
            key = f"{log.original}:{log.size}"
            if key not in known:
                known[key] = scan_summary(self.storage, log.path, column, unit, self.config.ordering_field, self.schema)
                fresh += 1
            result[log.path] = known[key]
        if fresh:
            self._write_cache(column, unit, {f"{g.original}:{g.size}": result[g.path] for g in logs})
        return result

    def _read_cache(self, column: str, unit: EventTimeUnit) -> dict[str, LogSummary]:
        try:
            body = unseal(self.storage.read(SUMMARIES))
            if body.get("column") != column or body.get("unit") != unit:
                return {}
            return {key: LogSummary(*value) for key, value in body["logs"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # only a cache: what cannot be read is scanned again

    def _write_cache(self, column: str, unit: EventTimeUnit, logs: Mapping[str, LogSummary]) -> None:
        values = {
            key: [s.min_event_time, s.max_event_time, s.deletes, s.rollbacks, s.reason, s.records]
            for key, s in logs.items()
        }
        body = {"column": column, "unit": unit, "logs": values}
        try:
            self.storage.replace(SUMMARIES, seal(body))
        except OSError:
            return  # a table that this process may only read is scanned each time

    def header_minimum(self, log: LogFile) -> int | None:
        """The minimum event time that a log's own block headers state, epoch ms; reads no data."""
        summary = read_summary_from_headers(self.storage, log.path, log.size)
        return summary.min_event_time if summary else None

    @cached_property
    def last_threshold(self) -> tuple[str, int] | None:
        """(instant, threshold) of the newest completed event-time compaction on this event-time column."""
        if self.config.event_time_field is None:
            return None
        stated = self._stated_threshold()
        if stated is not None or not self._kept_memory.thresholds:
            return stated
        remembered = self._kept_memory.thresholds.get(self.event_time_tag)
        return remembered if remembered is not None and self._archived(remembered[0]) else None

    def _stated_threshold(self) -> tuple[str, int] | None:
        """The same, of the active timeline alone."""
        for instant in self.timeline.last_completed_first(Action.COMMIT):
            commit = self.commit(instant)
            threshold = commit.threshold if commit.extra.get(EVENT_TIME) == self.event_time_tag else None
            if commit.threshold is None:
                # Apache Hudi may have executed our plan: then only the plan knows.
                plan = self.plan(instant.timestamp)
                if plan is not None and plan.extra_metadata.get(EVENT_TIME) == self.event_time_tag:
                    threshold = plan.threshold if plan.threshold != NO_THRESHOLD else None
            if threshold is not None:
                return instant.timestamp, threshold
        return None

    # -- what outlives the archiving of commits ---------------------------------------------------

    @cached_property
    def _memory(self) -> Memory:
        return self._kept_memory.memory

    @cached_property
    def _kept_memory(self) -> KeptMemory:
        return read_memory(self.storage)

    def _archived(self, timestamp: str) -> bool:
        start = self.timeline.start
        return start is not None and timestamp < start

    @property
    def archived_batches(self) -> Mapping[str, str]:
        """batch id → instant, of archived commits."""
        return {batch: instant for batch, instant in self._memory.batches.items() if self._archived(instant)}

    def remember(self, newest: int = 0) -> None:
        """Keep what the completed writes state, but for the `newest` ones, beyond their archiving."""
        completed = self.timeline.completed(*WRITES)
        settled = completed[: max(0, len(completed) - newest)]
        if not settled:
            return
        made_from = self._made_from(settled)
        if made_from == self._kept_memory.made_from:
            return
        memory = self._memory.only(self.timeline.is_committed)
        batches = dict(memory.batches)
        for instant in settled:
            if batch := self.commit(instant).extra.get(BATCH_ID):
                batches[batch] = instant.timestamp
        columns = dict(memory.columns)
        if self.config.event_time_field is not None:
            columns[self.event_time_tag] = self._column_memory(settled, memory.of(self.event_time_tag))
        kept = Memory(columns, newest_batches(batches))
        write_memory(self.storage, kept, made_from)

    def _made_from(self, settled: tuple[Instant, ...]) -> str:
        """What a memory follows from: it stays the same while this does.

        The log files that remain change only with the timeline, or where somebody puts back what was lost.
        """
        by_event_time = self.config.event_time_field is not None
        files = (self.timeline_files[i.file_name] for i in settled)
        commits = [(file.name, file.size, file.modified_ms) for file in files]
        stated = (self.event_time_tag, self._stated_threshold()) if by_event_time else None
        return hashlib.sha256(repr((commits, stated)).encode()).hexdigest()

    def _column_memory(self, settled: tuple[Instant, ...], before: EventTimeMemory) -> EventTimeMemory:
        paths = {path for log in self.remaining_logs for path in (log.path, log.original)}
        commits = ((i.timestamp, self.commit(i)) for i in settled)
        logs = {path: log for path, log in before.logs.items() if path in paths}
        logs |= stated_logs(commits, self.event_time_tag, paths)
        stated = self._stated_threshold()
        is_settled = stated is not None and stated[0] <= settled[-1].timestamp
        return EventTimeMemory(stated if is_settled else before.threshold, logs)
