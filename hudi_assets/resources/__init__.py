"""Dagster resources: Spark, the tables, and the catalog in which readers find them."""

from hudi_assets.resources.catalog import Catalog
from hudi_assets.resources.spark import SparkResource
from hudi_assets.resources.table import TableResource

__all__ = ["Catalog", "SparkResource", "TableResource"]
