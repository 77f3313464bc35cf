"""Queries as Spark DataFrames, and as tasks that any process can run.

Four kinds, in Hudi's words (hoodie.datasource.query.type, as.of.instant): snapshot, read-optimized, time
travel, and incremental. `docs/explanation/queries.md` says what each answers, and where Hudi's own differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_assets.engine.errors import Conflict, InvalidInput
from hudi_assets.engine.model import Action, FileSlice
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.queries.columns import chosen_columns
from hudi_assets.engine.queries.in_range import CommitRange, rows_in_range
from hudi_assets.engine.queries.moments import Moment, parse_begin, parse_instant, states_zone
from hudi_assets.engine.queries.partition_filter import places_of
from hudi_assets.engine.queries.read_optimized_columns import have_table_types
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.spark.interface import FrameT, Session
from hudi_assets.engine.spark.partitions import Places
from hudi_assets.engine.table.files.missing import refuse_missing
from hudi_assets.engine.table.files.past import history_of, whole_from
from hudi_assets.engine.table.gaps import gaps_of
from hudi_assets.engine.table.index import leaves_no_row_behind
from hudi_assets.engine.table.slices.as_of import Since, at_its_own_time
from hudi_assets.engine.table.slices.file_view import FileView
from hudi_assets.engine.table.slices.history import History, settled_at, view_as_of
from hudi_assets.engine.table.slices.reader import SliceReader, SliceTask
from hudi_assets.engine.table.slices.rows import in_batches, read_slice
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import WRITES, moved_instant

_NEVER = "~"  # after every instant
Columns = Sequence[str] | None
"""Those of the table's columns that a query asks for; None: all."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One file slice of a query; picklable, readable on any machine that reaches the table."""

    reader: SliceReader
    slice: SliceTask
    commits: CommitRange | None = None

    def read(self) -> Iterator[pa.RecordBatch]:
        """The task's rows, in the table's schema or the columns that were asked for.

        Raises:
            Conflict: A file of it has been deleted since the task was made.
        """
        return read_task(self)


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """`ReadTask.read`."""
    rows = (
        read_slice(task.reader, task.slice)
        if task.commits is None
        else rows_in_range(task.reader, task.slice, task.commits)
    )
    try:
        yield from in_batches(rows)
    except FileNotFoundError as error:
        raise Conflict(
            "A file was deleted while a query was reading: a clean took its slice, or a rollback its commit.",
            where=f"{task.reader.storage.base}: {error.filename}",
            hint="Ask again. For longer queries let the cleaner retain more (hoodie.cleaner.commits.retained).",
        ) from error


def slice_reader(state: TableState, columns: Columns = None) -> SliceReader:
    """What reads the table's slices; `InvalidInput` for columns that it does not have."""
    config = state.config
    # First: what is asked of a table that is not merged here may be wrong in other ways too.
    mode = config.merge_mode(state.storage.base)
    reader = _base_file_reader(state, columns)
    return replace(reader, ordering=config.ordering_fields, mode=mode, gaps=gaps_of(state))


def _base_file_reader(state: TableState, columns: Columns) -> SliceReader:
    """What reads base files alone, which asks for no merge."""
    config = state.config
    config.refuse_other_files(state.storage.base)
    chosen = chosen_columns(state.schema, columns, state.storage.base)
    memory = config.compaction.merge_memory
    return SliceReader(state.storage, state.schema, (), state.committed, columns=chosen, memory=memory)


def _slice_task(s: FileSlice) -> SliceTask:
    size = (s.base_file.size if s.base_file else 0) + sum(log.size for log in s.log_files)
    return SliceTask(s.base_file.path if s.base_file else None, tuple(log.path for log in s.log_files), size)


def _tasks(reader: SliceReader, slices: Iterable[FileSlice], commits: CommitRange | None = None) -> list[ReadTask]:
    return [
        ReadTask(
            reader,
            _slice_task(s),
            commits,
        )
        for s in slices
    ]


def _frame(session: Session[FrameT], state: TableState, tasks: list[ReadTask], columns: Columns) -> FrameT:
    schema = _base_file_reader(state, columns).shown
    slices = [task.slice for task in tasks]
    # The tasks of one query differ in their slice alone: the rest goes to the workers once.
    common = tasks[0] if tasks else None

    def read(one: SliceTask, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        assert common is not None
        yield from read_task(replace(common, reader=replace(common.reader, columns=tuple(names)), slice=one))

    return spark.frame_from_tasks(session, read, slices, schema, _places(state, slices))


def _places(state: TableState, slices: Sequence[SliceTask]) -> Places:
    by_partition = state.config.partitioned and leaves_no_row_behind(state)
    return places_of(slices, state.config, state.schema, by_partition=by_partition)


# ------------------------------------------------------------------------------- as the table stands


def _view(state: TableState) -> FileView:
    """The view of now; `CorruptTable` where a file is gone without which it would show less."""
    refuse_missing(state)
    return state.view


def snapshot_tasks(state: TableState, columns: Columns = None) -> list[ReadTask]:
    """The snapshot view, one task per file slice."""
    return _tasks(slice_reader(state, columns), _view(state).latest)


def snapshot_frame(session: Session[FrameT], state: TableState, columns: Columns = None) -> FrameT:
    return _frame(session, state, snapshot_tasks(state, columns), columns)


def read_optimized_tasks(state: TableState, columns: Columns = None) -> list[ReadTask]:
    """The read-optimized view, one task per base file."""
    reader = _base_file_reader(state, columns)
    return [ReadTask(reader, SliceTask(base.path, (), base.size)) for base in _view(state).base_files]


def read_optimized_frame(session: Session[FrameT], state: TableState, columns: Columns = None) -> FrameT:
    """Spark's own Parquet reader on the newest base file of each group.

    Ours where a column's type is newer, or where Spark cannot read files of the table's store.
    """
    tasks = read_optimized_tasks(state, columns)
    if not spark.reads_by_itself(session, state.storage.base) or not have_table_types(state):
        return _frame(session, state, tasks, columns)
    slices = [task.slice for task in tasks]
    schema = _base_file_reader(state, columns).shown
    return spark.parquet_frame(session, _listed(state, slices), schema, _places(state, slices))


def _listed(state: TableState, slices: Sequence[SliceTask]) -> list[spark.ListedFile]:
    wanted = {one.base_file for one in slices}
    files = {file.path: file for files in state.listing.values() for file in files if file.path in wanted}
    listed = [files[one.base_file] for one in slices if one.base_file]
    uris = [spark.spark_name(state.storage.uri(file.path)) for file in listed]
    return [spark.ListedFile(uri, file.size, file.modified_ms) for uri, file in zip(uris, listed, strict=True)]


# ------------------------------------------------------------------------------- time travel


def time_travel_tasks(state: TableState, instant: Moment, columns: Columns = None) -> list[ReadTask]:
    """The snapshot as of an instant, one task per file slice.

    Raises `InvalidInput`, naming the earliest instant left, where a clean may have taken part of the answer.
    """
    _refuse_unknown_zone(state, instant)
    t = parse_instant(instant, state.config.timezone)
    since = at_its_own_time() if state.layout.cuts_by_completion else None
    return _tasks(_reader_as_of(state, t, columns), _slices_as_of(state, t, since))


def time_travel_frame(session: Session[FrameT], state: TableState, instant: Moment, columns: Columns = None) -> FrameT:
    return _frame(session, state, time_travel_tasks(state, instant, columns), columns)


def _refuse_unknown_zone(state: TableState, *moments: Moment) -> None:
    """A time with a zone is another instant in another zone than the writers'; an instant is what it is."""
    if any(states_zone(moment) for moment in moments):
        state.refuse_other_zone()


def _reader_as_of(state: TableState, t: str, columns: Columns) -> SliceReader:
    return replace(slice_reader(state, columns), committed=replace(state.committed, until=t))


def _slices_as_of(state: TableState, t: str, since: Since | None) -> tuple[FileSlice, ...]:
    """The slices to merge as of t. `since` says when a write counts, where slices are cut by completion times."""
    refuse_missing(state)
    view, replaced = state.view_with_replaced, state.replaced
    # What is older than the active timeline may lack groups that were replaced: History asks the archive.
    if t >= max(settled_at(view, replaced, since), whole_from(state)):
        return view_as_of(view, replaced, t, since).latest
    history = history_of(state)
    for moment in (t, *_before_unfinished_bases(state, t, since)):
        if history.gap_at(moment) is not None:
            raise _cleaned_away(state, history, t)
    return history.as_of(t, since)


def _before_unfinished_bases(state: TableState, t: str, since: Since | None) -> list[str]:
    """Right before each base file or replacement that does not count yet at t: what was there then answers."""
    if since is None:
        return []
    bases = {s.base_instant for slices in state.view_with_replaced.groups.values() for s in slices if s.base_file}
    unfinished = [i for i in {*bases, *state.replaced.values()} if i <= t < since.base(i)]
    return [moved_instant(i, -1) for i in unfinished]


def _cleaned_away(state: TableState, history: History, t: str) -> InvalidInput:
    hint = f"The earliest instant left is {history.complete_from}: ask as of it or a later one."
    if history.answering_savepoints:
        hint += f" These savepoints answer too: {', '.join(history.answering_savepoints)}."
    return InvalidInput(f"The table's history at {t} was cleaned.", where=state.storage.base, hint=hint)


# ------------------------------------------------------------------------------- incremental


def incremental_tasks(
    state: TableState, begin: Moment, end: Moment | None = None, columns: Columns = None
) -> list[ReadTask]:
    """The rows that the table held at `end` (None: now) whose commit lies in (begin, end].

    The range is one of completion times where the layout says so; else of instants.
    File groups that no write of the range touched are left out where the timeline tells.
    """
    _refuse_unknown_zone(state, begin, *(() if end is None else (end,)))
    timezone = state.config.timezone
    low = parse_begin(begin, timezone)
    high = None if end is None else parse_instant(end, timezone, "end")
    if high is not None and low > high:
        raise InvalidInput(
            f"The range begins at {low}, after its end, {high}.",
            where=state.storage.base,
            hint="Give a begin before the end.",
        )
    since = _since_completion(state) if state.layout.ranges_by_completion else None
    late = _completed_after(state, low) if since is not None else ()
    reader = slice_reader(state, columns)
    if high is None:
        slices = _view(state).latest
    else:
        slices = _slices_as_of(state, high, since)
        reader = _reader_as_of(state, high, columns) if since is None else _reader_of_completed(state, high, columns)
    touched = _touched_groups(state, low, high)
    if touched is not None:
        slices = tuple(s for s in slices if (s.partition, s.file_id) in touched)
    return _tasks(reader, slices, CommitRange(low, high if since is None else None, late))


def _reader_of_completed(state: TableState, end: str, columns: Columns) -> SliceReader:
    done = frozenset(t for t, completion in state.timeline.completions.items() if completion <= end)
    return replace(slice_reader(state, columns), committed=replace(state.committed, completed=done))


def _since_completion(state: TableState) -> Since:
    """A write counts once it is completed; a compaction only moves rows, so its base files count at its instant."""
    completions = {
        i.timestamp: i.completion or i.timestamp
        for i in state.timeline.completed(Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    }

    def of_base(instant: str) -> str:
        known = completions.get(instant)
        if known is None and state.timeline.is_archived(instant):
            known = state.archived_bringing_rows.get(instant)
        return known or instant

    return Since(
        base=of_base,
        log=lambda instant: state.completion_of(instant) or _NEVER,
    )


def _completed_after(state: TableState, begin: str) -> tuple[str, ...]:
    """Writes requested at or before `begin`, and completed after it."""
    known = {**state.archived_completions, **state.timeline.completions}
    return tuple(sorted(t for t, completion in known.items() if t <= begin < completion))


def incremental_frame(
    session: Session[FrameT], state: TableState, begin: Moment, end: Moment | None = None, columns: Columns = None
) -> FrameT:
    return _frame(session, state, incremental_tasks(state, begin, end, columns), columns)


def _touched_groups(state: TableState, low: str, high: str | None) -> frozenset[GroupKey] | None:
    """The file groups that hold rows of commits in (low, high]; None where the active timeline cannot tell.

    A clustering rewrites rows of older commits into new groups: those are its own, so a replacecommit
    counts as a write. A compaction moves no row to another group.
    """
    if low < max([whole_from(state), *state.archived_completions.values()]):
        return None
    touched: set[GroupKey] = set()
    for instant in state.timeline.completed(*WRITES):
        time = state.timeline.completions[instant.timestamp]
        if time <= low or (high is not None and time > high):
            continue
        commit = state.commit(instant)
        if instant.action is Action.COMMIT and commit.compacted:
            continue
        if commit.operation == "UNKNOWN" and not commit.stats:
            return None
        touched |= {(stat.partition, stat.file_id) for stat in commit.stats}
    return frozenset(touched)
