"""Publishes a table in Spark's catalog: its read-optimized and its snapshot view, with the freshness.

The read-optimized view is `SELECT … FROM parquet.` over the current base files: queries by name read them
with Spark's own Parquet reader. Files and properties stand in one CREATE OR REPLACE VIEW, so no reader sees
new files under an old freshness, or the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from dagster import ConfigurableResource
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_assets.engine import iso

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from hudi_assets.engine import Freshness, HudiTable

_SOURCE = "_source"
_GLOB = re.compile(r"([\\{}\[\]*?])")
_SPECIAL = re.compile(r"[\\{}\[\]*?,:]")


class Catalog(ConfigurableResource):  # type: ignore[type-arg]
    """The views of a table in the database `database` of Spark's catalog."""

    database: str = "default"

    def publish(
        self, spark: SparkSession, table: HudiTable, freshness: Freshness, *, ro: str, rt: str
    ) -> dict[str, str]:
        """Replace the views `ro` and `rt`, and return their properties.

        `freshness` must have been computed before the call: base files are listed here, after it, so the
        view holds at least what the freshness promises. Without Spark 4 there is no `rt` by name.
        """
        properties = freshness_properties(freshness, table)
        schema = table.schema()
        selects = [read_optimized_query(schema, files, columns) for files, columns in table.read_optimized_groups()]
        query = " UNION ALL ".join(selects) or read_optimized_query(schema, [])
        spark.sql(view_statement(self._name(ro), query, properties))
        if int(spark.version.split(".")[0]) >= 4:
            spark.sql(self._rt_statement(spark, rt, table, properties))
        return properties

    def remove(self, spark: SparkSession, *, ro: str, rt: str) -> None:
        """Take a table's views out of the catalog."""
        for view in (ro, rt):
            spark.sql(f"DROP VIEW IF EXISTS {self._name(view)}")
        spark.sql(f"DROP TABLE IF EXISTS {self._name(rt + _SOURCE)}")

    def properties(self, spark: SparkSession, view: str) -> dict[str, str]:
        """What the catalog says now, as any reader sees it (SHOW TBLPROPERTIES)."""
        return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {self._name(view)}").collect()}

    def _rt_statement(self, spark: SparkSession, view: str, table: HudiTable, properties: Mapping[str, str]) -> str:
        """Over a table of our data source. Spark 4.3 gives a query none of its options, and does not keep its
        properties: hence the options in the query, and a view for the properties."""
        source, options = self._name(view + _SOURCE), f"(`table` '{_text(table.path)}')"
        wanted = from_arrow_schema(table.schema())
        if spark.catalog.tableExists(source) and _types(spark.table(source).schema) != _types(wanted):
            spark.sql(f"DROP TABLE {source}")
        spark.sql(f"CREATE TABLE IF NOT EXISTS {source} USING hudi_assets OPTIONS {options}")
        return view_statement(self._name(view), f"SELECT * FROM {source} WITH {options}", properties)

    def _name(self, view: str) -> str:
        return f"`{self.database}`.`{view}`"


def view_statement(name: str, query: str, properties: Mapping[str, str]) -> str:
    listed = ", ".join(f"'{key}' = '{_text(value)}'" for key, value in properties.items())
    return f"CREATE OR REPLACE VIEW {name} TBLPROPERTIES ({listed}) AS {query}"


def read_optimized_query(schema: pa.Schema, files: Sequence[str], columns: Mapping[str, str] | None = None) -> str:
    """A query of exactly these Parquet files; without any, an empty relation with the schema's columns.

    `columns`: SQL for the columns that the files have in another type than the schema, or not.

    Files are named in one path with alternatives, `…/{a,b}`. Hadoop gets some characters wrong inside the
    braces, even escaped: such a file stands in a SELECT of its own. (One of `{}[]*?` in a table that also has a
    colon in a path it cannot read at all; the statement then fails.)
    """
    fields = from_arrow_schema(schema).fields
    if not files:
        empty = (f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in fields)
        return f"SELECT {', '.join(empty)} WHERE false"
    paths = sorted(file.removeprefix("file://") for file in files)
    plain = [path for path in paths if not _SPECIAL.search(path)]
    patterns = ([_alternatives(plain)] if plain else []) + [
        _GLOB.sub(r"\\\1", path) for path in paths if _SPECIAL.search(path)
    ]
    select = "SELECT " + ", ".join(_selected(field.name, columns or {}) for field in fields)
    quoted = (pattern.replace("`", "``") for pattern in patterns)
    return " UNION ALL ".join(f"{select} FROM parquet.`{pattern}`" for pattern in quoted)


def _selected(name: str, columns: Mapping[str, str]) -> str:
    made = columns.get(name, f"`{name}`")
    return made if made == f"`{name}`" else f"{made} AS `{name}`"


def _alternatives(paths: Sequence[str]) -> str:
    start = _common_directory(paths)
    return start + "{" + ",".join(path[len(start) :] for path in paths) + "}" if len(paths) > 1 else paths[0]


def freshness_properties(freshness: Freshness, table: HudiTable) -> dict[str, str]:
    """The published promise. Times as ISO-8601 UTC and as epoch ms; an unknown one is the word `null`."""
    properties = {"hudi_assets.path": table.path, "hudi_assets.instant": freshness.instant or "null"}
    times = {
        "freshness": freshness.freshness,
        "threshold": freshness.threshold,
        "computed_at": freshness.computed_at,
        "instant_time": None if freshness.instant is None else table.instant_ms(freshness.instant),
    }
    for name, value in times.items():
        properties[f"hudi_assets.{name}"] = iso(value) or "null"
        properties[f"hudi_assets.{name}_ms"] = "null" if value is None else str(value)
    if freshness.reason:
        properties["hudi_assets.reason"] = freshness.reason
    return properties


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _common_directory(paths: Sequence[str]) -> str:
    first, last = min(paths), max(paths)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rindex("/", 0, same) + 1]


def _text(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
