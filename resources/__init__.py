"""Dagster resources: Spark, the tables, and the catalog in which readers find them."""

from resources.catalog import Catalog
from resources.spark import SparkResource
from resources.table import TableResource

__all__ = ["Catalog", "SparkResource", "TableResource"]
