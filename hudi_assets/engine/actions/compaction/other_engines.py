"""What other engines at work on the table mean for a plan: some plans are refused, some leave queries little time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hudi_assets.engine.actions.cleaning.query_grace import query_time
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Plan, QueryTime
from hudi_assets.engine.model.settings import is_true
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.config import CARRY_OVER, QUERY_GRACE_LEAST, WRITERS, TableConfig
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.table.state import TableState

# Hudi's keys for a writer's cleaner; 1.x's name of the second one comes last.
_CLEANERS: Final = ("hoodie.clean.automatic", "hoodie.clean.async", "hoodie.clean.async.enabled")


def refuse_links_beside_others(config: TableConfig, layout: Layout, where: str) -> None:
    """Raise `InvalidInput` for symbolic links where another engine may clean: Hudi's deletes what they lead to."""
    if not layout.makes_links or config.carry_over != "symlink":
        return
    says = f"{CARRY_OVER}=symlink loses rows where another engine cleans: Hudi's cleaner deletes what the links lead to"
    hint = (
        "Switch cleaning and compaction off in every writer (hoodie.clean.automatic=false, "
        f"hoodie.compact.inline=false) and state {TABLE_SERVICES}=ours; or leave {CARRY_OVER} at auto."
    )
    if not config.merging.ours:
        raise InvalidInput(f"{says}, and nothing says that none does.", where=where, hint=hint)
    for key in _CLEANERS:
        if is_true(config.properties, key):
            raise InvalidInput(f"{says}, and {key}=true says that one does.", where=where, hint=hint)


def settled_with_others(state: TableState, plan: Plan) -> Plan:
    """The plan, with how long it leaves to running queries beside another engine's cleaner.

    Raises `InvalidInput` for a plan that another engine's execution would make wrong.
    """
    if not state.layout.hudi_executes_plans:
        _refuse_their_execution(state, plan)
    return replace(plan, query_time=_query_time(state, plan)) if state.layout.back_dates_plans else plan


def refuse_short_query_time(plan: Plan, where: str) -> None:
    """Raise `InvalidInput` for a plan that leaves running queries less than the least that the owner states."""
    time = plan.query_time
    if time is not None and time.refused:
        raise InvalidInput(
            time.words,
            where=where,
            hint=f"Do so; or state a shorter {QUERY_GRACE_LEAST}; or {WRITERS}=stopped or "
            "hoodie.clean.automatic=false if no other engine cleans.",
        )


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


def _query_time(state: TableState, plan: Plan) -> QueryTime | None:
    """The writers' own cleaner takes what a compaction at a past instant replaces for as old as that instant."""
    if state.config.writers == "stopped":
        return None
    return query_time(
        state.config.properties,
        state.timeline,
        plan.instant,
        now_ms=state.read_at_ms,
        timezone=state.config.timezone,
        where=state.storage.base,
    )
