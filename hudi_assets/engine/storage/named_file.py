"""Files whose failed operations say which file it was: the system names one where it is opened, not after that."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """A full disk, a limit, an I/O error: whatever fails in here without a name is of this file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


class NamedWriter(io.BufferedWriter):
    """A new file to write, over what was there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(io.FileIO(path, "wb"))

    def write(self, data: Any, /) -> int:
        with naming(self._path):
            return super().write(data)

    def flush(self) -> None:
        with naming(self._path):
            super().flush()

    def close(self) -> None:
        with naming(self._path):
            super().close()
