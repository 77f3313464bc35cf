"""Which files a table has: its partitions listed, and each name parsed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.storage import FileInfo, Storage, each
from hudi_assets.engine.table.layout.interface import Layout

PARTITION_FILE: Final = ".hoodie_partition_metadata"
DataFiles = Mapping[str, list[LogFile | BaseFile]]
"""Partition → its log and base files, in the order of the listing."""


def walk(storage: Storage) -> Iterator[tuple[str, list[FileInfo]]]:
    """Each partition with its files. Folders beside each other are listed at a time, where the store is slow."""
    found: dict[str, tuple[list[FileInfo], list[str]]] = {}
    level = [""]
    while level:
        found.update(zip(level, each(storage, storage.list_folder, level), strict=True))
        level = [folder for at in level for folder in found[at][1] if folder.rsplit("/", 1)[-1] != ".hoodie"]
    yield from _partitions(found, "")


def _partitions(
    found: Mapping[str, tuple[list[FileInfo], list[str]]], directory: str
) -> Iterator[tuple[str, list[FileInfo]]]:
    files, folders = found[directory]
    # hoodie.partition.metafile.use.base.format adds the base files' ending.
    if any(file.path.endswith((PARTITION_FILE, f"{PARTITION_FILE}.parquet")) and _marks(file) for file in files):
        yield directory, files
    for folder in folders:
        if folder in found:
            yield from _partitions(found, folder)


def _marks(file: FileInfo) -> bool:
    return file.name.removesuffix(".parquet") == PARTITION_FILE


def parse(listing: Mapping[str, Iterable[FileInfo]], layout: Layout) -> DataFiles:
    """The log and base files of a listing; files of other kinds are left out."""
    return {partition: layout.parse_files(files, partition) for partition, files in listing.items()}
