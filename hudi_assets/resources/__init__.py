"""Dagster resources: Spark, the tables, and the catalog in which readers find them. Projects name them by this path.

- `table.TableResource`: one table: where it is, and how it is made when it is not there yet. Begin here.
- `spark.SparkResource`: one Spark session per process, made when it is first used.
- `catalog.Catalog`: a metastore and a database. `hudi_assets.catalog` does the work.

The components make them from a block, or take those that a project's `Definitions` name. Assets and the sensor ask them
for a `HudiTable`, a session and a place to publish.
"""

from hudi_assets.resources.catalog import Catalog
from hudi_assets.resources.spark import SparkResource
from hudi_assets.resources.table import TableResource

__all__ = ["Catalog", "SparkResource", "TableResource"]
