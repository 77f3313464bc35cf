"""What a table of version 6 in a bucket cannot have: settings whose changes are refused there, by name."""

from __future__ import annotations

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.config import EXECUTOR, HUDI, WRITERS, TableConfig
from hudi_assets.engine.table.settings.merging import EXACT_SPLIT

_UPGRADE = "upgrade the table to version 8 or 9 with Apache Hudi"


def refuse_in_a_bucket(config: TableConfig, layout: Layout, storage: Storage) -> None:
    """Raise `UnsupportedTable` where the settings ask for what has no safe way there (decision 18)."""
    if not layout.late_requests_harm(storage.capabilities):
        return
    where = storage.base
    if config.writers == "locked":
        raise UnsupportedTable(
            "On version 6 in a bucket the writers of Apache Hudi have to be stopped: no lock is shared there.",
            where=where,
            hint=f"Stop them while this runs ({WRITERS}=stopped), or {_UPGRADE}.",
        )
    if config.merging.exact_split:
        raise UnsupportedTable(
            f"{EXACT_SPLIT} is not possible on version 6 in a bucket: each execution of a plan would write the log "
            "file with the records above the threshold under the same name.",
            where=where,
            hint=f"Leave {EXACT_SPLIT} out.",
        )
    if config.executor == HUDI:
        raise UnsupportedTable(
            "Apache Hudi executes no plan from here on version 6 in a bucket.",
            where=where,
            hint=f"Leave {EXECUTOR} at native, let a writer of Hudi compact the table, or {_UPGRADE}.",
        )
