"""The snapshot query by name: a data source that Spark 4 finds by itself, since this package is `pyspark_…`.

    CREATE TABLE flights_now USING hudi_assets OPTIONS (`table` '/data/flights');
    SELECT count(*) FROM flights_now WITH (`table` '/data/flights');
    spark.read.format("hudi_assets").load("/data/flights")

(Spark 4.3 hands a query none of the options of CREATE TABLE: they give the columns, WITH gives the place.)
Every query reads the table as it then stands: the newest file slices, base files and log files merged. One
Spark task reads one file slice. For the read-optimized query Spark needs none of this: it is plain Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa


class DefaultSource(DataSource):
    """Under this name Spark finds it and registers it as `hudi_assets`.

    Options: `table`, the table's base path (`path`, where the catalog does not take it for its own location);
    those with a dot in their name are settings of the table for this reader.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.path = options.get("table") or options.get("path")
        self.settings = {name: value for name, value in options.items() if "." in name}

    @classmethod
    def name(cls) -> str:
        return "hudi_assets"

    def schema(self) -> StructType:
        return from_arrow_schema(_open(self.path, self.settings).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        return SnapshotReader(self.path, self.settings)


class FileSliceTask(InputPartition):
    """One file slice to read; `value` is the engine's task, picklable."""


class SnapshotReader(DataSourceReader):
    """The snapshot of one table. Planning lists the table once; the tasks read what was listed then."""

    def __init__(self, path: str | None, settings: dict[str, str]) -> None:
        self.path = path
        self.settings = settings

    def partitions(self) -> list[InputPartition]:
        return [FileSliceTask(task) for task in _open(self.path, self.settings).snapshot_tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from hudi_assets.engine.query import read_task

        return iter(read_task(partition.value))


def _open(path: str | None, settings: dict[str, str]):  # type: ignore[no-untyped-def]
    # Imported late: Spark imports this package in every session, also in those that use no table of ours.
    from hudi_assets.engine import HudiTable
    from hudi_assets.engine.errors import InvalidInput

    if not path:
        raise InvalidInput("the table's path is missing", hint="Say SELECT … FROM … WITH (`table` '…').")
    return HudiTable.open(path, settings=settings)
