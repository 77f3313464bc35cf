"""What all stores that are reached by a network have in common, whatever library asks them."""

from __future__ import annotations

from hudi_assets.engine.errors import Conflict


class Unanswered(OSError):
    """No answer came, or none that says what was done: a change may have been made all the same."""


def came_second(what: str, where: str) -> Conflict:
    """The error of a change that another process made first. `what` says which it was."""
    return Conflict(
        f"Another process {what} this file first.", where=where, hint="Look at the table again before going on."
    )


def table_folder(path: str | None) -> str:
    """A table's folder in its store, without slashes at its ends; "" where the path names none, or leads elsewhere."""
    folder = (path or "").strip("/")
    return "" if any(part in ("", ".", "..") for part in folder.split("/")) else folder
