"""Which files a table has: its partitions listed, and each name parsed once."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.storage import FileInfo, Folder, Storage, each, list_again
from hudi_assets.engine.table.layout.interface import Layout

PARTITION_FILE: Final = ".hoodie_partition_metadata"
DataFiles = Mapping[str, list[LogFile | BaseFile]]
"""Partition → its log and base files, in the order of the listing."""


@dataclass(frozen=True, slots=True)
class Tree:
    """All folders of a table but `.hoodie`, and which of them are partitions, in order."""

    folders: Mapping[str, Folder]
    partitions: tuple[str, ...]

    @classmethod
    def read(
        cls,
        storage: Storage,
        last: Tree | None = None,
        anew: Container[str] = (),
        *,
        keeps: bool = False,
        sizes: bool = False,
    ) -> Tree:
        """The folders now; of the last listing what is so still, but for those that are to be listed `anew`.

        `keeps`: they are kept for the next look, in few bytes where they are many. `sizes`: each file is asked for its
        own, whatever its folder says.
        """
        before: Mapping[str, Folder] = last.folders if last is not None else {}

        def ask(folder: str) -> Folder:
            was = before.get(folder)
            found = list_again(storage, folder, None if folder in anew else was, sizes=sizes)
            if keeps and found is not was:
                found.files.keep_few()
            return found

        found: dict[str, Folder] = {}
        level = [""]
        while level:
            found.update(zip(level, each(storage, ask, level), strict=True))
            level = [one for at in level for one in found[at].folders if one.rsplit("/", 1)[-1] != ".hoodie"]
        known = frozenset(last.partitions if last is not None else ())
        return cls(found, tuple(_partitions(found, "", lambda at: at in known and found[at] is before[at])))


def _partitions(found: Mapping[str, Folder], directory: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    folder = found[directory]
    # hoodie.partition.metafile.use.base.format adds the base files' ending.
    if is_known(directory) or any(
        file.path.endswith((PARTITION_FILE, f"{PARTITION_FILE}.parquet")) and _marks(file) for file in folder.files
    ):
        yield directory
    for one in folder.folders:
        if one in found:
            yield from _partitions(found, one, is_known)


def _marks(file: FileInfo) -> bool:
    return file.name.removesuffix(".parquet") == PARTITION_FILE


def parse(listing: Mapping[str, Iterable[FileInfo]], layout: Layout) -> DataFiles:
    """The log and base files of a listing; files of other kinds are left out."""
    return {partition: layout.parse_files(files, partition) for partition, files in listing.items()}
