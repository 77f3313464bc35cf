"""The catalog in which a table is published, as a Dagster resource. `hudi_assets.catalog` does the work."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

from dagster import ConfigurableResource

from hudi_assets.catalog.places import Place, home_metastore, named_metastore
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.catalog.spark_sql import properties_by_spark, publish_by_spark, remove_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_assets.engine import Freshness, HudiTable


class Catalog(ConfigurableResource):  # type: ignore[type-arg]
    """Where readers find a table by name.

    `uri`: a Hive metastore, `thrift://host:port`, or AWS Glue, `glue://REGION[/CATALOG_ID]`, with `tables: synced`.
    EnvVar is taken, and HUDI_ASSETS_METASTORE counts where it is left out. `home`: the metastore in the home directory,
    where no other is named. Without both it is the catalog of the Spark session, whatever that is.
    `tables`: `views`, our own, or `synced`: the tables that Hudi's own sync made, of which only properties are set.
    """

    uri: str | None = None
    database: str = "default"
    tables: Literal["views", "synced"] = "views"
    home: bool = False

    @property
    def needs_spark(self) -> bool:
        """True where only a Spark session leads to the catalog."""
        return self._metastore is None

    def place(self, *, ro: str, rt: str) -> Place | None:
        """Where a table is published without Spark; None where only a session leads there."""
        metastore = self._metastore
        return None if metastore is None else Place(metastore, self._names(ro, rt))

    def publish(
        self, spark: SparkSession | None, table: HudiTable, freshness: Freshness | None = None, *, ro: str, rt: str
    ) -> dict[str, str]:
        """Replace the views `ro` and `rt`, or the properties of the synced tables, and return the properties.

        The table is read anew, so `freshness` is not needed any more, and not used.
        """
        if freshness is not None:
            warnings.warn("the table is read anew: leave `freshness` out", DeprecationWarning, stacklevel=2)
        place = self.place(ro=ro, rt=rt)
        if place is not None:
            return place.publish(table)
        if spark is None:
            raise ValueError("a catalog without `uri` is reached by a Spark session alone")
        return publish_by_spark(spark, table, self._names(ro, rt))

    def remove(self, spark: SparkSession, *, ro: str, rt: str) -> None:
        """Take a table's own views out of the catalog, and the freshness of its partitions beside either form."""
        remove_by_spark(spark, self._names(ro, rt))

    def properties(self, spark: SparkSession, view: str) -> dict[str, str]:
        """What the catalog says now, as any reader sees it (SHOW TBLPROPERTIES)."""
        return properties_by_spark(spark, self.database, view)

    @property
    def _metastore(self) -> str | None:
        return named_metastore(self.uri) or (home_metastore() if self.home else None)

    def _names(self, ro: str, rt: str) -> Names:
        return Names(self.database, ro, rt, Form(self.tables))
