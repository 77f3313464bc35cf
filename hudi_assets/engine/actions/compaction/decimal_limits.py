"""Rows that a compaction would put into base files, and the metadata table's column statistics cannot describe."""

from __future__ import annotations

import pyarrow.compute as pc

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.model import Plan
from hudi_assets.engine.model.settings import is_true
from hudi_assets.engine.queries.query import slice_reader
from hudi_assets.engine.table.metadata.column_stats import COLUMN_STATS
from hudi_assets.engine.table.metadata.decimal_limits import ROOM, tight_columns, without_room
from hudi_assets.engine.table.settings.config import METADATA_SWITCH_OFF
from hudi_assets.engine.table.slices.reader import SliceTask
from hudi_assets.engine.table.slices.rows import read_slice
from hudi_assets.engine.table.state import TableState


def check_room(state: TableState, plan: Plan) -> tuple[str, ...]:
    """The partition to switch off before a plan is executed: none, or column_stats, for want of room in it.

    `UnsupportedTable`, naming the column, where the settings do not allow it. Reads the plan's slices only in a table
    with a column whose type may hold such values.
    """
    tight = tight_columns(state.storage, state.layout, state.timeline, state.data_schema)
    if not tight:
        return ()
    names = tuple(dict.fromkeys(path.split(".")[0] for path in tight))
    reader = slice_reader(state, names)
    for op in plan.operations:
        for rows in read_slice(reader, SliceTask(op.base_file, op.log_files)):
            for path, kind in tight.items():
                if pc.any(without_room(rows, path, kind)).as_py():
                    return _switched_off(state, path, op.partition)
    return ()


def _switched_off(state: TableState, column: str, partition: str) -> tuple[str, ...]:
    if is_true(state.config.properties, METADATA_SWITCH_OFF):
        return (COLUMN_STATS,)
    raise UnsupportedTable(
        f"The metadata table's column statistics have no room for values of column {column} in partition "
        f"{partition!r}: they hold {ROOM}.",
        where=state.storage.base,
        hint="Let Hudi leave this column out (hoodie.metadata.index.column.stats.column.list), or do without them "
        f"(hoodie.metadata.index.column.stats.enable=false); or have them switched off: {METADATA_SWITCH_OFF}=true.",
    )
