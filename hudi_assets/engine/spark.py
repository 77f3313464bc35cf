"""The one seam to Spark: sessions, tasks, and DataFrames from tasks."""

from __future__ import annotations

import inspect
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from hudi_assets.engine.errors import EnvironmentProblem, HudiAssetsError, machine_problem

Result = TypeVar("Result")
_RESULT = pa.schema([("id", pa.int64()), ("result", pa.binary())])
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
    "spark.log.level": "ERROR",
    # Results come back through a socket file: any process of the machine could connect to a TCP port first.
    "spark.python.unix.domain.socket.enabled": "true",
}


def local_session(
    app_name: str = "hudi-assets", master: str = "local[*]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session on this machine whose workers use this Python; `EnvironmentProblem` without Java."""
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(app_name).master(master)
    for key, value in {**_DEFAULTS, **(config or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def use_this_python(spark: SparkSession) -> None:
    """Let a local session's workers be this Python: Spark's default is the system's python3, without our packages.

    A cluster's workers, and whatever PYSPARK_PYTHON or spark.pyspark.python say, are left alone.
    """
    context = spark.sparkContext
    stated = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if (context.master or "").startswith("local") and not stated:
        context.pythonExec = sys.executable


def check_java() -> None:
    """Raise `EnvironmentProblem` unless a Java runtime of version 17 or later is found."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
    if java is None or not os.path.exists(java):
        raise EnvironmentProblem("Spark needs Java 17 or later, and none was found.", where=home, hint=hint)
    out = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = out.split('"')[1] if out.count('"') >= 2 else ""
    major = version.split(".")[0]
    if not major.isdigit() or int(major) < 17:
        raise EnvironmentProblem(
            f"Spark needs Java 17 or later; this is {version or out.strip()!r}.", where=java, hint=hint
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """A Spark schema in Arrow, timestamps in UTC."""
    converted: pa.Schema = to_arrow_schema(schema, timezone="UTC") if _has_timezone() else to_arrow_schema(schema)
    return converted


def _has_timezone() -> bool:
    return "timezone" in inspect.signature(to_arrow_schema).parameters


def schema_of(frame: DataFrame) -> pa.Schema:
    """A DataFrame's schema in Arrow."""
    return arrow_schema(frame.schema)


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema in Spark's types, everything nullable, as Spark takes files to be.

    PySpark's `toArrow` fails where a struct is null whose fields may not be.
    """
    return from_arrow_schema(pa.schema([_nullable(field) for field in schema]))


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, _nullable(kind.item_field))
    return pa.field(field.name, kind)


def run_tasks(spark: SparkSession, function: Callable[[Any], Result], tasks: Sequence[Any]) -> list[Result]:
    """Run `function` on each task in a Spark task of its own; results in the order of the tasks.

    An error of the engine's own kinds comes back as itself, not wrapped in Spark's.
    """
    if not tasks:
        return []
    payload = [pickle.dumps(task) for task in tasks]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                outcome = _dumps(capture(function, pickle.loads(payload[number])))
                yield pa.RecordBatch.from_pydict({"id": [number], "result": [outcome]}, _RESULT)

    rows = _one_partition_each(spark, len(tasks)).mapInArrow(run, "id bigint, result binary").collect()
    results = {row["id"]: unwrap(row["result"]) for row in rows}
    return [results[i] for i in range(len(tasks))]


def frame_from_tasks(
    spark: SparkSession,
    function: Callable[[Any], Iterator[pa.RecordBatch]],
    tasks: Sequence[Any],
    schema: pa.Schema,
) -> DataFrame:
    """A DataFrame whose partitions are what `function` yields for each task, lazily."""
    target = spark_schema(schema)
    if not tasks:
        return spark.createDataFrame([], target)
    payload = [pickle.dumps(task) for task in tasks]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from function(pickle.loads(payload[number]))

    return _one_partition_each(spark, len(tasks)).mapInArrow(run, target)


def _one_partition_each(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, count)


def select(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Some columns of a DataFrame, by name."""
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in names))


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """The DataFrame, computed once for all uses inside the block."""
    frame = frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def map_batches(frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Any]) -> list[Any]:
    """What `function` returns for each partition of a DataFrame, as it lies."""
    return _results(frame, lambda batches, token: function(batches))


def map_groups(
    spark: SparkSession,
    frame: DataFrame,
    keyed: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    added: pa.Schema,
    by: Sequence[str],
    function: Callable[[Iterator[pa.RecordBatch], str], Any],
) -> list[Any]:
    """`keyed` puts the columns `added` in front; then rows of equal `by` columns come together in one partition.

    Returns what `function(batches, write token)` returned for each partition. The write token is Hudi's
    `<partition>-<stage>-<attempt>`, unique among attempts of a task.
    """
    target = StructType([*spark_schema(added).fields, *frame.schema.fields])
    parts = spark.sparkContext.defaultParallelism
    grouped = frame.mapInArrow(keyed, target).repartition(parts, *by)
    return _results(grouped, function)


def _results(frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch], str], Any]) -> list[Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outcome = capture(lambda token: function(iter(batches), token), write_token())
        yield pa.RecordBatch.from_pydict({"id": [0], "result": [_dumps(outcome)]}, _RESULT)

    rows = frame.mapInArrow(run, "id bigint, result binary").collect()
    return [unwrap(row["result"]) for row in rows]


def parquet_frame(spark: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Spark's own Parquet reader on some files. Their paths are names, not patterns (a value may hold brackets)."""
    target = spark_schema(schema)
    if not files:
        return spark.createDataFrame([], target)
    # Partition columns are in the files: values guessed from directory names must not shadow them.
    reader = spark.read.schema(target).option("recursiveFileLookup", "true").option("__globPaths__", "false")
    return reader.parquet(*files)


def write_token() -> str:
    """The running task's write token; `0-0-0` outside Spark."""
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


def _dumps(value: object) -> bytes:
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return data


def unwrap(result: bytes) -> Any:
    value = pickle.loads(result)
    if isinstance(value, HudiAssetsError):
        raise value
    return value
