"""Timeline files that another engine has made and is still filling.

On a local file system Apache Hudi creates a completed instant's file empty and then writes it (0.15.0, tried): for
some milliseconds a commit is there without its metadata, or with half of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.storage import Storage

Decoded = TypeVar("Decoded")

_YOUNG_MS = 2_000
_POLL_S = 0.02


def read_settled(
    storage: Storage, path: str, decode: Callable[[bytes], Decoded], *, may_be_empty: bool = False
) -> Decoded:
    """Decode a file; one that is empty or damaged, and was changed in the last seconds, is read again.

    An old file is taken as it is: empty ones are for `decode` to judge, damaged ones raise its `CorruptTable`.
    `may_be_empty`: so is a young one that is empty, as Hudi's requested files are.
    """
    while True:
        data = storage.read(path)
        try:
            found = decode(data)
        except CorruptTable:
            if not _young(storage, path):
                raise
        else:
            if data or may_be_empty or not _young(storage, path):
                return found
        time.sleep(_POLL_S)


def _young(storage: Storage, path: str) -> bool:
    modified = storage.modified_ms(path)
    return modified is not None and 0 <= time.time_ns() // 1_000_000 - modified < _YOUNG_MS
