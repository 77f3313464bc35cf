"""The headers of a log file's blocks, with errors that name table and file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hudi_assets.engine.errors import located
from hudi_assets.engine.format.log_file.codec import LogBlock, read_headers
from hudi_assets.engine.storage import Storage


def log_headers(storage: Storage, path: str, size: int | None = None) -> Iterator[LogBlock]:
    """The blocks of a log file without their contents. `size`: its bytes, where the caller has them listed.

    `CorruptTable` for a file that is no log file; FileNotFoundError where it is not there.
    """
    with located(f"{storage.base}: {path}"):
        yield from read_headers(partial(storage.read_at, path), storage.size(path) if size is None else size)
