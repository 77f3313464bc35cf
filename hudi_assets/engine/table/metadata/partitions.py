"""Which partitions the metadata table has, and which of them what we do would make untrue.

hoodie.properties says it (HoodieTableConfig.TABLE_METADATA_PARTITIONS): what is not named there is not used,
whatever lies in the folder.
"""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model.settings import listed
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.metadata.own_timeline import PROPERTIES
from hudi_assets.engine.table.settings.java_properties import parse_properties

COMPLETED: Final = "hoodie.table.metadata.partitions"
INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
TABLE_PROPERTIES: Final = ".hoodie/hoodie.properties"


def table_properties(storage: Storage, path: str = TABLE_PROPERTIES) -> dict[str, str]:
    """hoodie.properties as it is now: another engine may have switched the metadata table on since."""
    try:
        return parse_properties(storage.read(path).decode("latin-1"))
    except ValueError as error:
        raise CorruptTable(f"{path} cannot be parsed: {error}.", where=storage.base) from error


def named(text: str | None) -> tuple[str, ...]:
    return tuple(sorted(listed(text)))


def has_metadata_table(storage: Storage) -> bool:
    """True where the table has a metadata table that readers use."""
    if storage.modified_ms(PROPERTIES) is None:  # a file: nobody asks a store for a folder of its name
        return False
    return "files" in named(table_properties(storage).get(COMPLETED))
