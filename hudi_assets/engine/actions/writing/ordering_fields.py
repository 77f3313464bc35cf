"""What our writer does not write into a table with several ordering fields. Pure.

Of one batch's rows with one key it keeps the one that would win, and a delete block has a value of each field: neither
is done by several fields here.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.table.settings.config import TableConfig


def refuse_rows(config: TableConfig, where: str) -> None:
    """Refuse to write rows, where several fields order them."""
    if len(fields := config.ordering_fields) > 1:
        raise UnsupportedTable(
            f"The table has several ordering fields ({', '.join(fields)}): its rows are not written here.",
            where=where,
            hint="Let Hudi go on writing rows. Deleting, compacting, cleaning and reading here is supported.",
        )


def refuse_ordering_values(config: TableConfig, given: Sequence[str], where: str) -> None:
    """Refuse deletes with values of several ordering fields: without them they are deletes in commit order."""
    fields = config.ordering_fields
    if len(fields) > 1 and (stated := [name for name in fields if name in given]):
        raise UnsupportedTable(
            f"A delete with values of several ordering fields ({', '.join(fields)}) is not written here.",
            where=where,
            hint=f"Leave {', '.join(stated)} out: the delete counts then whatever a row's values are.",
        )
