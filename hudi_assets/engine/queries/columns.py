"""The columns that a query asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_assets.engine.errors import InvalidInput


def chosen_columns(schema: pa.Schema, columns: Sequence[str] | None, where: str) -> tuple[str, ...] | None:
    """The columns asked for, checked; None for all of them.

    Raises `InvalidInput`, naming the column, for one that the table does not have, or that is named twice.
    """
    if columns is None:
        return None
    if isinstance(columns, str):
        raise InvalidInput(f"columns is the text {columns!r}.", where=where, hint="Give a list of names.")
    if not columns:
        raise InvalidInput("No column is asked for.", where=where, hint="Leave columns out to get all of them.")
    for name in columns:
        if name not in schema.names:
            hint = f"It has {', '.join(schema.names)}."
            raise InvalidInput(f"The table has no column {name!r}.", where=where, hint=hint)
        if list(columns).count(name) > 1:
            raise InvalidInput(f"Column {name!r} is asked for twice.", where=where, hint="Name each column once.")
    return tuple(columns)
