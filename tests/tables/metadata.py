"""Tables with Hudi's metadata table, without Hudi: the files partition as its first writer makes it, empty."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hudi_assets.engine import HudiTable
from hudi_assets.engine.format.hfile.file import write_hfile
from hudi_assets.engine.format.log_file.codec import BlockType, HeaderKey, encode_block
from hudi_assets.engine.format.log_file.delete_codec import encode_deletes
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.metadata.column_stats import COLUMN_STATS, INDEX_DEFS_PATH, merged_stats
from hudi_assets.engine.table.metadata.own_timeline import PROPERTIES, ROOT, OwnTimeline, own_path
from hudi_assets.engine.table.metadata.partitions import COMPLETED
from hudi_assets.engine.table.metadata.reader import ValidInstants, read_files
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import decode_row, encode, partition_list
from hudi_assets.engine.table.metadata.slices import FOLDER, newest_slices
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat

INDEX_DEFS = ".hoodie/.index_defs/index.json"
FIRST = {6: "00000000000000010", 8: "00000000000000000", 9: "00000000000000000"}


def switch_on(table: HudiTable, *more: str, indexed: Sequence[str] | None = None) -> None:
    """Give an empty table a metadata table; `more`: names of indexes that hoodie.properties has beside it.

    `indexed`: the columns that Hudi 1.x's definition of column_stats names; without, there is none, as with 0.15.0.
    """
    layout: Layout = table.state().layout
    storage, version = LocalStorage(table.path), table.config.table_version
    flavour = layout.metadata_flavour
    first, schema = FIRST[version], record_schema(flavour)
    name = f"files-0000-0_0-0-0_{first}.hfile"
    base = write_hfile([encode(partition_list([]), schema, base_file=name)], schema=schema, flavour=flavour)
    storage.create(f"{FOLDER}/{name}", base)
    storage.create(f"{FOLDER}/.hoodie_partition_metadata", b"#partition metadata\npartitionDepth=1\n")
    storage.create(
        PROPERTIES,
        f"hoodie.table.name=t_metadata\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version={version}\n"
        "hoodie.table.base.file.format=HFILE\nhoodie.table.recordkey.fields=key\n"
        "hoodie.populate.meta.fields=false\n".encode(),
    )
    stat = WriteStat(f"files/{name}", "files", "files-0000-0", "null", len(base), num_writes=1, num_inserts=1)
    completion = first if layout.names_completion_times else None
    for state in State:
        done = state is State.COMPLETED
        content = layout.encode_commit(CommitMetadata("BULK_INSERT", (stat,))) if done else b""
        path = own_path(layout, first, Action.DELTA_COMMIT, state, completion if done else None)
        storage.create(path, content)
    if COLUMN_STATS in more:
        _add_column_stats(storage, layout, version, indexed)
    properties = Path(table.path, ".hoodie/hoodie.properties")
    properties.write_text(properties.read_text() + f"{COMPLETED}={','.join(('files', *more))}\n")


def _add_column_stats(storage: LocalStorage, layout: Layout, version: int, indexed: Sequence[str] | None) -> None:
    """Two empty file groups: a log file each, without a record, as Hudi begins them."""
    instant = FIRST[version][:-1] + "1"
    empty = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, encode_deletes([]))
    for number in range(2):
        name = f".col-stats-000{number}-0_{instant}.log.1_0-0-0"
        storage.create(f"{ROOT}/{COLUMN_STATS}/{name}", empty)
    path = own_path(
        layout, instant, Action.DELTA_COMMIT, State.COMPLETED, instant if layout.names_completion_times else None
    )
    storage.create(path, layout.encode_commit(CommitMetadata("BULK_INSERT", ())))
    if indexed is not None:
        definition = {"sourceFields": list(indexed), "version": "V2" if version == 9 else "V1"}
        storage.create(INDEX_DEFS, json.dumps({"indexDefinitions": {COLUMN_STATS: definition}}).encode())
        properties = Path(storage.base, ".hoodie/hoodie.properties")
        properties.write_text(properties.read_text() + f"{INDEX_DEFS_PATH}={INDEX_DEFS}\n")


def column_stats(table: HudiTable) -> dict[tuple[str, str], dict[str, Any]]:
    """(file name, column) → fields of the entries that the metadata table's column_stats has."""
    state = table.state()
    own = OwnTimeline.read(state.storage, state.layout)
    valid = ValidInstants(own, state.timeline)
    schema = record_schema(state.layout.metadata_flavour)
    found = {}
    for slice_ in newest_slices(state.storage, state.layout, own, COLUMN_STATS):
        for entry in merged_stats(state.storage, slice_, valid, schema, ""):
            fields = decode_row(entry, schema)[1]["ColumnStatsMetadata"]
            found[fields["fileName"], fields["columnName"]] = fields
    return found


def on_disk(table: HudiTable) -> dict[str, dict[str, int]]:
    """Partition → name → size of the data files that are there."""
    found = {
        partition: {f.name: f.size for f in files if not f.name.startswith(".hoodie") and not f.name.endswith(".crc")}
        for partition, files in table.state().listing.items()
    }
    return {partition: files for partition, files in found.items() if files}


def in_metadata_table(table: HudiTable) -> dict[str, dict[str, int]]:
    """The same, as the metadata table says it."""
    state = table.state()
    listed = read_files(state.storage, state.layout, state.timeline).listing
    return {partition: files for partition, files in listed.items() if files}
