"""Which partitions of the metadata table each of our actions leaves true, and what is done about the others.

files is kept up, and column_stats for base files; a log file without an entry is never skipped. partition_stats is a
bound over a partition, which a write can widen. The record index and the secondary indexes name a record's file
group, which a compaction does not change. The bloom filters and the expression indexes have to know every base file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.model import Action, Instant
from hudi_assets.engine.model.settings import is_true
from hudi_assets.engine.storage import Storage, change, read_to_change
from hudi_assets.engine.table.layout.interface import VERSION, Layout
from hudi_assets.engine.table.metadata.column_stats import COLUMN_STATS, forget_definition
from hudi_assets.engine.table.metadata.own_timeline import PROPERTIES, ROOT, OwnTimeline
from hudi_assets.engine.table.metadata.partitions import (
    COMPLETED,
    INFLIGHT,
    TABLE_PROPERTIES,
    has_metadata_table,
    named,
    table_properties,
)
from hudi_assets.engine.table.settings.config import METADATA_SWITCH_OFF, TableConfig
from hudi_assets.engine.table.settings.java_properties import dump_properties
from hudi_assets.engine.timeline.writers_zone.evidence import saved_lines

_FILES: Final = "files"
_LEFT_TRUE: Final = {
    "write": ("files", "column_stats"),
    "compaction": ("files", "column_stats", "partition_stats", "record_index", "secondary_index_"),
}
# A rollback takes files away, and with them what is said of files. Where records are is said elsewhere.
_OF_FILES: Final = ("files", "column_stats", "partition_stats", "bloom_filters", "expr_index_")
_WRITE: Final = "write"
_COMPACTION: Final = "compaction"


def untrue_after(partitions: tuple[str, ...], action: str) -> tuple[str, ...]:
    """Those that a write, or a compaction, of ours would make untrue. One that is not known counts as such."""
    return _without(partitions, _LEFT_TRUE[action])


def _without(partitions: tuple[str, ...], kept: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(p for p in partitions if not any(p == k or (k.endswith("_") and p.startswith(k)) for k in kept))


def check_write(storage: Storage, config: TableConfig, layout: Layout) -> tuple[str, ...]:
    """The partitions that have to be switched off before a write; `UnsupportedTable` where that is not asked for."""
    return _check(storage, config, layout, _WRITE)


def check_compaction(storage: Storage, config: TableConfig, layout: Layout) -> tuple[str, ...]:
    """As `check_write`, for a compaction."""
    return _check(storage, config, layout, _COMPACTION)


def _check(storage: Storage, config: TableConfig, layout: Layout, action: str) -> tuple[str, ...]:
    if not has_metadata_table(storage):
        return ()
    _check_layout(storage, layout)
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
    return _willing(storage, config, f"A {action}", untrue)


def check_undo(storage: Storage, config: TableConfig, layout: Layout, instants: Iterable[Instant]) -> tuple[str, ...]:
    """As `check_write`, for taking writes back, completed ones.

    What a compaction of the metadata table has merged cannot be taken out of an index of records any more: it would
    go on naming the file groups of rows that are gone, and Hudi's next upsert of such a key believe it.
    """
    if not has_metadata_table(storage):
        return ()
    properties = table_properties(storage)
    partitions = (*named(properties.get(COMPLETED)), *named(properties.get(INFLIGHT)))
    stale = _without(partitions, _OF_FILES)
    if not stale:
        return ()
    own = OwnTimeline.read(storage, layout)
    for instant in instants:
        written = instant.is_completed and instant.action in (Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
        delta = own.of(instant.timestamp, Action.DELTA_COMMIT)
        # Without a delta commit of its own the index was built, or archived, when the write was there already.
        if written and (not delta or own.has_merged(delta[0])):
            merged = f"To roll {instant.timestamp} back, which the metadata table has merged,"
            return _willing(storage, config, merged, stale)
    return ()


def _willing(storage: Storage, config: TableConfig, what: str, untrue: tuple[str, ...]) -> tuple[str, ...]:
    """The partitions to switch off, where the settings allow it."""
    if untrue and not is_true(config.properties, METADATA_SWITCH_OFF):
        raise UnsupportedTable(
            f"{what} would make partitions of the metadata table untrue: {', '.join(untrue)}.",
            where=storage.base,
            hint=f"Let Hudi do it; or have them switched off, with {METADATA_SWITCH_OFF}=true: Hudi's next "
            "write builds those anew that it is configured to have.",
        )
    return untrue


def _check_layout(storage: Storage, layout: Layout) -> None:
    own = table_properties(storage, PROPERTIES)
    version, files = own.get(VERSION, "unknown"), own.get("hoodie.table.base.file.format", "unknown")
    if version not in map(str, layout.metadata_table_versions) or files != "HFILE":
        raise UnsupportedTable(
            f"The metadata table is of version {version} and of {files} files, the table of version {layout.version}.",
            where=f"{storage.base}: {PROPERTIES}",
            hint="Delete the metadata table with Hudi (hoodie.metadata.enable=false) and let it make a new one.",
        )


def switch_off(storage: Storage, partitions: tuple[str, ...]) -> None:
    """Take partitions out of use, as HoodieTableMetadataUtil.deleteMetadataTablePartition: first out of
    hoodie.properties, so that nobody reads them, then their folders. Call it under the write lock.

    Of the definitions in `.hoodie/.index_defs` that of column_stats goes; those of other indexes stay, as with Hudi.
    """
    if not partitions:
        return
    said, version = read_to_change(storage, TABLE_PROPERTIES)
    properties = table_properties(storage)
    for key in (COMPLETED, INFLIGHT):
        properties[key] = ",".join(p for p in named(properties.get(key)) if p not in partitions)
    # Hudi's words on its own clock stay on top: `timeline/writers_zone/evidence.py` goes by them.
    saved = saved_lines(said.decode("latin-1")).encode("latin-1")
    change(storage, TABLE_PROPERTIES, saved + dump_properties(properties), version)
    if COLUMN_STATS in partitions:
        forget_definition(storage)
    for partition in partitions:
        storage.delete_tree(f"{ROOT}/{partition}")
