"""The resources of this repository's own Dagster project. They are the library's; their settings stand here."""

from hudi_assets.resources import Catalog, SparkResource, TableResource

__all__ = ["CATALOG", "SPARK", "Catalog", "SparkResource", "TableResource"]

SPARK = SparkResource()
CATALOG = Catalog(home=True)  # reached without Spark
