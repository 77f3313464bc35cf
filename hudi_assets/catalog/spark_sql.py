"""Publishing through a Spark session: for catalogs that only the session's own settings lead to.

Files and properties stand in one CREATE OR REPLACE VIEW, so no reader sees new files under an old freshness, or the
other way round.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hudi_assets.catalog import partition_table
from hudi_assets.catalog.publication import PATH, PREFIX, properties_of
from hudi_assets.catalog.publishing import (
    SOURCE,
    Form,
    Names,
    no_synced_table,
    not_our_source,
    refuse_other_synced,
)
from hudi_assets.catalog.queries import escaped, read_optimized_text
from hudi_assets.catalog.same_table import is_same_location
from hudi_assets.catalog.spark_types import sql_type
from hudi_assets.engine import InvalidInput, check_reads_by_itself

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from hudi_assets.engine import HudiTable, Publication


def publish_by_spark(spark: SparkSession, table: HudiTable, names: Names) -> dict[str, str]:
    """Replace the views, and return their properties. Without Spark 4 there is no snapshot view by name.

    Raises `InvalidInput` where a name is taken by something else; `EnvironmentProblem` where this Spark cannot read the
    files that a view names.
    """
    with_snapshot = int(spark.version.split(".")[0]) >= 4
    if names.form is Form.VIEWS:
        check_reads_by_itself(spark, table.path)  # else making the view fails, by a class that is not found
        _refuse_others_view(spark, names, names.ro, table.path)
        if with_snapshot:
            _refuse_others_view(spark, names, names.rt, table.path)
            _refuse_others_source(spark, names, table.path)
    else:
        synced = _synced(spark, names, table.path)
    partitions = _own_partitions(spark, names, table)
    read = table.publication()
    properties = properties_of(read, names.partitions)
    with partition_table.beside_views(partitions, table.storage, read.partitions, properties):
        if names.form is Form.SYNCED:
            for name in synced:
                _set_properties(spark, names, name, properties)
        else:
            query = read_optimized_text(read.schema, read.groups)
            spark.sql(view_statement(_name(names, names.ro), query, properties))
            if with_snapshot:
                spark.sql(_snapshot_statement(spark, names, read, properties))
    return properties


def remove_by_spark(spark: SparkSession, names: Names) -> None:
    """Take a table's views out of the catalog, and what stands beside them. What others made stays."""
    _drop_partitions(spark, names)
    for view in (names.ro, names.rt):
        if _view_of(spark, names, view) is not None:
            spark.sql(f"DROP VIEW IF EXISTS {_name(names, view)}")
    if spark.catalog.tableExists(_name(names, names.rt + SOURCE)) and _read_by(spark, names) is not None:
        spark.sql(f"DROP TABLE IF EXISTS {_name(names, names.rt + SOURCE)}")


def properties_by_spark(spark: SparkSession, database: str, view: str) -> dict[str, str]:
    """What the catalog says now, as any reader sees it (SHOW TBLPROPERTIES)."""
    return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES `{database}`.`{view}`").collect()}


def view_statement(name: str, query: str, properties: Mapping[str, str]) -> str:
    return f"CREATE OR REPLACE VIEW {name} TBLPROPERTIES ({_listed(properties)}) AS {query}"


def _refuse_others_view(spark: SparkSession, names: Names, view: str, path: str) -> None:
    if not spark.catalog.tableExists(_name(names, view)):
        return
    other = _view_of(spark, names, view)
    if other is None or not is_same_location(other, path):
        raise InvalidInput(
            f"This is a view of the table {other}." if other else "Something else has this name.",
            where=f"{names.database}.{view}",
            hint="Choose another name (ro_view, rt_view), or drop it.",
        )


def _refuse_others_source(spark: SparkSession, names: Names, path: str) -> None:
    name = names.rt + SOURCE
    if spark.catalog.tableExists(_name(names, name)):
        place = _read_by(spark, names)
        if place is None or not is_same_location(place, path):
            raise not_our_source(f"{names.database}.{name}")


def _view_of(spark: SparkSession, names: Names, view: str) -> str | None:
    """Which table this is our view of; None where it is none, or is not there."""
    name = _name(names, view)
    if not spark.catalog.tableExists(name) or spark.catalog.getTable(name).tableType != "VIEW":
        return None
    return properties_by_spark(spark, names.database, view).get(PATH)


def _read_by(spark: SparkSession, names: Names) -> str | None:
    """Which table our data source reads in `<rt>_source`; None where it is no table of our data source."""
    found = _metadata(spark, _name(names, names.rt + SOURCE))
    if found.tableType().name() == "VIEW" or found.provider().isEmpty() or found.provider().get() != "hudi_assets":
        return None
    for options in (found.storage().properties(), found.properties()):
        said = options.get("table")
        if not said.isEmpty():
            return str(said.get())
    return None


def _own_partitions(spark: SparkSession, names: Names, table: HudiTable) -> _PartitionTable:
    """The table with the freshness of the partitions, if it is ours to replace."""
    found = None
    if spark.catalog.tableExists(_name(names, names.partitions)):
        found = properties_by_spark(spark, names.database, names.partitions)
        if not partition_table.is_ours(found, table.path):
            if table.config.publishes_partitions:
                raise partition_table.not_ours(f"{names.database}.{names.partitions}")
            found = None
    return _PartitionTable(spark, names, found)


class _PartitionTable:
    """As `partition_table.Standing`."""

    def __init__(self, spark: SparkSession, names: Names, parameters: Mapping[str, str] | None) -> None:
        self._spark, self._names, self._quoted = spark, names, _name(names, names.partitions)
        self.parameters = parameters
        self.place = uuid.uuid4().hex

    def put(self, location: str, properties: Mapping[str, str]) -> None:
        place = f"LOCATION '{escaped(location)}'"
        if self.parameters is None:
            columns = ", ".join(f"{field.name} {sql_type(field.type)}" for field in partition_table.SCHEMA)
            self._spark.sql(
                f"CREATE TABLE {self._quoted} ({columns}) USING parquet {place} TBLPROPERTIES ({_listed(properties)})"
            )
        else:
            self._spark.sql(f"ALTER TABLE {self._quoted} SET {place}")
            _set_properties(self._spark, self._names, self._names.partitions, properties)
        self.parameters = properties

    def drop(self) -> None:
        self._spark.sql(f"DROP TABLE IF EXISTS {self._quoted}")
        self.parameters = None

    def may_name(self, folder: str, error: Exception) -> bool:
        """Location and properties are altered one after the other: where the table is there, it may be there."""
        del folder, error
        with suppress(Exception):
            return bool(self._spark.catalog.tableExists(self._quoted))
        return True


def _drop_partitions(spark: SparkSession, names: Names) -> None:
    """That of the table whose views or synced tables these are; where they do not say, what we made for any table."""
    if not spark.catalog.tableExists(_name(names, names.partitions)):
        return
    found = properties_by_spark(spark, names.database, names.partitions)
    there = [name for name in (names.ro, names.rt) if spark.catalog.tableExists(_name(names, name))]
    told = [properties_by_spark(spark, names.database, name).get(PATH) for name in there]
    path = next((one for one in told if one is not None), found.get(PATH, ""))
    if partition_table.is_ours(found, path):
        _PartitionTable(spark, names, found).drop()


def _snapshot_statement(spark: SparkSession, names: Names, read: Publication, properties: Mapping[str, str]) -> str:
    """Over a table of our data source. Spark 4.3 gives a query none of its options, and does not keep its
    properties: hence the options in the query, and a view for the properties."""
    from pyspark.sql.pandas.types import from_arrow_schema

    source, options = _name(names, names.rt + SOURCE), f"(`table` '{escaped(read.path)}')"
    wanted = from_arrow_schema(read.schema)
    if spark.catalog.tableExists(source) and _types(spark.table(source).schema) != _types(wanted):
        spark.sql(f"DROP TABLE {source}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {source} USING hudi_assets OPTIONS {options}")
    return view_statement(_name(names, names.rt), f"SELECT * FROM {source} WITH {options}", properties)


def _synced(spark: SparkSession, names: Names, path: str) -> list[str]:
    """The names of the synced tables that are there, each the table at `path`."""
    there = [name for name in (names.ro, names.rt) if spark.catalog.tableExists(_name(names, name))]
    if not there:
        raise no_synced_table(names)
    for name in there:
        found = _metadata(spark, _name(names, name))
        is_view = found.tableType().name() == "VIEW"
        location = found.storage().locationUri()
        place = None if location.isEmpty() else _as_hadoop_writes_it(spark, location.get())
        refuse_other_synced(f"{names.database}.{name}", is_view=is_view, place=place, path=path)
    return there


def _set_properties(spark: SparkSession, names: Names, name: str, properties: Mapping[str, str]) -> None:
    """Ours in the place of those that we set before."""
    spark.sql(f"ALTER TABLE {_name(names, name)} SET TBLPROPERTIES ({_listed(properties)})")
    there = properties_by_spark(spark, names.database, name)
    former = sorted(key for key in there if key.startswith(PREFIX) and key not in properties)
    if former:
        listed = ", ".join(f"'{escaped(key)}'" for key in former)
        spark.sql(f"ALTER TABLE {_name(names, name)} UNSET TBLPROPERTIES IF EXISTS ({listed})")


def _metadata(spark: SparkSession, name: str) -> Any:
    """A table as Spark's session catalog knows it: SQL shows neither the provider nor the options."""
    state = spark._jsparkSession.sessionState()
    return state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))


def _as_hadoop_writes_it(spark: SparkSession, location: Any) -> str:
    """A URI escapes characters, a path of Hadoop's does not."""
    jvm: Any = spark._jvm
    return str(jvm.org.apache.hadoop.fs.Path(location).toString())


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{escaped(value)}'" for key, value in properties.items())


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _name(names: Names, view: str) -> str:
    return f"`{names.database}`.`{view}`"
