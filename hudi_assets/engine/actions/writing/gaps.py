"""What our writer does not write into a table with a partial update mode. Pure."""

from __future__ import annotations

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.settings.not_merged import PARTIAL_UPDATE_MODE


def refuse_rows_with_gaps(config: TableConfig, where: str) -> None:
    """Refuse to write rows: of one batch's rows with one key Hudi's writer makes one, which our writer does not."""
    if config.merging.gaps is not None:
        mode = config.properties[PARTIAL_UPDATE_MODE]
        raise UnsupportedTable(
            f"The table has a partial update mode ({PARTIAL_UPDATE_MODE}={mode}): its rows are not written here.",
            where=where,
            hint="Let Hudi go on writing rows. Deleting, compacting, cleaning and reading here is supported.",
        )
