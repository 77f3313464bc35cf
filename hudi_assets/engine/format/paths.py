"""Paths that files of a table name: they must stay inside it. Pure."""

from __future__ import annotations

from hudi_assets.engine.errors import CorruptTable


def inside_table(path: str, what: str, where: str) -> str:
    """The table-relative path of a data file or partition; `CorruptTable` where it leads elsewhere.

    `what` names who says so ("compaction plan"). `.hoodie` holds no data: nothing may be linked or deleted there.
    """
    parts = path.split("/")
    if path and (path.startswith("/") or ".." in parts or "\0" in path or parts[0] == ".hoodie"):
        raise CorruptTable(f"The {what} names a path outside the table's data: {path!r:.200}.", where=where)
    return path


def inside_folder(name: str, what: str, where: str) -> str:
    """A file's bare name; `CorruptTable` where it is a path."""
    if "/" in name or "\0" in name or name in ("", ".", ".."):
        raise CorruptTable(f"The {what} names a file outside its partition: {name!r:.200}.", where=where)
    return name
