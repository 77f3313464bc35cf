"""Recovering a table by name: all that a crash, or a task that outlived its job, may have left."""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.table.files.orphans import remove_orphans
from hudi_assets.engine.table.files.strays import remove_strays
from hudi_assets.engine.transaction.clean import finish_pending
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import transaction

_LOCK_WAIT_S: Final = 60.0


def recover(table: OpenTable) -> tuple[str, ...]:
    """Undo unfinished writes and unpublished plans of ours; what was done, a sentence each."""
    with transaction(table, "recovers", wait_s=_LOCK_WAIT_S, recovers=False) as tx:
        done = tx.recover()
        done += finish_pending(table, tx.read())
        done += remove_orphans(tx.read(), table.publisher.metadata_table)
        return done + remove_strays(tx.read(), table.publisher.metadata_table)
