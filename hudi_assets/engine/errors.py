"""The errors of the engine: one small family, told apart by what the caller should do next.

Each says what was wrong, where (table, instant, file) and what to do. The command line maps
`InvalidInput` to exit code 2 and the rest to 1; programs catch `HudiAssetsError` or one of its kinds.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final


class HudiAssetsError(Exception):
    """Base of every error that the engine raises on purpose.

    `what` is one sentence, `where` names table, instant or file, `hint` is the next step for the reader, where there
    is a better one than what helps with every error of the kind (`usual_hint`).
    """

    usual_hint: ClassVar[str | None] = None

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(what, where, hint)

    @property
    def next_step(self) -> str | None:
        """What the reader can do; None where `what` says it."""
        return self.hint or self.usual_hint

    def __str__(self) -> str:
        text = self.what
        if self.where:
            text += f" [{self.where}]"
        if self.next_step:
            text += f" {self.next_step}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from Spark's workers to the driver by pickle.
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def _rebuild(kind: type[HudiAssetsError], what: str, where: str | None, hint: str | None) -> HudiAssetsError:
    return kind(what, where=where, hint=hint)


class InvalidInput(HudiAssetsError):
    """The call is wrong: correct it and call again. Nothing was written."""


class UnsupportedTable(HudiAssetsError):
    """The table uses something this version does not handle, named in the message. Nothing was written."""

    usual_hint = "The table is as it was. Use the engine that wrote it for this."


class Conflict(HudiAssetsError):
    """Another process got there first, or holds the table: call again later."""

    usual_hint = "Look at the table, then call again."


class LockLost(Conflict):
    """The table's lock was taken from this process, which gave no sign of life for too long."""


class OutdatedView(Conflict):
    """A published view may name files that a clean would delete: publish it anew, and call again."""


class CorruptTable(HudiAssetsError):
    """Bytes or files are not what the timeline says: look before going on."""

    usual_hint = (
        "Restore the file from a copy, or go back past it (hudi-assets rollback, hudi-assets restore). "
        "hudi-assets validate lists all that is wrong."
    )


class EnvironmentProblem(HudiAssetsError):
    """The machine lacks something (Java, permission, disk): mend it and call again."""


# Of a store that is reached by a network, where the system has a number for it.
REMOTE: Final = getattr(errno, "EREMOTEIO", errno.EIO)

_PERMISSION = "Give this user the permission, or run as the table's owner,"
_REMEDIES = {
    errno.ENOSPC: "Make room",
    errno.EDQUOT: "Make room, or have this user's share enlarged,",
    errno.EROFS: "Mount this file system for writing",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    REMOTE: "See that the store can be reached",
    errno.EIO: "Mend the disk",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f)",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
}


def machine_problem(error: OSError, where: str) -> EnvironmentProblem | None:
    """The problem behind a failed file operation; None where it is not the machine's (a file that is not there)."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    return EnvironmentProblem(
        f"A file cannot be written or read: {error.strerror}.",
        where=where,
        hint=f"{remedy} and call again: what is unfinished is undone first.",
    )


@contextmanager
def located(where: str) -> Iterator[None]:
    """Errors that are raised inside and name no place name this one: a table, or a file of it."""
    try:
        yield
    except HudiAssetsError as error:
        if error.where is None:
            _move(error, where)
        raise


@contextmanager
def in_table(base: str) -> Iterator[None]:
    """Errors that are raised inside, where only paths within the table are known, name the table too."""
    try:
        yield
    except HudiAssetsError as error:
        _move(error, base if error.where is None else f"{base}: {error.where}")
        raise


def _move(error: HudiAssetsError, where: str) -> None:
    error.where = where
    error.args = (error.what, where, error.hint)
