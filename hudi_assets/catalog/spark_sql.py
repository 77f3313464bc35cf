"""Publishing through a Spark session: for catalogs that only the session's own settings lead to.

Files and properties stand in one CREATE OR REPLACE VIEW, so no reader sees new files under an old freshness, or the
other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudi_assets.catalog.publication import properties_of
from hudi_assets.catalog.publishing import SOURCE, Form, Names
from hudi_assets.catalog.queries import read_optimized_text
from hudi_assets.engine import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from hudi_assets.engine import HudiTable, Publication


def publish_by_spark(spark: SparkSession, table: HudiTable, names: Names) -> dict[str, str]:
    """Replace the views, and return their properties. Without Spark 4 there is no snapshot view by name."""
    read = table.publication()
    properties = properties_of(read)
    if names.form is Form.SYNCED:
        _set_properties(spark, names, properties)
        return properties
    query = read_optimized_text(read.schema, read.groups)
    spark.sql(view_statement(_name(names, names.ro), query, properties))
    if int(spark.version.split(".")[0]) >= 4:
        spark.sql(_snapshot_statement(spark, names, read, properties))
    return properties


def remove_by_spark(spark: SparkSession, names: Names) -> None:
    """Take a table's views out of the catalog."""
    for view in (names.ro, names.rt):
        spark.sql(f"DROP VIEW IF EXISTS {_name(names, view)}")
    spark.sql(f"DROP TABLE IF EXISTS {_name(names, names.rt + SOURCE)}")


def properties_by_spark(spark: SparkSession, database: str, view: str) -> dict[str, str]:
    """What the catalog says now, as any reader sees it (SHOW TBLPROPERTIES)."""
    return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES `{database}`.`{view}`").collect()}


def view_statement(name: str, query: str, properties: Mapping[str, str]) -> str:
    return f"CREATE OR REPLACE VIEW {name} TBLPROPERTIES ({_listed(properties)}) AS {query}"


def _snapshot_statement(spark: SparkSession, names: Names, read: Publication, properties: Mapping[str, str]) -> str:
    """Over a table of our data source. Spark 4.3 gives a query none of its options, and does not keep its
    properties: hence the options in the query, and a view for the properties."""
    from pyspark.sql.pandas.types import from_arrow_schema

    source, options = _name(names, names.rt + SOURCE), f"(`table` '{_text(read.path)}')"
    wanted = from_arrow_schema(read.schema)
    if spark.catalog.tableExists(source) and _types(spark.table(source).schema) != _types(wanted):
        spark.sql(f"DROP TABLE {source}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {source} USING hudi_assets OPTIONS {options}")
    return view_statement(_name(names, names.rt), f"SELECT * FROM {source} WITH {options}", properties)


def _set_properties(spark: SparkSession, names: Names, properties: Mapping[str, str]) -> None:
    found = [name for name in (names.ro, names.rt) if spark.catalog.tableExists(_name(names, name))]
    if not found:
        raise InvalidInput("There is no such synced table.", where=f"{names.database}.{names.ro}")
    for name in found:
        spark.sql(f"ALTER TABLE {_name(names, name)} SET TBLPROPERTIES ({_listed(properties)})")


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{_text(value)}'" for key, value in properties.items())


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _name(names: Names, view: str) -> str:
    return f"`{names.database}`.`{view}`"


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
