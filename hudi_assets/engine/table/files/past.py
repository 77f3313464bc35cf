"""What timeline and files say about a table's past: the input of `history.History`.

The active timeline says it all about the writes that it holds. Of older ones only the files are left: a
slice that other than a compaction made has rows of its own instant, and its group began with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable, UnsupportedTable
from hudi_assets.engine.format.avro import schema as avro_schema
from hudi_assets.engine.format.log_file.codec import read_blocks
from hudi_assets.engine.model import Action, FileSlice, Instant, Operation, Plan
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.storage import FileInfo, Storage
from hudi_assets.engine.table.files.cleaned import read_cleans, read_pending_cleans, read_savepoints
from hudi_assets.engine.table.index import names_bucket
from hudi_assets.engine.table.log_files.reader import data_block_table
from hudi_assets.engine.table.slices.history import Across, Evidence, History, SliceKey
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import WRITES

COMMIT_TIME = avro_schema.META_COLUMNS[0]
_FIRST = ""


def history_of(state: TableState) -> History:
    """The table's past, as this reading of it has it."""
    return History(state.view_with_replaced, state.replaced, gather(state))


def gather(state: TableState) -> Evidence:
    found = _Gathered()
    for instant in state.timeline.completed(*WRITES):
        found.add_write(state, instant, state.commit(instant))
    for plan in state.pending_plans:
        found.add_plan(state, plan)
    start = whole_from(state)
    for plan in _archived_plans(state, start, found.predecessors):
        found.add_plan(state, plan)
    for link in state.broken_links:
        # As if its commit were still there to name it: a slice that lacks it is not whole.
        place = _slice_of(state, link.path, link.path.rpartition("/")[0])
        if place is not None:
            found.written.setdefault(place[:2], set()).add(link.path)
    cleaned = _cleaned(state)
    for key, instants in cleaned.items():
        found.opened.setdefault(key, set()).update(instants)
    if not state.layout.log_name_tells_beginning:
        found.add_beginnings(state)
    return Evidence(
        written={key: frozenset(paths) for key, paths in found.written.items()},
        opened={key: frozenset(instants) for key, instants in found.opened.items()},
        predecessors=found.predecessors,
        whole_from=start,
        savepoints=dict(_savepoints(state)),
        cleaned=cleaned,
        began_with=partial(began_with, state.storage, names_tell=state.layout.log_name_tells_beginning),
        archived_replace=partial(_archived_replace, state, start),
        across={key: tuple(logs) for key, logs in found.across.items()},
    )


class _Gathered:
    """Collects what commits and plans say of slices."""

    def __init__(self) -> None:
        self.written: dict[SliceKey, set[str]] = {}
        self.opened: dict[GroupKey, set[str]] = {}
        self.predecessors: dict[SliceKey, str] = {}
        self.across: dict[GroupKey, list[Across]] = {}

    def add_write(self, state: TableState, instant: Instant, commit: CommitMetadata) -> None:
        for stat in commit.stats:
            place = _slice_of(state, stat.path, stat.partition)
            if place is None:
                continue
            key, opened, is_base = place
            self.written.setdefault(place[:2], set()).add(stat.path)
            if state.timeline.is_committed(opened):  # not a plan that was withdrawn, its log files moved back
                self.opened.setdefault(key, set()).add(opened)
            if not is_base and state.layout.cuts_by_completion:
                # Its name does not say whether the group was there before: see `add_beginnings`.
                if instant.timestamp < opened:
                    self.across.setdefault(key, []).append(Across(stat.path, instant.timestamp, opened))
                continue
            if opened != instant.timestamp:
                continue
            if is_base and stat.prev_commit.isdigit() and instant.action is not Action.REPLACE_COMMIT:
                self.predecessors[(key, opened)] = stat.prev_commit
            elif instant.action is not Action.COMMIT:
                # A log file of a delta commit's own instant opens a group; base files say so by "null".
                self.predecessors.setdefault((key, opened), _FIRST)
        plan = state.plan(instant.timestamp) if instant.action is Action.COMMIT else None
        if plan is not None:
            self.add_plan(state, plan)

    def add_plan(self, state: TableState, plan: Plan) -> None:
        for op in plan.operations:
            key = (op.partition, op.file_id)
            self.opened.setdefault(key, set()).add(plan.instant)
            self.predecessors[(key, plan.instant)] = op.base_instant
            read = (*op.log_files, *(one.made_from for one in op.carried_over))
            self.written.setdefault((key, op.base_instant), set()).update(read)
            if state.layout.cuts_by_completion:
                self._add_across(state, op)
                # A plan takes all log files of such a slice.
                if op.base_file is None:
                    self.predecessors.setdefault((key, op.base_instant), _FIRST)

    def _add_across(self, state: TableState, op: Operation) -> None:
        """Log files that were requested before the slice that the plan found them in began."""
        for path in op.log_files:
            log = state.layout.parse_log_file(FileInfo(path, 0), op.partition)
            if log is not None and log.base_instant < op.base_instant:
                across = Across(path, log.base_instant, op.base_instant)
                self.across.setdefault((op.partition, op.file_id), []).append(across)

    def add_beginnings(self, state: TableState) -> None:
        """Groups that begin with log files, for the layouts where a log file's name does not tell.

        A cleaner keeps the newest slice whole. So where that has no base file, there was none before it either.
        """
        for key, slices in state.view_with_replaced.groups.items():
            plan = state.view_with_replaced.pending.get(key)
            read_now = 2 if plan is not None and slices[-1].base_instant == plan.instant else 1
            if len(slices) <= read_now and slices[0].base_file is None and key not in state.replaced:
                self.predecessors.setdefault((key, slices[0].base_instant), _FIRST)


def _slice_of(state: TableState, path: str, partition: str) -> tuple[GroupKey, str, bool] | None:
    """(group, base instant, whether it is a base file) of a file by its name."""
    file = FileInfo(path, 0)
    log = state.layout.parse_log_file(file, partition)
    if log is not None:
        return (partition, log.file_id), state.slice_instant(log), False
    base = state.layout.parse_base_file(file, partition)
    return None if base is None else ((partition, base.file_id), base.instant, True)


# ------------------------------------------------------------------------------- savepoints and cleans


def _savepoints(state: TableState) -> Iterator[tuple[str, Mapping[GroupKey, str]]]:
    """Each savepoint, with the newest slice of each group that it protects."""
    for savepoint in read_savepoints(state):
        newest: dict[GroupKey, str] = {}
        for path in savepoint.files:
            place = _slice_of(state, path, path.rpartition("/")[0])
            if place is not None:
                newest[place[0]] = max(place[1], newest.get(place[0], ""))
        yield savepoint.instant, newest


def _cleaned(state: TableState) -> dict[GroupKey, frozenset[str]]:
    """Per group, slices of which a clean has deleted a file, or, where it is unfinished, will."""
    paths = [path for clean in read_cleans(state) for path in clean.deleted]
    paths += [path for clean in read_pending_cleans(state) for path in clean.plan.paths]
    slices: dict[GroupKey, set[str]] = {}
    for path in paths:
        place = _slice_of(state, path, path.rpartition("/")[0])
        if place is not None:
            slices.setdefault(place[0], set()).add(place[1])
    return {key: frozenset(instants) for key, instants in slices.items()}


# ------------------------------------------------------------------------------- what was archived


def whole_from(state: TableState) -> str:
    """From this instant on every write is on the active timeline; "" where nothing was archived.

    A savepoint may keep its commit on the timeline while later ones are archived: it does not count.
    """
    saved = {i.timestamp for i in state.timeline.completed(Action.SAVEPOINT)}
    writes = [i.timestamp for i in state.timeline.instants if i.action in (*WRITES, Action.COMPACTION)]
    if not writes:
        return ""
    oldest = next((t for t in writes if t not in saved), writes[-1])
    older = (s.base_instant < writes[0] for slices in state.view_with_replaced.groups.values() for s in slices)
    return oldest if state.layout.archive(state.config.properties).is_there(state.storage) or any(older) else ""


def _archived_plans(state: TableState, start: str, known: Mapping[SliceKey, str]) -> tuple[Plan, ...]:
    """Plans of archived compactions whose slices are still there, with one before them that nothing else names.

    None where the archive cannot be read: what it would prove is not known then.
    """
    wanted = {
        s.base_instant
        for key, slices in state.view_with_replaced.groups.items()
        for s in slices[1:]
        if s.base_instant < start and (key, s.base_instant) not in known
    }
    try:
        return state.layout.archive(state.config.properties).plans(state.storage, wanted) if wanted else ()
    except (CorruptTable, UnsupportedTable, FileNotFoundError):
        return ()


def _archived_replace(state: TableState, start: str) -> str:
    """The newest archived replacecommit; `start`, of what was not archived, where the archive cannot be read."""
    archive = state.layout.archive(state.config.properties)
    try:
        return archive.newest_replace(state.storage) if archive.is_there(state.storage) else start
    except (CorruptTable, FileNotFoundError):
        return start


# ------------------------------------------------------------------------------- what the files say


def began_with(storage: Storage, slice_: FileSlice, *, names_tell: bool = True) -> bool:
    """True where a slice's own files show that its group began with it.

    A compaction's base file has no row of its own instant. One whose rows are all of it was inserted; but
    outside a bucket index an insert may also have rewritten an older file, so that proves nothing there.
    `names_tell`: log files are named by their slice; else each is named by its own commit, which proves nothing.
    """
    if slice_.base_file is not None:
        if not names_bucket(slice_.file_id):
            return False
        return _oldest_commit(storage, slice_.base_file.path) == slice_.base_instant
    return names_tell and any(_has_rows_of(storage, log.path, slice_.base_instant) for log in slice_.log_files)


@lru_cache(maxsize=10_000)
def _oldest_commit(storage: Storage, path: str) -> str | None:
    """The smallest commit time in a base file, from its footer where that has it; None without rows."""
    try:
        with storage.open(path) as source:
            file = pq.ParquetFile(source)
            column = file.schema_arrow.get_field_index(COMMIT_TIME)
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            stats = [group.column(column).statistics for group in groups if group.num_rows]
            if all(s is not None and s.has_min_max for s in stats):
                return min((s.min for s in stats), default=None)
            values = file.read(columns=[COMMIT_TIME], use_threads=False).column(0).to_pylist()
            return min(values, default=None)
    except (pa.ArrowException, FileNotFoundError) as error:
        raise CorruptTable(f"A base file cannot be read: {error}.", where=f"{storage.base}: {path}") from error


@lru_cache(maxsize=10_000)
def _has_rows_of(storage: Storage, path: str, instant: str) -> bool:
    """True where a log file has data rows that the instant wrote (a compaction's residue has older ones)."""
    for block in read_blocks(storage.read(path)):
        if block.is_data and not block.is_corrupt and block.instant_time == instant:
            times = data_block_table(block).column(COMMIT_TIME)
            if instant in times.to_pylist():
                return True
    return False
