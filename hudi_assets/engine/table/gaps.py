"""What is a gap in a table's rows, by its settings and its schema."""

from __future__ import annotations

import json

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.merging.gaps import Gaps
from hudi_assets.engine.table.settings.not_merged import LET_HUDI, PARTIAL_UPDATE_MODE
from hudi_assets.engine.table.state import TableState


def gaps_of(state: TableState) -> Gaps | None:
    """What is a gap; None where the table has no partial update mode.

    Raises `UnsupportedTable` where a column has another default than null, which the mode IGNORE_DEFAULTS is about too.
    Whether Hudi sees one in a row depends on Java: it compares objects there, not values.
    """
    gaps = state.config.merging.gaps
    if gaps is None or gaps.marker is not None:
        return gaps
    for field in json.loads(state.avro_schema)["fields"]:
        if field.get("default") is not None:
            raise UnsupportedTable(
                f"The column {field['name']} has the default {json.dumps(field['default'])}. "
                f"With {PARTIAL_UPDATE_MODE}=IGNORE_DEFAULTS no other than null is merged here.",
                where=state.storage.base,
                hint=LET_HUDI,
            )
    return gaps
