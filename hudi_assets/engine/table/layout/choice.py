"""Which layout a table version has: chosen once, when a table is made or opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8

_LAYOUTS: Final[Mapping[int, Layout]] = {6: LayoutV6(), 8: LayoutV8(8), 9: LayoutV8(9, states_payload_class=False)}


def layout_of(version: int, where: str) -> Layout:
    """The layout of a table version. `where`: the table that an `UnsupportedTable` names."""
    layout = _LAYOUTS.get(version)
    if layout is None:
        raise UnsupportedTable(
            f"Table version {version} is not supported.",
            where=where,
            hint=f"Supported: {', '.join(map(str, _LAYOUTS))}.",
        )
    return layout


def layout_of_new_table(version: int | None, storage: Storage) -> Layout:
    """The layout of a table that is to be made. Without a version: 6, and 9 in a bucket."""
    return layout_of(version or (6 if storage.capabilities.links else 9), storage.base)
