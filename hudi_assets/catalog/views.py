"""A view in a Hive metastore as Spark keeps it, so that `SELECT`, `DESCRIBE` and `SHOW TBLPROPERTIES` read it.

Spark goes by its own schema and `view.*` in the parameters, and by the expanded text. Hive's columns are for others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_assets.catalog import hive
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.publication import PREFIX
from hudi_assets.catalog.spark_types import NO_HIVE_COLUMNS, hive_columns, schema_json
from hudi_assets.catalog.thrift_values import (
    Struct,
    Value,
    flag,
    nothing_of,
    structure,
    structures,
    text,
    texts,
    whole,
)

_STRING, _STRUCT, _LIST = 11, 12, 15
_SCHEMA = "spark.sql.sources.schema"
_PIECE = 4000  # Spark cuts a longer schema into pieces of this length
# With Spark 4.0 the file took this form; 3.5 reads it too.
_MADE_BY = "4.0.0"
_OURS = (PREFIX, "view.", _SCHEMA, "spark.sql.create.version", "transient_lastDdlTime")
_READ_WITH = {
    "view.sqlConfig.spark.sql.ansi.enabled": "true",
    "view.sqlConfig.spark.sql.session.timeZone": "UTC",
    # The view names its files: list them in the driver instead of in a job of their own.
    "view.sqlConfig.spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}


@dataclass(frozen=True, slots=True)
class Formats:
    """Hive's classes for the files of a table: what reads them, what writes them, and what makes rows of them."""

    reads: str
    writes: str
    rows: str


# As Spark states it where Hive does not read the rows.
SEQUENCE_FILES: Final = Formats(
    "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
PARQUET: Final = Formats(
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)


def new_view(
    database: str, name: str, owner: str, schema: pa.Schema, query: str, properties: Mapping[str, str]
) -> Entry:
    fields = {
        **new_entry_fields(database, name, owner),
        hive.STORAGE: storage_of(hive_columns(schema), None, {}),
        hive.KIND: text(hive.VIRTUAL_VIEW),
    }
    return with_query(Entry(Struct(fields)), database, schema, query, properties)


def with_query(entry: Entry, database: str, schema: pa.Schema, query: str, properties: Mapping[str, str]) -> Entry:
    """The view with another text, columns and properties; what somebody else set of it stays."""
    kept = {key: value for key, value in entry.parameters.items() if not key.startswith(_OURS)}
    parameters = kept | _view_parameters(database, schema) | dict(properties)
    storage = dict(entry.table.struct(hive.STORAGE).fields)
    storage[1] = _columns(hive_columns(schema))
    return entry.replaced(
        {
            hive.STORAGE: structure(storage),
            hive.PARAMETERS: texts(parameters),
            hive.ORIGINAL_TEXT: text(query),
            hive.EXPANDED_TEXT: text(query),
        }
    )


def new_source(database: str, name: str, owner: str, schema: pa.Schema, path: str) -> Entry:
    """A table of our data source, as `CREATE TABLE … USING hudi_assets OPTIONS (table …)` makes it; external."""
    parameters = {
        "EXTERNAL": "TRUE",
        "option.table": path,
        "table": path,
        "provider": "hudi_assets",
        "spark.sql.create.version": _MADE_BY,
        "spark.sql.sources.provider": "hudi_assets",
        **_schema_parameters(schema),
    }
    fields = {
        **new_entry_fields(database, name, owner),
        hive.STORAGE: storage_of(list(NO_HIVE_COLUMNS), path, {"path": path, "table": path}),
        hive.PARAMETERS: texts(parameters),
        hive.KIND: text("EXTERNAL_TABLE"),
    }
    return Entry(Struct(fields))


def new_entry_fields(database: str, name: str, owner: str) -> dict[int, Value]:
    """What every new entry has: its names, when it was made, no partitions, and that nobody rewrites queries by it."""
    return {
        hive.NAME: text(name),
        hive.DATABASE: text(database),
        hive.OWNER: text(owner),
        4: whole(int(time.time())),
        5: whole(0),
        6: whole(0),
        8: nothing_of(_STRUCT),
        15: flag(False),
    }


def external_table(
    database: str,
    name: str,
    owner: str,
    columns: list[tuple[str, str, str | None]],
    location: str,
    formats: Formats,
    parameters: Mapping[str, str],
) -> Entry:
    """A new table over a folder. `location`: its URI."""
    fields = {
        **new_entry_fields(database, name, owner),
        hive.STORAGE: storage_of(columns, location, {}, formats),
        hive.PARAMETERS: texts(dict(parameters)),
        hive.KIND: text("EXTERNAL_TABLE"),
    }
    return Entry(Struct(fields))


def with_schema(entry: Entry, schema: pa.Schema) -> Entry:
    """The table of our data source with other columns. Hive has none of them."""
    kept = {key: value for key, value in entry.parameters.items() if not key.startswith(_SCHEMA)}
    return entry.replaced({hive.PARAMETERS: texts(kept | _schema_parameters(schema))})


def read_by(entry: Entry) -> str | None:
    """Which table our data source reads there; None where the entry is none of our data source."""
    said = entry.parameters
    if entry.kind == hive.VIRTUAL_VIEW or said.get("spark.sql.sources.provider") != "hudi_assets":
        return None
    return said.get("table") or said.get("option.table")


def schema_of(entry: Entry) -> str:
    """Spark's schema of it, in JSON."""
    parameters = entry.parameters
    pieces = int(parameters.get(f"{_SCHEMA}.numParts", 0))
    return parameters.get(_SCHEMA) or "".join(parameters[f"{_SCHEMA}.part.{n}"] for n in range(pieces))


def _view_parameters(database: str, schema: pa.Schema) -> dict[str, str]:
    names = {f"view.query.out.col.{n}": name for n, name in enumerate(schema.names)}
    return {
        "spark.sql.create.version": _MADE_BY,
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": database,
        "view.query.out.numCols": str(len(names)),
        **names,
        "view.referredTempFunctionsNames": "[]",
        "view.referredTempVariablesNames": "[]",
        "view.referredTempViewNames": "[]",
        "view.schemaMode": "COMPENSATION",
        **_READ_WITH,
        **_schema_parameters(schema),
    }


def _schema_parameters(schema: pa.Schema) -> dict[str, str]:
    whole_text = schema_json(schema)
    if len(whole_text) <= _PIECE:
        return {_SCHEMA: whole_text}
    pieces = [whole_text[start : start + _PIECE] for start in range(0, len(whole_text), _PIECE)]
    return {f"{_SCHEMA}.numParts": str(len(pieces))} | {f"{_SCHEMA}.part.{n}": one for n, one in enumerate(pieces)}


def storage_of(
    columns: list[tuple[str, str, str | None]],
    location: str | None,
    options: Mapping[str, str],
    formats: Formats = SEQUENCE_FILES,
) -> Value:
    """A descriptor of storage. `options`: for what reads the rows."""
    fields = {
        1: _columns(columns),
        3: text(formats.reads),
        4: text(formats.writes),
        5: flag(False),
        6: whole(-1),
        7: structure({2: text(formats.rows), 3: texts({"serialization.format": "1", **options})}),
        8: nothing_of(_STRING),
        9: nothing_of(_STRUCT),
        10: texts({}),
        11: structure({1: nothing_of(_STRING), 2: nothing_of(_LIST), 3: texts({})}),
        12: flag(False),
    }
    return structure(fields if location is None else {**fields, 2: text(location)})


def _columns(columns: list[tuple[str, str, str | None]]) -> Value:
    return structures(
        [
            {1: text(name), 2: text(kind)} | ({} if comment is None else {3: text(comment)})
            for name, kind, comment in columns
        ]
    )
