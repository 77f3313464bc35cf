"""Plans that would be right only if no other engine were at work on the table: refused, with what to settle first."""

from __future__ import annotations

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.housekeeping.query_grace import cleaner_shortfall, query_grace_ms
from hudi_assets.engine.model import Plan
from hudi_assets.engine.settings.config import QUERY_GRACE, WRITERS
from hudi_assets.engine.settings.merging import TABLE_SERVICES
from hudi_assets.engine.state import TableState


def refuse_beside_others(state: TableState, plan: Plan) -> None:
    """Raise `InvalidInput` for a plan that another engine's execution or cleaner would make wrong."""
    if state.layout.carries_logs_over:
        _refuse_their_execution(state, plan)
    else:
        _refuse_short_retention(state, plan)


def _refuse_their_execution(state: TableState, plan: Plan) -> None:
    """Beside live writers their own table services may execute the plan.

    Apache Hudi's execution leaves carried-over log files out of its commit (tried with 0.15.0 and 1.2.0).
    """
    carries = any(op.carried_over for op in plan.operations)
    if carries and state.config.writers == "locked" and not state.config.merging.ours:
        raise InvalidInput(
            "Were Hudi's own table services to execute this plan, incremental queries over it would miss the rows "
            "of its carried-over log files.",
            where=state.storage.base,
            hint="Switch compaction off in every writer (hoodie.compact.inline=false, no compactor beside) and "
            f"state {TABLE_SERVICES}=ours.",
        )


def _refuse_short_retention(state: TableState, plan: Plan) -> None:
    """The writers' own cleaner takes what a compaction at a past instant replaces for as old as that instant."""
    if state.config.writers == "stopped":
        return
    properties, where = state.config.properties, state.storage.base
    shortfall = cleaner_shortfall(
        properties,
        state.timeline,
        plan.instant,
        grace_ms=query_grace_ms(properties, where, back_dated=True),
        now_ms=state.read_at_ms,
        timezone=state.config.timezone,
        where=where,
    )
    if shortfall is not None:
        raise InvalidInput(
            f"{shortfall}.",
            where=where,
            hint=f"Set {shortfall.key}={shortfall.needed} on every writer and here; or a shorter {QUERY_GRACE} "
            f"(0s: running queries may fail); or {WRITERS}=stopped or hoodie.clean.automatic=false if none cleans.",
        )
