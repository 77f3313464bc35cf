"""Is the table where its block says? One that others write has to be; one of ours is made by its first ingestion."""

from pathlib import Path

from hudi_assets.dagster.assets import TableAssets
from hudi_assets.dagster.told import Events
from hudi_assets.engine import InvalidInput
from hudi_assets.resources import TableResource


def absence(table: TableAssets, resource: TableResource, events: Events) -> str | None:
    """Why there is nothing to look at yet; None where the table is there.

    Raises `InvalidInput`, with what to do, where a table should be: a path that is mistyped or gone must not look as if
    all were well.
    """
    if resource.exists():
        return None
    where = resource.location
    if table.external:
        raise InvalidInput(
            _what(resource),
            where=where,
            hint=f"Correct `path` in the block of the table {table.name}, or put the table back.",
        )
    if events.get_latest_materialization_event(table.key("mor_table")) is not None:
        raise InvalidInput(
            f"The table {table.name} was written before, and is gone: {_what(resource)}",
            where=where,
            hint="Put it back, or correct `path` in its block. If it was removed on purpose, wipe the materializations "
            f"of {table.key('mor_table').to_user_string()} in Dagster, and ingest anew.",
        )
    if "://" not in where and Path(where).is_dir() and any(Path(where).iterdir()):
        raise InvalidInput(
            f"The table {table.name} was never written, and its folder holds something else.",
            where=where,
            hint=f"Correct `path` in the block of the table {table.name}, or empty the folder.",
        )
    return f"There is no table {table.name} yet."


def _what(resource: TableResource) -> str:
    if "://" not in resource.location and Path(resource.location).is_dir():
        return "This folder holds no Hudi table: it has no `.hoodie`."
    return "There is no such folder."
