"""Whether the executor of the settings can execute a plan: asked before anything is written.

A plan needs event times and files, and no merge. So it is made for tables that this project does not merge too, and
Apache Hudi executes it (`hudi_assets.executor=hudi`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hudi_assets.engine.actions.compaction.decimal_limits import check_room
from hudi_assets.engine.actions.compaction.hudi_executor import check_hudi_executes
from hudi_assets.engine.actions.compaction.residue import keeps_tombstones
from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.event_time.hidden_times import hidden_by_file
from hudi_assets.engine.event_time.ranges import not_usual
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import NoPlan, Plan
from hudi_assets.engine.model.log_summary import LogSummary
from hudi_assets.engine.table.gaps import gaps_of
from hudi_assets.engine.table.metadata.policy import check_compaction as check_metadata_table
from hudi_assets.engine.table.settings.config import HUDI
from hudi_assets.engine.table.settings.not_merged import LET_HUDI, LOOK_ALONE
from hudi_assets.engine.table.slices.parts import Part
from hudi_assets.engine.table.state import TableState


def refuse_execution(state: TableState, plan: Plan) -> None:
    """Raise `UnsupportedTable` where the executor would not execute the plan, or not as it says."""
    config, where = state.config, state.storage.base
    config.refuse_other_files(where)
    if config.executor == HUDI:
        check_hudi_executes(config, state.layout, plan, where)
        return
    config.refuse_merge(where)
    gaps_of(state)  # refuses what it does not know
    if config.compaction.by_event_time:
        _refuse_log_files(state, plan)
    made_untrue(state, plan)


def made_untrue(state: TableState, plan: Plan) -> tuple[str, ...]:
    """The partitions of the metadata table that our execution would make untrue. Hudi's keeps them itself.

    Raises `UnsupportedTable` where the settings do not allow that they are switched off.
    """
    config = state.config
    if config.executor == HUDI or config.merging.not_merged is not None:
        return ()
    return (*check_metadata_table(state.storage, config, state.layout), *check_room(state, plan))


def unless_refused(state: TableState, plan: Plan) -> Plan | NoPlan:
    """A plan that is due, or why it would not be published by these settings."""
    if plan.query_time is not None and plan.query_time.refused:
        return NoPlan(plan.query_time.words, plan.query_time)
    try:
        refuse_execution(state, plan)
    except UnsupportedTable as refused:
        return NoPlan(str(refused))
    return plan


def _refuse_log_files(state: TableState, plan: Plan) -> None:
    """Nothing in hoodie.properties tells of log compactions and partial updates: their log files do."""
    summaries = state.derive(_not_usual)
    mode, leaves = state.config.merge_mode(state.storage.base), keeps_tombstones(state.config, state.layout)
    whole_rows = leaves or not mode.merges_partial_updates or state.config.merging.gaps is not None
    # On version 6 Hudi is given plans of tables alone whose properties tell that they are not merged here.
    hint = LET_HUDI if state.layout.hudi_executes_plans else LOOK_ALONE
    for op in plan.operations:
        for path in op.log_files:
            if path not in summaries:
                continue
            problem = summaries[path].not_merged
            if summaries[path].partial and whole_rows:
                problem = problem or "The log file holds partial updates, which are not merged here in such a table."
            if problem is not None:
                raise UnsupportedTable(problem, where=f"{state.storage.base}: {path}", hint=hint)


def _not_usual(state: TableState) -> Mapping[str, LogSummary]:
    """What is known of log files that are not merged here, or hold partial updates: nearly always of none."""
    times = TableTimes(state)
    ranges, found = times.ranges, {}
    for part in state.parts.values():
        found.update(part.tell(not_usual, partial(_not_usual_of, part, ranges), times.made_by))
    return found | not_usual(tuple(hidden_by_file(state)), ranges)


def _not_usual_of(part: Part, ranges: Mapping[str, LogSummary]) -> dict[str, LogSummary]:
    return not_usual(part.remaining_logs, ranges)
