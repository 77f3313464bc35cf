"""Writing the metadata table (`.hoodie/metadata`): its files partition says which files the data table has.

The order is Hudi's (HoodieBackedTableMetadataWriter): the delta commit of the same instant is completed in the metadata
table *before* the instant is completed in the data table. While the instant is pending there, no reader counts what
the metadata table says of it, so both become visible at once. After a crash in between, the metadata table's
delta commit has to go before the instant leaves the data table's timeline: from then on it would count
(Hudi 1.2.0 takes any completed one whose instant is not pending).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import Conflict, CorruptTable, UnsupportedTable
from hudi_assets.engine.layout.seam import Layout
from hudi_assets.engine.logs.codec import BlockType, HeaderKey, encode_block, read_headers
from hudi_assets.engine.metadata_table.own_timeline import ROOT, OwnInstant, OwnTimeline, own_path
from hudi_assets.engine.metadata_table.slices import FILES, FilesSlice, read_files_slice
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.timeline.commit_metadata import SCHEMA, WRITER, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.instants import format_instant

WRITER_NAME: Final = "hudi-assets"
Added = Mapping[str, Mapping[str, int]]
"""Partition → name → size in bytes. The partition of a table without partitions is ""."""
Deleted = Mapping[str, Collection[str]]
"""Partition → names."""
_NOTHING: Final[Deleted] = {}
_TOKEN: Final = "0-0-0"
_AT_ONCE: Final = "004"
