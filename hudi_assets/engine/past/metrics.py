"""What monitoring asks of a table."""

from __future__ import annotations

from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import TableMetrics
from hudi_assets.engine.past.bills import bills_of, by_day
from hudi_assets.engine.past.compactions import past_compactions, pending_since
from hudi_assets.engine.status import stats_of
from hudi_assets.engine.table.state import TableState


def metrics_of(state: TableState) -> TableMetrics:
    """All of this one reading. What damages the past alone costs the days alone."""
    try:
        days = by_day(bills_of(state))
    except HudiAssetsError:
        days = ()
    return TableMetrics(
        stats=stats_of(state),
        read_at_ms=state.read_at_ms,
        pending_since_ms=pending_since(state),
        last_compaction=next(past_compactions(state), None),
        days=days,
    )
