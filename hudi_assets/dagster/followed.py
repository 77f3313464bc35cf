"""A tick keeps the catalog true: what it saw is published at once, without a run and without Spark.

Only where the table was published before, and where the catalog is reached without a Spark session. Else a run of the
asset `freshness` publishes, as the sensor asks for it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dagster import AssetKey, AssetMaterialization

from hudi_assets.catalog.follow import NOT_PUBLISHED, Followed, follow
from hudi_assets.catalog.publication import Current
from hudi_assets.dagster import report
from hudi_assets.dagster.assets import TableAssets
from hudi_assets.dagster.known import Known, OneTable
from hudi_assets.dagster.looks import TickLook
from hudi_assets.dagster.told import told_metadata

if TYPE_CHECKING:
    from hudi_assets.engine import HudiTable


def follow_look(context: OneTable, table: TableAssets, hudi: "HudiTable", seen: Current) -> Followed:
    """Publish what differs. A freshness that only moves on is published at the pace of reports."""
    place = getattr(context.resources, table.catalog_key).place(ro=table.ro_view, rt=table.rt_view)
    if place is None:
        return Followed(False, "only a Spark session leads to the catalog")
    followed = follow(seen, hudi, place, step_ms=table.report_every_ms, find=context.known.found)
    if followed.properties is not None:
        context.log.info(f"Published: {followed.why}.")
    elif not followed.stands and followed != NOT_PUBLISHED:
        context.log.warning(f"The catalog was not asked: {followed.why}")
    return followed


# What was published of a table, and could not be reported yet: readers were told, and no event says so.
_untold: dict[AssetKey, list[tuple[Mapping[str, str], dict[str, Any]]]] = {}


def report_publication(known: Known, table: TableAssets, seen: TickLook, followed: Followed) -> None:
    """What was published, as an event of `freshness`: what comes late is told by what readers were told."""
    if followed.properties is None:
        return
    metadata = report.promise_metadata(seen.freshness, seen.now_ms) | {"reason": followed.why}
    _untold.setdefault(table.key("freshness"), []).append((followed.properties, metadata))
    report_untold(known, table)


def report_untold(known: Known, table: TableAssets) -> None:
    """Also what a look before this one published, where Dagster could not be told: its database was locked."""
    key = table.key("freshness")
    waiting = _untold.get(key, [])
    for one in list(waiting):
        properties, metadata = one
        # Not what the tick knew before: a run may have told readers more since.
        told = told_metadata(known.instance, key, properties)
        known.report(AssetMaterialization(key, description="Published by the sensor.", metadata=metadata | told))
        if one in waiting:
            waiting.remove(one)
