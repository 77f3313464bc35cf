"""The queries by name: a data source that Spark 4 finds by itself, since this package is `pyspark_…`.

    CREATE TABLE flights_now USING hudi_assets OPTIONS (`table` '/data/flights');
    SELECT count(*) FROM flights_now WITH (`table` '/data/flights');
    spark.read.format("hudi_assets").load("/data/flights")

(Spark 4.3 hands a query none of the options of CREATE TABLE: they give the columns, WITH gives the place.)
Every query reads the table as it then stands: the newest file slices, base files and log files merged. One
Spark task reads one file slice. For the read-optimized query Spark needs none of this: it is plain Parquet.
The other kinds have Hudi's option names: `as.of.instant`; `hoodie.datasource.query.type` (snapshot,
read_optimized, incremental), `hoodie.datasource.read.begin.instanttime` and `….end.instanttime`. Spark
does not tell a Python data source which columns a query needs: the option `columns` (`a,b`) says it, or a schema of
some columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_assets.engine import HudiTable, ReadTask

AS_OF = "as.of.instant"
QUERY_TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
_QUERY = (AS_OF, QUERY_TYPE, BEGIN, END)
COLUMNS = "columns"


class DefaultSource(DataSource):
    """Under this name Spark finds it and registers it as `hudi_assets`.

    Options: `table`, the table's base path (`path`, where the catalog does not take it for its own location);
    those of the query; `columns`; the others with a dot in their name are settings of the table for this reader.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.path = options.get("table") or options.get("path")
        self.columns = options.get(COLUMNS)
        self.query = {name: value for name, value in options.items() if name in _QUERY}
        self.settings = {name: value for name, value in options.items() if "." in name and name not in _QUERY}

    @classmethod
    def name(cls) -> str:
        return "hudi_assets"

    def schema(self) -> StructType:
        names = None if self.columns is None else [name.strip() for name in self.columns.split(",")]
        return from_arrow_schema(_open(self.path, self.settings).schema(columns=names))

    def reader(self, schema: StructType) -> DataSourceReader:
        return QueryReader(self.path, self.settings, self.query, schema.names)


class FileSliceTask(InputPartition):
    """One file slice to read; `value` is the engine's task, picklable."""


class QueryReader(DataSourceReader):
    """One query of one table. Planning lists the table once; the tasks read what was listed then."""

    def __init__(self, path: str | None, settings: dict[str, str], query: dict[str, str], columns: list[str]) -> None:
        self.path = path
        self.settings = settings
        self.query = query
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        tasks = query_tasks(_open(self.path, self.settings), self.query, self.columns)
        return [FileSliceTask(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Where `partitions` gives none, Spark asks for one of its own all the same.
        return iter(() if partition.value is None else partition.value.read())


def query_tasks(table: HudiTable, query: Mapping[str, str], columns: Sequence[str] | None = None) -> list[ReadTask]:
    """The tasks of the query that Hudi's options ask for; `InvalidInput` where they do not fit together."""
    from hudi_assets.engine import InvalidInput

    kind, as_of = query.get(QUERY_TYPE, "snapshot").lower(), query.get(AS_OF)
    if kind != "incremental" and (BEGIN in query or END in query):
        raise InvalidInput(f"A range of instants needs {QUERY_TYPE}=incremental.", where=table.path)
    if as_of is not None and kind != "snapshot":
        raise InvalidInput(f"{AS_OF} goes with a snapshot query, not with {kind}.", where=table.path)
    if kind == "incremental":
        if BEGIN not in query:
            raise InvalidInput(f"An incremental query needs {BEGIN}.", where=table.path, hint="000 is the earliest.")
        return table.incremental_tasks(query[BEGIN], query.get(END), columns=columns)
    if kind == "read_optimized":
        return table.read_optimized_tasks(columns=columns)
    if kind != "snapshot":
        choices = "snapshot, read_optimized or incremental"
        raise InvalidInput(f"{QUERY_TYPE} is {kind!r}.", where=table.path, hint=f"It may be {choices}.")
    if as_of is None:
        return table.snapshot_tasks(columns=columns)
    return table.time_travel_tasks(as_of, columns=columns)


def _open(path: str | None, settings: dict[str, str]):  # type: ignore[no-untyped-def]
    # Imported late: Spark imports this package in every session, also in those that use no table of ours.
    from hudi_assets.engine import HudiTable, InvalidInput

    if not path:
        raise InvalidInput("the table's path is missing", hint="Say SELECT … FROM … WITH (`table` '…').")
    return HudiTable.open(path, settings=settings)
