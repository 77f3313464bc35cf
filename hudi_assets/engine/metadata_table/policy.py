"""Which partitions of the metadata table each of our actions leaves true, and what is done about the others.

files is kept up. column_stats and partition_stats say something of each file that they have, so a new file without
an entry is never skipped; but partition_stats is a bound over a partition, which a write can widen. The record
index and the secondary indexes name a record's file group, which a compaction does not change. The bloom filters and
the expression indexes have to know every base file.
"""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.metadata_table.own_timeline import PROPERTIES, ROOT
from hudi_assets.engine.metadata_table.partitions import (
    COMPLETED,
    INFLIGHT,
    TABLE_PROPERTIES,
    has_metadata_table,
    named,
    table_properties,
)
from hudi_assets.engine.settings.config import METADATA_SWITCH_OFF, TableConfig, dump_properties
from hudi_assets.engine.storage import Storage

_FILES: Final = "files"
_COLUMN_STATS: Final = "column_stats"
_LEFT_TRUE: Final = {
    "write": ("files", "column_stats"),
    "compaction": ("files", "column_stats", "partition_stats", "record_index", "secondary_index_"),
}
_WRITE: Final = "write"
_COMPACTION: Final = "compaction"


def untrue_after(partitions: tuple[str, ...], action: str) -> tuple[str, ...]:
    """Those that a write, or a compaction, of ours would make untrue. One that is not known counts as such."""
    kept = _LEFT_TRUE[action]
    return tuple(p for p in partitions if not any(p == k or (k.endswith("_") and p.startswith(k)) for k in kept))


def check_write(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """The partitions that have to be switched off before a write; `UnsupportedTable` where that is not asked for."""
    return _check(storage, config, _WRITE)


def check_compaction(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """As `check_write`, for a compaction."""
    return _check(storage, config, _COMPACTION)


def _check(storage: Storage, config: TableConfig, action: str) -> tuple[str, ...]:
    if not has_metadata_table(storage):
        return ()
    _check_version(storage, config)
    properties = table_properties(storage)
    building = named(properties.get(INFLIGHT))
    if _FILES in building:
        raise UnsupportedTable(
            "The metadata table is being built.",
            where=storage.base,
            hint="Wait until the engine that builds it has finished.",
        )
    partitions = (*named(properties.get(COMPLETED)), *building)
    untrue = untrue_after(partitions, action)
    if config.index.ranges_from_metadata and _COLUMN_STATS in partitions:
        # A writer's bloom index would not look into a base file without an entry: it would insert its keys again.
        untrue = (*untrue, _COLUMN_STATS)
    if untrue and config.properties.get(METADATA_SWITCH_OFF, "false").strip().lower() != "true":
        raise UnsupportedTable(
            f"A {action} would make partitions of the metadata table untrue: {', '.join(untrue)}.",
            where=storage.base,
            hint=f"Let Hudi do it; or have them switched off, with {METADATA_SWITCH_OFF}=true: Hudi's next "
            "write builds those anew that it is configured to have.",
        )
    return untrue


def _check_version(storage: Storage, config: TableConfig) -> None:
    own = table_properties(storage, PROPERTIES)
    version = own.get("hoodie.table.version", "")
    if (version == "6") != (config.table_version == 6) or own.get("hoodie.table.base.file.format") != "HFILE":
        raise UnsupportedTable(
            f"The metadata table is of version {version or 'unknown'}, the table of version {config.table_version}.",
            where=f"{storage.base}: {PROPERTIES}",
            hint="Delete the metadata table with Hudi (hoodie.metadata.enable=false) and let it make a new one.",
        )


def switch_off(storage: Storage, partitions: tuple[str, ...]) -> None:
    """Take partitions out of use, as HoodieTableMetadataUtil.deleteMetadataTablePartition: first out of
    hoodie.properties, so that nobody reads them, then their folders. Call it under the write lock.
    """
    if not partitions:
        return
    properties = table_properties(storage)
    for key in (COMPLETED, INFLIGHT):
        properties[key] = ",".join(p for p in named(properties.get(key)) if p not in partitions)
    storage.replace(TABLE_PROPERTIES, dump_properties(properties))
    for partition in partitions:
        storage.delete_tree(f"{ROOT}/{partition}")
