"""Hudi's schema on read, which is not supported: columns told apart by ids, renamed and retyped by ALTER TABLE."""

from __future__ import annotations

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.storage import Storage


def check_no_schema_on_read(storage: Storage) -> None:
    """Refuse a table whose schema has a history of its own (`.hoodie/.schema`)."""
    if any(file.name.endswith(".schemacommit") for file in storage.list_files(".hoodie/.schema")):
        raise schema_on_read(storage)


def schema_on_read(storage: Storage) -> UnsupportedTable:
    return UnsupportedTable(
        "The table's schema was changed with schema on read (hoodie.schema.on.read.enable).",
        where=storage.base,
        hint="Its columns are told apart by ids, which older files do not have: a renamed one would be read as null.",
    )
