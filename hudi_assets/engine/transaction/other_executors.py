"""Whose execution of a compaction plan is under way: ours, or one of Apache Hudi's table services.

Hudi executes any plan that it finds pending (inline, async, by its procedures), and takes back an attempt that it finds
inflight. Executors of ours hold a lock of their own; between ours and Hudi's, the inflight file tells: ours
says so in it, Hudi leaves it empty and never reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.config import WRITERS, TableConfig
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.transaction.publish import BEGUN


def begun_by_us(storage: Storage, layout: Layout, instant: str) -> bool | None:
    """True, False for another engine's attempt, None where nobody has begun."""
    try:
        said = storage.read(layout.instant_path(instant, Action.COMPACTION, State.INFLIGHT))
        return said.startswith(BEGUN[:-1])
    except FileNotFoundError:
        return None


def refuse_other_executor(storage: Storage, layout: Layout, config: TableConfig, instant: str) -> None:
    """Raise `Conflict` where another engine may be executing the plan now: its files would be taken for left over.

    Only its owner can say that it is dead: `writers=stopped`, or that Hudi's services never run here.
    """
    if begun_by_us(storage, layout, instant) is False and config.writers != "stopped" and not config.merging.ours:
        raise Conflict(
            f"Another engine has begun to execute compaction {instant}.",
            where=storage.base,
            hint="Let it finish. If it is dead: stop the other engines and execute with "
            f"{WRITERS}=stopped; or, where Hudi's services never run on this table, set {TABLE_SERVICES}=ours.",
        )


def check_still_ours(
    storage: Storage, layout: Layout, instant: str, written: Iterable[str], begun: bytes = BEGUN
) -> None:
    """Right before the commit: raise `Conflict` where another engine has taken our attempt back meanwhile.

    Or another process of ours, whose inflight file says another thing than `begun`.
    """
    gone = next((path for path in written if not storage.exists(path)), None)
    if gone is None and begun_by_us(storage, layout, instant) and begun != BEGUN:
        said = storage.read(layout.instant_path(instant, Action.COMPACTION, State.INFLIGHT))
        if said != begun:
            raise Conflict(f"Another process executes compaction {instant} by now.", where=storage.base)
    if gone is not None or begun_by_us(storage, layout, instant) is not True:
        raise Conflict(
            f"Another engine has taken back our execution of compaction {instant}, to execute it itself.",
            where=f"{storage.base}: {gone or instant}",
            hint="Nothing is lost. Switch Hudi's own compaction off on this table's writers.",
        )
