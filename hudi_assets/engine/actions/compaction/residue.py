"""The residue log: what a compaction leaves of the records it merged, for readers of the new slice.

Version 6 only, and only where Hudi's own table services never touch the table (`hudi_assets.table.services=ours`):
the residue log is written by our execution. It holds
- tombstones: deletes that won, and that an older record in a carried-over log would still lose to;
- with an exact split, every record above the threshold, its meta fields unchanged.
It is `.<file id>_<C>.log.1_0-0-0`, first in log order, its blocks have INSTANT_TIME C. See `docs/explanation/merge.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.actions.writing.log_files import encode_data_block, encode_delete_block
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.merging.delete_records import delete_records
from hudi_assets.engine.merging.merge import Deletes, LogRecords, Rows
from hudi_assets.engine.merging.winners import Flags, Head, flags_of
from hudi_assets.engine.model import EventTimeRange, MergeMode, Operation
from hudi_assets.engine.model.units import EventTimeUnit, join_ranges, range_of, to_micros
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.log_files.reader import APPLIED_PROPERTY, count_deleted
from hudi_assets.engine.table.log_files.summaries import times_of
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.settings.merging import EXACT_SPLIT, MERGE_RULES, RULES_1_X, TABLE_SERVICES
from hudi_assets.engine.timeline import compaction_plan
from hudi_assets.engine.timeline.attempts import Staged, stage, write_staged
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.compaction_plan import RESIDUE, RESIDUE_VERSION

_APPLIED = EventTimeRange(None, None, "deletes that were merged into the base file already")


def keeps_tombstones(config: TableConfig, layout: Layout) -> bool:
    """True where a partial compaction's deletes live on in a residue log.

    There is none where it would not stay in the slice that it was made for.
    """
    merging = config.merging
    merged_here = merging.not_merged is None and merging.mode is MergeMode.EVENT_TIME_ORDERING
    return layout.residue_logs_stay and merging.ours and merged_here


def plan_marks(config: TableConfig, layout: Layout) -> dict[str, str]:
    """What a plan's extra metadata says, so that its execution does what was planned."""
    if not keeps_tombstones(config, layout):
        return {}
    return {RESIDUE: "true", **({EXACT_SPLIT: "true"} if config.merging.exact_split else {})}


def check_exact_split(config: TableConfig, unit: EventTimeUnit | None, layout: Layout, where: str) -> None:
    """Refuse an exact split where it cannot be right, by name; does nothing without one.

    `unit`: of the event times; None where another strategy than the event-time one plans.
    """
    if not config.merging.exact_split:
        return
    if not layout.residue_logs_stay:
        raise InvalidInput(
            f"{EXACT_SPLIT} is not possible on table version {layout.version}: slices are cut by completion times, so "
            "the log file with the records above the threshold would not stay in the slice it was made for.",
            where=where,
            hint=f"Leave {EXACT_SPLIT} out; version 6 has it.",
        )
    if unit is None:
        raise InvalidInput(
            f"{EXACT_SPLIT} needs the event-time strategy: another one has no threshold.",
            where=where,
            hint=f"Leave {EXACT_SPLIT} out, or take that strategy (hoodie.compaction.strategy).",
        )
    if not config.merging.ours:
        raise InvalidInput(
            f"{EXACT_SPLIT} needs {TABLE_SERVICES}=ours.",
            where=where,
            hint="Only our execution leaves records above the threshold out of the base file: declare that "
            "Hudi's own table services are off.",
        )
    if config.merging.mode is not MergeMode.EVENT_TIME_ORDERING or not config.ordered_by_event_time:
        raise InvalidInput(
            f"{EXACT_SPLIT} needs {MergeMode.EVENT_TIME_ORDERING} on the event-time field; this table has "
            f"{config.merging.mode} on {config.ordering_field or 'no field'}.",
            where=where,
            hint=f"Where Hudi 1.x reads the table, state {MERGE_RULES}={RULES_1_X}."
            if config.merging.mode is MergeMode.EVENT_TIME_ORDERING_0X
            else None,
        )
    if unit is EventTimeUnit.ISO:
        raise InvalidInput(
            f"{EXACT_SPLIT} needs event times that sort as they are written, not text.",
            where=where,
            hint=f"Leave {EXACT_SPLIT} out.",
        )


@dataclass(frozen=True)
class ResidueSpec:
    """How one plan's residue logs are made. Event times epoch ms.

    `split_at`: the exact split's threshold, or None. `lowest` says per (partition, file id) the smallest event time
    among its carried-over logs, None where unknown; groups that carry over no record to compare are not in it.
    """

    layout: Layout
    instant: str
    avro_schema: str  # with meta columns
    column: str
    unit: EventTimeUnit
    by_event_time: bool
    block_format: str
    split_at: int | None
    lowest: Mapping[tuple[str, str], int | None]


def residue_path(layout: Layout, op: Operation, instant: str) -> str:
    """Where an operation's residue log is, if it has one."""
    return compaction_plan.residue_path(op, instant, layout.log_file_name)


@dataclass(frozen=True)
class OperationLeaves:
    """What one operation's merge leaves for its residue log (`merging.passes.Leaving`)."""

    spec: ResidueSpec
    op: Operation

    def above(self, head: Head) -> Flags:
        """Records with an event time above the threshold; one without event time is not above."""
        if self.spec.split_at is None:
            return np.zeros(len(head), np.bool_)
        micros = to_micros(head.ordering, self.spec.unit)
        mask = pc.greater(micros, pa.scalar(self.spec.split_at * 1000, pa.int64()))
        return flags_of(pc.fill_null(mask, False))

    def met(self, ordering: pa.Array) -> Flags:
        """The tombstones that a record in a carried-over log may lose to."""
        group = (self.op.partition, self.op.file_id)
        if group not in self.spec.lowest:
            return np.zeros(len(ordering), np.bool_)
        lowest = self.spec.lowest[group]
        if not self.spec.by_event_time or lowest is None:
            return np.ones(len(ordering), np.bool_)
        micros = to_micros(ordering, self.spec.unit)
        return flags_of(pc.greater_equal(micros, pa.scalar(lowest * 1000, pa.int64())))


# --------------------------------------------------------------------------------- the file


def write_residue(
    storage: Storage, records: Sequence[LogRecords], spec: ResidueSpec, op: Operation, base_file: str
) -> tuple[WriteStat, Staged]:
    """Stage an operation's residue log; its write stat, with the range of event times not in the base file.

    No marker stands for it: what a dead execution left is deleted by its name.
    """
    covered = _range(records, spec)
    blocks = b"".join(_encode(part, spec, op) for part in _joined(records))
    path = residue_path(spec.layout, op, spec.instant)
    staged = stage(spec.instant, path, marker="")
    write_staged(storage, staged, blocks)
    deletes = sum(count_deleted(r.table) if isinstance(r, Rows) else len(r.keys) for r in records)
    stat = WriteStat(
        path=path,
        partition=op.partition,
        file_id=op.file_id,
        prev_commit=op.base_instant,
        size=len(blocks),
        num_writes=sum(len(r.table) for r in records if isinstance(r, Rows)),
        num_deletes=deletes,
        min_event_time=covered.min,
        max_event_time=covered.max,
        log_version=RESIDUE_VERSION,
        base_file=base_file,
    )
    return stat, staged


def _joined(records: Sequence[LogRecords]) -> list[LogRecords]:
    """Neighbours of one kind as one block: the order of records stays."""
    joined: list[LogRecords] = []
    for block in records:
        last = joined[-1] if joined else None
        if isinstance(block, Rows) and isinstance(last, Rows):
            joined[-1] = Rows(pa.concat_tables([last.table, block.table]))
        elif isinstance(block, Deletes) and isinstance(last, Deletes):
            keys = pa.concat_arrays([last.keys, block.keys])
            joined[-1] = Deletes(keys, pa.concat_arrays([last.ordering, block.ordering]))
        else:
            joined.append(block)
    return joined


def _range(records: Sequence[LogRecords], spec: ResidueSpec) -> EventTimeRange:
    if not spec.by_event_time:
        return _APPLIED
    columns = [r.table.column(spec.column) if isinstance(r, Rows) else r.ordering for r in records]
    return join_ranges([range_of(column, spec.unit, "the residue log") for column in columns])


def _encode(block: LogRecords, spec: ResidueSpec, op: Operation) -> bytes:
    schema = spec.avro_schema
    if not spec.by_event_time:
        # Read past by every reader: these deletes have no event time that the base file still lacks.
        schema = json.dumps({**json.loads(schema), APPLIED_PROPERTY: True}, separators=(",", ":"), ensure_ascii=False)
    # Deletes of another field's order are undated; `ordering` is what they are compared by.
    times = times_of(block, spec.column, spec.unit, (spec.column,) if spec.by_event_time else ())
    if isinstance(block, Rows):
        return encode_data_block(block.table, schema, spec.instant, times, spec.block_format)
    deletes = delete_records(block.keys.to_pylist(), op.partition, pa.chunked_array([block.ordering]))
    return encode_delete_block(deletes, schema, spec.instant, times)
