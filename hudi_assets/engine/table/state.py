"""A table as it stands: timeline, commits, plans, file view and what is known of each log file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, TypeVar

import pyarrow as pa

from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, in_table, located
from hudi_assets.engine.format.avro import schema as avro_schema
from hudi_assets.engine.gc_pause import no_collecting
from hudi_assets.engine.model import Action, Instant, LogFile, Plan, State
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import FileInfo, Listing, Storage
from hudi_assets.engine.table import schema_evolution as evolution
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.log_files.reader import CommittedInstants
from hudi_assets.engine.table.schema_on_read import schema_on_read
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.slices.by_partition import FilesOfParts, ListsOfParts, Sizes
from hudi_assets.engine.table.slices.file_view import FileView, FileViewOfParts
from hudi_assets.engine.table.slices.kept import Asked, Keeper, Reading, Seen
from hudi_assets.engine.table.slices.listing import DataFiles, Tree
from hudi_assets.engine.table.slices.parts import Files, Part, parse_again
from hudi_assets.engine.table.zone_check import verdict_on, zone_problem
from hudi_assets.engine.timeline.archived_facts import KeptMemory, read_memory
from hudi_assets.engine.timeline.commit_metadata import GUARDED, INTERNAL_SCHEMA, SCHEMA, CommitMetadata
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from hudi_assets.engine.timeline.decode_cache import COMMITS, PLANS
from hudi_assets.engine.timeline.instants import WRITES, Timeline, instant_ms, latest_states
from hudi_assets.engine.timeline.markers import unfinished_files
from hudi_assets.engine.timeline.stat_columns import with_columns
from hudi_assets.engine.timeline.whole_files import Decoded, read_settled
from hudi_assets.engine.timeline.writers_zone.damage import Ahead, ahead_of_time
from hudi_assets.engine.timeline.writers_zone.evidence import Verdict

Derived = TypeVar("Derived")
META_COLUMNS = avro_schema.META_COLUMNS

_STAT_BYTES: Final = 500  # about what one takes in a commit's file


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
    # What keeps the files for the next look; None: they are listed anew, and not kept.
    keeper: Keeper | None = None

    @classmethod
    def read(
        cls,
        storage: Storage,
        config: TableConfig,
        layout: Layout,
        now_ms: Callable[[], int],
        keeper: Keeper | None = None,
    ) -> TableState:
        read_at_ms = now_ms()
        listing = storage.list_files(layout.timeline_folder)
        with in_table(storage.base):
            instants = [i for i in (layout.parse_instant(f.name) for f in listing) if i is not None]
        files = {file.name: file for file in listing}
        return cls(storage, config, layout, Timeline(latest_states(instants)), files, read_at_ms, keeper=keeper)

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

    @cached_property
    def zone_problem(self) -> InvalidInput | None:
        """Why instants are not made, nor their age told, by the zone of the settings; None where they are."""
        return zone_problem(self.config, self._zone_verdict, self.read_at_ms, self.storage.base)

    @cached_property
    def _zone_verdict(self) -> Verdict:
        return verdict_on(self.config.timezone, self.timeline_files, self.layout.parse_instant)

    @property
    def ahead_of_time(self) -> list[Ahead]:
        """Writes and compactions whose instants lie ahead of the writers' clock, as far as that is known."""
        if self.config.states_utc:
            return []
        parsed = ((self.layout.parse_instant(file.name), file.modified_ms) for file in self.timeline_files.values())
        files = [(instant, modified) for instant, modified in parsed if instant is not None]
        return ahead_of_time(files, self.config.timezone, self._zone_verdict)

    def refuse_other_zone(self) -> None:
        """`InvalidInput` in another zone than the writers': asked by whoever makes an instant, or judges age by one."""
        if self.zone_problem is not None:
            raise self.zone_problem

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

        def decode_all(data: bytes) -> CommitMetadata:
            with no_collecting(len(data) // _STAT_BYTES):
                return with_columns(self.layout.decode_commit(data, f"{self.storage.base}: {path}"))

        def decode() -> CommitMetadata:
            return self._read_listed(path, decode_all)

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
            return self._read_listed(path, lambda data: decode_plan(timestamp, data, where))

        return PLANS.get(self.storage, file, decode)

    def _read_listed(self, path: str, decode: Callable[[bytes], Decoded]) -> Decoded:
        """A file of the timeline that the listing named; `Conflict` where it has gone since."""
        try:
            return read_settled(self.storage, path, decode)
        except FileNotFoundError as error:
            raise Conflict(
                "A file of the timeline was deleted after it was listed: it was archived, or a plan withdrawn.",
                where=f"{self.storage.base}: {path}",
                hint="Ask again.",
            ) from error

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
        if self.timeline.last_write is None:
            raise Conflict(
                "The table has no schema yet: nothing was committed, and hoodie.properties states none.",
                where=self.storage.base,
                hint="Try again once its writer has committed.",
            )
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
        with located(self.storage.base):
            schema: pa.Schema = avro_schema.avro_to_arrow_schema(self.avro_schema)
        return pa.schema([field for field in schema if field.name not in META_COLUMNS])

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's Arrow schema, meta columns first."""
        ordering = self.config.ordering_fields if self.config.merging.not_merged is None else ()
        lacking = next((name for name in ordering if name not in self.data_schema.names), None)
        if lacking is not None:
            raise CorruptTable(f"The table has no column {lacking!r} to order records by.", where=self.storage.base)
        return avro_schema.with_meta_columns(self.data_schema)

    # -- files ------------------------------------------------------------------------------------

    @cached_property
    def tree(self) -> Tree:
        """The folders, and which of them are partitions."""
        return Tree.read(self.storage) if self.keeper is None else self.reading.tree

    @cached_property
    def listing(self) -> Mapping[str, Listing]:
        """Partition → its files."""
        return {partition: self.tree.folders[partition].files for partition in self.tree.partitions}

    @cached_property
    def data_files(self) -> DataFiles:
        """Partition → its log and base files, committed or not."""
        return ListsOfParts(self._files)

    @cached_property
    def _files(self) -> Mapping[str, Files]:
        if self.keeper is not None:
            return FilesOfParts(self.parts)
        listing = self.listing
        with no_collecting(sum(map(len, listing.values()))), in_table(self.storage.base):
            return {partition: parse_again(infos, partition, self.layout, None) for partition, infos in listing.items()}

    @cached_property
    def broken_links(self) -> tuple[FileInfo, ...]:
        """Symbolic links in the partitions that lead to nothing."""
        folders = map(self.tree.folders.__getitem__, self.tree.partitions)
        return tuple([file for folder in folders if folder.links for file in folder.files if file.broken])

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Path → size of every log and base file that is there."""
        if self.keeper is not None:
            return Sizes(self._files)
        return {path: file.size for files in self._files.values() for path, file in files.items()}

    @property
    def parts(self) -> Mapping[str, Part]:
        """Partition → its files and slices."""
        return self.reading.parts

    @cached_property
    def reading(self) -> Reading:
        """The files and the slices that they make, by partition."""
        if self.keeper is not None:
            with in_table(self.storage.base):
                return self.keeper.read(self._asked)
        parsed = self._files  # its errors name the table already
        with in_table(self.storage.base), no_collecting(sum(map(len, parsed.values()))):
            return Reading.of(self._asked, None, self.tree, parsed=parsed)

    @property
    def _asked(self) -> Asked:
        seen = Seen(self.timeline, self.timeline_files, self.pending_plans, self.replaced)
        return Asked(self.storage, self.layout, seen, self.commit, self.completion_of)

    def keep(self) -> None:
        """Let the next look begin with these files."""
        if self.keeper is not None:
            self.keeper.keep(self.reading)

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
        return self._joined(self.parts)

    @cached_property
    def view_with_replaced(self) -> FileView:
        """The file groups that were replaced as well: a query of the past and the cleaner see them."""
        if not self.replaced:
            return self.view
        asked = replace(self._asked, seen=replace(self._asked.seen, replaced={}))
        return self._joined(Reading.of(asked, None, self.tree, parsed=self._files).parts)

    def _joined(self, parts: Mapping[str, Part]) -> FileView:
        pending = {(op.partition, op.file_id): plan for plan in self.pending_plans for op in plan.operations}
        return FileViewOfParts(parts, pending)

    def completion_of(self, instant: str) -> str | None:
        """When a write was completed; its own time where that is archived and not known any more; None: it is not."""
        known = self.timeline.completions.get(instant)
        if known is not None or not self.timeline.is_archived(instant):
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
        return self.layout.archive(self.config.properties).completions(self.storage)

    @cached_property
    def archived_bringing_rows(self) -> Mapping[str, str]:
        """The same of writes alone that brought rows."""
        return self.layout.archive(self.config.properties).brought_rows(self.storage)

    @cached_property
    def committed(self) -> CommittedInstants:
        done = frozenset(i.timestamp for i in self.timeline.completed(*WRITES))
        return CommittedInstants(done, self.timeline.start, unfinished=self._unfinished_logs)

    @cached_property
    def _unfinished_logs(self) -> frozenset[str]:
        """Log files that only unfinished writes have written: a rollback of those deletes them."""
        begun = {path for path in unfinished_files(self.storage, self.timeline.is_committed) if ".log." in path}
        if begun:
            stats = (stat for i in self.timeline.completed(*WRITES) for stat in self.commit(i).stats)
            begun.difference_update(stat.path for stat in stats)
        return frozenset(begun)

    @cached_property
    def remaining_logs(self) -> tuple[LogFile, ...]:
        """Every committed log file that no completed compaction has merged."""
        parts = self.parts
        return tuple(chain.from_iterable(parts[partition].remaining_logs for partition in sorted(parts)))

    @cached_property
    def archived_facts(self) -> KeptMemory:
        """What outlives the archiving of commits. It is believed of archived ones alone."""
        if self.keeper is None:
            return read_memory(self.storage)
        # A copy: what is decoded of it is not kept.
        return replace(self.reading.told.tell(read_memory, lambda: read_memory(self.storage), self.timeline.start))

    # -- what stands above ------------------------------------------------------------------------

    def derive(self, make: Callable[[TableState], Derived]) -> Derived:
        """What `make` says of this reading: made once, and kept for as long as the reading is."""
        if make not in self._derived:
            self._derived[make] = make(self)
        derived: Derived = self._derived[make]
        return derived

    @cached_property
    def _derived(self) -> dict[Any, Any]:
        return {}
