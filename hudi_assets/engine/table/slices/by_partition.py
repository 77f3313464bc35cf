"""A table's files by partition and by path, each made when it is asked for: no look at a large table asks for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from hudi_assets.engine.model import BaseFile, LogFile
from hudi_assets.engine.table.slices.parts import Files, Part


class FilesOfParts(Mapping[str, Files]):
    """Partition → its log and base files, each made when it is asked for."""

    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = parts

    def __getitem__(self, partition: str) -> Files:
        return self._parts[partition].files

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class Sizes(Mapping[str, int]):
    """Path → size of every log and base file that is there."""

    def __init__(self, files: Mapping[str, Files]) -> None:
        """`files`: by partition."""
        self._files = files
        self._last: tuple[str, Files] = ("", {})

    def __getitem__(self, path: str) -> int:
        folder = path.rpartition("/")[0]
        last, files = self._last
        if last != folder or not files:
            files = self._files[folder]
            self._last = (folder, files)
        return files[path].size

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._files.values())

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))


class ListsOfParts(Mapping[str, list[LogFile | BaseFile]]):
    """The same as lists."""

    def __init__(self, files: Mapping[str, Files]) -> None:
        self._files = files

    def __getitem__(self, partition: str) -> list[LogFile | BaseFile]:
        return list(self._files[partition].values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
