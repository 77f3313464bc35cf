"""What the engine asks of a Spark session: tasks, and DataFrames from tasks.

PySpark is imported where it is used: without it, all that needs no Spark works.
"""

from __future__ import annotations

import inspect
import json
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from hudi_assets.engine.errors import HudiAssetsError, machine_problem
from hudi_assets.engine.spark import java_classes as spark_java
from hudi_assets.engine.spark.capabilities import capabilities, is_connect
from hudi_assets.engine.spark.interface import Frame, FrameT, Session, as_made_by, data_of, spark_of
from hudi_assets.engine.spark.parquet import plain_files
from hudi_assets.engine.spark.partitions import Places
from hudi_assets.engine.spark.probe import check_workers
from hudi_assets.engine.spark.stores import spark_name as spark_name
from hudi_assets.engine.spark.stores import why_not_by_itself
from hudi_assets.engine.spark.workers import in_workers
from hudi_assets.engine.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Result = TypeVar("Result")
# PythonEvalType.SQL_MAP_ARROW_ITER_UDF of 3.5 and 4: releases keep the class in different places.
_MAP_IN_ARROW = 207
_RESULT = pa.schema([("id", pa.int64()), ("result", pa.binary())])
_OUTCOME = pa.schema([("result", pa.binary())])
_PATTERN: Final = re.compile(r"[][{}*?\\]")  # of Hadoop's `FileSystem.globStatus`
_PARALLELISM: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # session of Spark Connect → cores


class ListedFile(NamedTuple):
    """A file as a listing of the table shows it: `uri` for Spark, `size` in bytes, `modified_ms` epoch ms."""

    uri: str
    size: int
    modified_ms: int


def ready_workers(session: Session[Frame], storage: Storage, *, to_write: bool = False) -> None:
    """Before tasks of a table: let a local session's workers be this Python. Those elsewhere are asked (`probe`).

    On this machine that holds whatever PYSPARK_PYTHON or spark.pyspark.python say: they name the Python of a
    cluster's workers, and another one may lack our packages.
    """
    if _is_local(session):
        spark_of(session).sparkContext.pythonExec = sys.executable
    else:
        check_workers(session, storage, to_write=to_write)


def _is_local(session: Session[Frame]) -> bool:
    """True for a Spark of this process whose workers are on this machine."""
    return not is_connect(session) and (spark_of(session).sparkContext.master or "").startswith("local")


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark schema in Arrow, timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    has_timezone = "timezone" in inspect.signature(to_arrow_schema).parameters
    converted: pa.Schema = to_arrow_schema(schema, timezone="UTC") if has_timezone else to_arrow_schema(schema)
    return converted


def schema_of(frame: Frame) -> pa.Schema:
    """A DataFrame's schema in Arrow."""
    return arrow_schema(data_of(frame).schema)


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema in Spark's types, everything nullable, as Spark takes files to be."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(nullable(schema))


def nullable(schema: pa.Schema) -> pa.Schema:
    """The same schema without required fields, at any depth.

    `Table.cast`, and so PySpark's `toArrow`, refuses a null struct below which something may not be null: it takes
    the nulls that stand there for values.
    """
    return pa.schema([_nullable(field) for field in schema])


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, _nullable(kind.item_field))
    return pa.field(field.name, kind)


def run_tasks(session: Session[Frame], function: Callable[[Any], Result], tasks: Sequence[Any]) -> list[Result]:
    """Run `function` on each task in a Spark task of its own; results in the order of the tasks.

    An error of the engine's own kinds comes back as itself, not wrapped in Spark's.
    """
    if not tasks:
        return []
    payload = [pickle.dumps(task) for task in tasks]

    @in_workers
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                outcome = dumps(capture(function, pickle.loads(payload[number])))
                yield pa.RecordBatch.from_pydict({"id": [number], "result": [outcome]}, _RESULT)

    one_each = _one_partition_each(spark_of(session), len(tasks))
    rows = one_each.mapInArrow(run, "id bigint, result binary").collect()
    results = {row["id"]: unwrap(row["result"]) for row in rows}
    return [results[i] for i in range(len(tasks))]


def frame_from_tasks(
    session: Session[FrameT],
    function: Callable[[Any, Sequence[str]], Iterator[pa.RecordBatch]],
    tasks: Sequence[Any],
    schema: pa.Schema,
    places: Places,
) -> FrameT:
    """A DataFrame of the rows that `function` yields for each task, lazily; several tasks make one of Spark's.

    `function` gets a task and the names of the columns that its batches have to have: those that a plan needs, at
    least one. `places`: of each task, to leave out those whose partitions a filter excludes.
    """
    from pyspark.sql.functions import lit

    spark, target = spark_of(session), spark_schema(schema)
    if not tasks:
        return as_made_by(session, spark.createDataFrame([], target))
    payload = [pickle.dumps(task) for task in tasks]
    every = tuple(schema.names)

    @in_workers
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for numbers, names in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                for number in numbers.split(","):
                    task = pickle.loads(payload[int(number)])
                    for rows in function(task, tuple(names.split(",")) if names else every[:1]):
                        yield rows if names else _without_columns(rows)

    pruned = _pruned(spark, run, target, places)
    if pruned is not None:
        return as_made_by(session, pruned)
    one_each = _one_partition_each(spark, len(tasks))
    numbers = one_each.select(one_each.id.cast("string"), lit(",".join(every)))
    return as_made_by(session, numbers.mapInArrow(run, target))


def _without_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """As many rows of one column of nulls: what a count asks for."""
    return pa.RecordBatch.from_arrays([pa.nulls(len(rows), pa.bool_())], ["none"])


def _pruned(spark: SparkSession, run: Callable[..., Any], schema: StructType, places: Places) -> DataFrame | None:
    """What a plan needs of the rows that `run` reads; None where this Spark lacks what it takes."""
    from pyspark.sql.udf import UserDefinedFunction

    session: Any = spark
    capabilities(spark)  # says once what is missing
    slices = spark_java.new(session, "Slices", places.to_json())
    if slices is None:
        return None
    function: Any = UserDefinedFunction(run, schema, evalType=_MAP_IN_ARROW)
    context = session._jsparkSession.sqlContext()
    relation = spark_java.new(session, "TaskRelation", context, function._judf, slices)
    return None if relation is None else _related(session, relation)


def _related(session: Any, relation: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def parallelism(session: Session[Frame]) -> int:
    """How many tasks can run at a time."""
    if is_connect(session):
        return _connected_parallelism(spark_of(session))
    cores: int = spark_of(session).sparkContext.defaultParallelism
    return cores


def _connected_parallelism(spark: SparkSession) -> int:
    """Asked once for each session, by a query: the client knows nothing of the server's cores."""
    if spark not in _PARALLELISM:
        # Spark makes as many partitions of a range, if nobody says how many.
        parts = spark.range(1 << 16).selectExpr("spark_partition_id() AS part")
        _PARALLELISM[spark] = parts.distinct().count()
    return _PARALLELISM[spark]


def _one_partition_each(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, count)


def select(frame: Frame, names: Sequence[str]) -> Frame:
    """Some columns of a DataFrame, by name."""
    return data_of(frame).select(*("`" + name.replace("`", "``") + "`" for name in names))


def parquet_frame(session: Session[FrameT], files: Sequence[ListedFile], schema: pa.Schema, places: Places) -> FrameT:
    """Spark's own Parquet reader on some files, without those whose partitions a filter excludes.

    `places`: of each file. Paths are names, not patterns (a value may hold brackets).
    """
    return as_made_by(session, _parquet_frame(spark_of(session), files, spark_schema(schema), places))


def reads_by_itself(session: Session[Frame], uri: str) -> bool:
    """True where Spark can read a table's base files without the engine's tasks."""
    return why_not_by_itself(spark_of(session), uri) is None


def _parquet_frame(spark: Any, files: Sequence[ListedFile], target: StructType, places: Places) -> DataFrame:
    if not files:
        none: DataFrame = spark.createDataFrame([], target)
        return none
    index = spark_java.new(spark, "BaseFiles", places.to_json(), json.dumps(files))
    if index is not None:
        return _related(spark, index.relation(spark._jsparkSession, target.json()))
    # Partition columns are in the files: values guessed from directory names must not shadow them.
    reader = spark.read.schema(target).option("recursiveFileLookup", "true")
    frame: DataFrame = reader.parquet(*(_PATTERN.sub(r"\\\g<0>", file.uri) for file in files))
    return frame


# ------------------------------------------------------------------------------------------ rows on their way to tasks


def session_of(frame: Frame) -> Session[Frame]:
    """The session that a DataFrame is of."""
    return data_of(frame).sparkSession


def scratch_folder(session: Session[Frame]) -> str | None:
    """A folder that all workers reach, and that Spark deletes when it ends; None where they may be elsewhere."""
    if not _is_local(session):
        return None
    folder: str | None = getattr(spark_of(session).sparkContext, "_temp_dir", None)
    return folder


def map_rows(frame: Frame, function: Callable[[Iterator[pa.RecordBatch]], Result]) -> list[Result]:
    """`function` on the rows of each partition of a DataFrame; its results in the order of the rows.

    Plain Parquet files are read where `function` runs, in more parts than Spark would make of them.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _outcome(lambda _: function(iter(batches)))

    return [unwrap(row["result"]) for row in _of_rows(data_of(frame), run, _OUTCOME).collect()]


def _of_rows(frame: DataFrame, run: Callable[..., Iterator[pa.RecordBatch]], schema: pa.Schema) -> DataFrame:
    """What `run` makes of the rows of each partition."""
    session = frame.sparkSession
    # The plan of a DataFrame of Spark Connect is the server's.
    plain = None if is_connect(session) else plain_files(frame, schema_of(frame), parallelism(session))
    if plain is None:
        return frame.mapInArrow(in_workers(run), spark_schema(schema))

    @in_workers
    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from run(plain.read(number))

    return _one_partition_each(session, len(plain.tasks)).mapInArrow(read, spark_schema(schema))


def _outcome(function: Callable[[Any], Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"result": [dumps(capture(function, None))]}, _OUTCOME)


@dataclass(frozen=True)
class Carried:
    """Pieces that a pass over a DataFrame's rows left, kept by Spark. Their schema: `writing.pieces.PIECES`."""

    _pieces: DataFrame

    def notes(self) -> list[Any]:
        """What was said of each partition, in no order."""
        said = self._pieces.where("note is not null").select("note").collect()
        return [unwrap(row["note"]) for row in said]

    def to_tasks(
        self, homes: Mapping[int, int], tasks: int, function: Callable[[Iterator[pa.RecordBatch]], Result]
    ) -> list[Result]:
        """`function` on the pieces (stream, piece, data) of each task; `homes`: slot → task."""
        table = ", ".join(str(homes.get(slot, 0)) for slot in range(max(homes) + 1))
        chosen = self._pieces.where("data is not null").selectExpr(
            "slot", "stream", "piece", "data", f"element_at(array({table}), slot + 1) as home"
        )
        # By the number itself where Spark has that (4.1): its hash may send two homes to one task.
        by_id = getattr(chosen, "repartitionById", None)
        moved = by_id(tasks, "home") if by_id else chosen.repartition(tasks, "home")

        @in_workers
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _outcome(lambda _: function(iter(batches)))

        rows = moved.select("stream", "piece", "data").mapInArrow(run, spark_schema(_OUTCOME)).collect()
        return [unwrap(row["result"]) for row in rows]


@contextmanager
def carried(
    frame: Frame, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Iterator[Carried]:
    """The pieces that `run` makes of each partition's rows: made once, whatever is done with them inside the block."""

    def marked(batches: Iterable[pa.RecordBatch], _mark: bytes = uuid.uuid4().bytes) -> Iterator[pa.RecordBatch]:
        """Spark knows what it keeps by the plan, and this function is part of that. Without the mark another run's
        pieces might be taken, which shares the Spark and has read the same folder when other files were in it."""
        return run(iter(batches))

    pieces = _of_rows(data_of(frame), marked, schema).persist()
    try:
        yield Carried(pieces)
    finally:
        pieces.unpersist()


# ------------------------------------------------------------------------------------------ in a worker


def write_token() -> str:
    """The running task's write token; `0-0-0` outside Spark."""
    if "pyspark" not in sys.modules:
        return "0-0-0"
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "0-0-0"
    return f"{context.partitionId()}-{context.stageId()}-{context.taskAttemptId()}"


def capture(function: Callable[[Any], Result], task: Any) -> Result | HudiAssetsError:
    """The function's result, or the engine's own error as a value: it crosses to the driver unwrapped."""
    try:
        return function(task)
    except HudiAssetsError as error:
        return error
    except OSError as error:
        problem = machine_problem(error, str(error.filename or "a task"))
        if problem is None:
            raise
        return problem


def dumps(value: object) -> bytes:
    from pyspark import cloudpickle

    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return data


def unwrap(result: bytes) -> Any:
    value = pickle.loads(result)
    if isinstance(value, HudiAssetsError):
        raise value
    return value
