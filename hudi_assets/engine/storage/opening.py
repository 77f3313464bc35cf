"""Which storage a path is on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlparse

from hudi_assets.engine.errors import (
    InvalidInput,
    UnsupportedTable,
)
from hudi_assets.engine.storage.interface import Storage
from hudi_assets.engine.storage.local import LocalStorage


def open_storage(path: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage under a table's base path. Whether a table is there is not looked at.

    Args:
        path: An absolute or relative path, or a `file:` URI.
        options: For a storage that needs some. Local paths take none.

    Raises:
        UnsupportedTable: The path's scheme is another store's, as `s3://`.
        InvalidInput: The path is empty, or options are given for a local one.
    """
    text = str(path)
    scheme = urlparse(text).scheme
    if scheme and len(scheme) > 1:
        if scheme != "file":
            raise UnsupportedTable(f"Storage {scheme}:// is not supported yet.", where=text, hint="Use a local path.")
        text = unquote(urlparse(text).path)
    if options:
        raise InvalidInput(f"A local table takes no storage options (got {', '.join(sorted(options))}).", where=text)
    if not text.strip():
        raise InvalidInput("The table's path is empty.")
    return LocalStorage(os.path.abspath(text))


def folder_storage(path: str) -> Storage:
    """A local folder that is no table, as Hudi's lock may have one: nothing but the named files is left in it."""
    return LocalStorage(os.path.abspath(path), scratch="")
