"""Files whose failed operations say which file it was: the system names one where it is opened, not after that."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_assets.engine.storage.new_stream import NewStream


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """A full disk, a limit, an I/O error: whatever fails in here without a name is of this file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


class NamedWriter(NewStream, io.BufferedWriter):
    """A new file that takes its name, over what is there, when it is closed; before that it is hidden beside it."""

    def __init__(self, path: Path) -> None:
        hidden = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            super().__init__(io.FileIO(hidden, "xb"))
        except OSError as error:
            error.filename = os.fspath(path)
            raise
        self._path, self._hidden, self._opened = path, hidden, True

    def write(self, data: Any, /) -> int:
        with naming(self._path):
            return super().write(data)

    def flush(self) -> None:
        with naming(self._path):
            super().flush()

    def close(self) -> None:
        if self.closed:
            return
        try:
            with naming(self._path):
                super().close()
            os.replace(self._hidden, self._path)
        except BaseException:
            self._hidden.unlink(missing_ok=True)
            raise

    def abort(self) -> None:
        if not self.closed:
            self.raw.close()  # what is not written yet never will be
            self._hidden.unlink(missing_ok=True)
