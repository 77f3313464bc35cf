"""What the streams of `NewFile` share: only one that is closed, and in which nothing failed, gives its file a name."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING


class NewStream:
    """Put before the kind of stream. `close` commits, `abort` does not; `_opened`: there is something to abort."""

    _opened = False

    def abort(self) -> None:
        raise NotImplementedError

    if TYPE_CHECKING:

        def close(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        self.close()

    def __del__(self) -> None:
        # Else the end of a stream that nobody closed would commit it.
        if self._opened:
            self.abort()
