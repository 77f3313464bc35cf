"""One JVM with one release of Apache Hudi, driven by JSON lines.

Run by the interop environment's Python (PySpark 3.5, see `scripts/interop-setup`), never by the project's
own: Hudi's bundles exist for Spark 3.5 only. One request per line on stdin, one answer per line on stdout;
everything that Spark or the JVM print goes to stderr. `hudi_client.py` is the other end.

Rows cross as Parquet files, so that no type is lost on the way: a request names the file to read or write.

    python hudi_server.py BUNDLE.jar[,MORE.jar…] [SPARK'S SETTINGS AS JSON]
    {"do": "read", "path": "/t", "query": "snapshot", "out": "/tmp/x.parquet"}
    {"ok": true, "schema": "struct<…>"}
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

Request = dict[str, Any]
Answer = dict[str, Any]


def start_spark(jars: str, more: dict[str, str] | None = None) -> Any:
    """A local Spark with Hudi's SQL extensions, so that `CALL` procedures work. Needs Java 17."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": jars,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.session.timeZone": "UTC",
        # For the answers' Parquet: Spark's default INT96 would come back without a time zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # For dates before 1582 in them; reading stays as it is by default.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": os.environ.get("INTEROP_DRIVER_MEMORY", "2g"),
        "spark.sql.warehouse.dir": os.path.join(os.getcwd(), "warehouse"),
        # To estimate sizes Hudi starts a second Java, which attaches to this one and fails: seconds each time.
        "spark.driver.extraJavaOptions": "-Djol.skipHotspotSAAttach=true",
    }
    if options := os.environ.get("INTEROP_JAVA_OPTIONS"):
        settings["spark.driver.extraJavaOptions"] += f" {options}"
    builder = SparkSession.builder.master("local[2]").appName("hudi-assets interop")
    for key, value in {**settings, **(more or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("INTEROP_LOG_LEVEL", "OFF"))
    return spark


class Server:
    """The requests, one method each. Every method gets the whole request and returns the answer's fields."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        # A table created outside is unknown to these releases' writers as version 6 unless said so.
        self._writer_defaults = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}

    def write(self, request: Request) -> Answer:
        """Write the rows of Parquet file `rows` with `options`; `mode` is Spark's (append by default)."""
        options = {**self._writer_defaults, **request["options"]}
        frame = self._spark.read.parquet(request["rows"])
        frame.write.format("hudi").options(**options).mode(request.get("mode", "append")).save(request["path"])
        return {}

    def read(self, request: Request) -> Answer:
        """One of Hudi's four queries, written to Parquet file `out`, all columns."""
        frame = self._spark.read.format("hudi").options(**query_options(request)).load(request["path"])
        if condition := request.get("where"):
            frame = frame.where(condition)
        if request.get("columns"):
            frame = frame.select(*request["columns"])
        frame.coalesce(1).write.mode("overwrite").parquet(request["out"])
        return {"schema": frame.schema.simpleString()}

    def answers(self, request: Request) -> Answer:
        """Many questions about one table in one job: their rows in Parquet file `out`, each with its question's number.

        A question is what `read` takes. The number is in the column `question`; a question without rows has none.
        """
        from functools import reduce

        from pyspark.sql import functions

        frames = [
            self._spark.read.format("hudi")
            .options(**query_options({"options": request.get("options", {}), **question}))
            .load(request["path"])
            .withColumn("question", functions.lit(number))
            for number, question in enumerate(request["questions"])
        ]
        together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
        together.coalesce(2).write.mode("overwrite").parquet(request["out"])
        return {}

    def aggregate(self, request: Request) -> Answer:
        """The one row that `expressions` make of one of Hudi's four queries."""
        frame = self._spark.read.format("hudi").options(**query_options(request)).load(request["path"])
        return {"row": list(frame.selectExpr(*request["expressions"]).collect()[0])}

    def compaction(self, request: Request) -> Answer:
        """`op` schedule, execute (what is pending), or run (plan and execute; without a plan, what is pending)."""
        options = {
            **self._writer_defaults,
            "hoodie.metadata.enable": "false",
            "hoodie.compact.inline.max.delta.commits": "1",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            **request.get("options", {}),
        }
        text = ",".join(f"{key}={value}" for key, value in options.items())
        rows = self._spark.sql(
            f"call run_compaction(op=>'{request['op']}', path=>'{request['path']}', options=>'{text}')"
        ).collect()
        return {"compactions": [row.asDict() for row in rows]}

    def clean(self, request: Request) -> Answer:
        """Hudi's cleaner, keeping `retained` versions of each file group."""
        # 0.15.0's procedure takes a table of the (in-memory) catalog only, no path.
        table = "t" + hashlib.md5(request["path"].encode()).hexdigest()
        self._spark.sql(f"create table if not exists {table} using hudi location '{request['path']}'")
        procedure = (
            f"call run_clean(table=>'{table}', clean_policy=>'KEEP_LATEST_FILE_VERSIONS', "
            f"file_versions_retained=>{int(request['retained'])}, skip_locking=>true, "
            "options=>'hoodie.metadata.enable=false')"
        )
        return {"cleaned": [row.asDict() for row in self._spark.sql(procedure).collect()]}

    def sync(self, request: Request) -> Answer:
        """Hudi's Hive sync of the table at `path`, with `options` of hoodie.datasource.hive_sync."""
        jvm = self._spark.sparkContext._jvm
        properties = jvm.java.util.Properties()
        for key, value in request["options"].items():
            properties.setProperty(f"hoodie.datasource.hive_sync.{key}", value)
        properties.setProperty("hoodie.datasource.meta.sync.base.path", request["path"])
        tool = jvm.org.apache.hudi.hive.HiveSyncTool(properties, self._spark.sparkContext._jsc.hadoopConfiguration())
        tool.syncHoodieTable()
        tool.close()
        return {}

    def timeline(self, request: Request) -> Answer:
        """The active timeline as Hudi's own classes see it: [instant, action, state] in order."""
        instants = self._meta_client(request["path"]).getActiveTimeline().getInstants()
        return {"instants": [[_time(i), i.getAction(), str(i.getState())] for i in instants]}

    def stream(self, request: Request) -> Answer:
        """Spark's streaming sink takes the Parquet files of folder `source` that are new, one in each batch."""
        schema = self._spark.read.parquet(request["source"]).schema
        files = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(request["source"])
        options = {**self._writer_defaults, **request["options"], "checkpointLocation": request["checkpoint"]}
        sink = files.writeStream.format("hudi").options(**options).outputMode("append").trigger(availableNow=True)
        sink.start(request["path"]).awaitTermination()
        return {}

    def checkpoints(self, request: Request) -> Answer:
        """From where Hudi Streamer and the streaming sink `identifier` would go on; None: from their beginning.

        The sink's is Hudi's own answer. The streamer's classes are not in the bundle: so this goes back over the
        commits as they do (StreamerCheckpointUtils), with Hudi's timeline and metadata.
        """
        hudi = self._spark.sparkContext._jvm.org.apache.hudi.common
        commits = self._meta_client(request["path"]).getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        instants = list(commits.getInstants())
        streamers = None
        for instant in reversed([i for i in instants if i.getAction() == "deltacommit"] or instants):
            metadata = hudi.table.timeline.TimelineUtils.getCommitMetadata(instant, commits)
            keys = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
            streamers = streamers or next(filter(None, map(metadata.getMetadata, keys)), None)
        key, name = "_hudi_streaming_sink_checkpoint", request["identifier"]
        sinks = hudi.util.CommitUtils.getValidCheckpointForCurrentWriter(commits, key, name)
        return {"streamer": streamers, "sink": sinks.get() if sinks.isPresent() else None}

    def properties(self, request: Request) -> Answer:
        """hoodie.properties through HoodieTableConfig, defaults included."""
        properties = self._meta_client(request["path"]).getTableConfig().getProps()
        return {"properties": {str(key): str(properties[key]) for key in properties}}

    def sql(self, request: Request) -> Answer:
        """Any statement, for experiments: rows as dictionaries of text."""
        rows = self._spark.sql(request["statement"]).collect()
        return {"rows": [{k: None if v is None else str(v) for k, v in row.asDict().items()} for row in rows]}

    def hfile_keys(self, request: Request) -> Answer:
        """Every key (hex) that a reader of HFiles finds, hbase (0.15.0 only) or native, and the bytes of all values."""
        cells = self._hbase_cells if request["reader"] == "hbase" else self._native_cells
        found = list(cells(request["path"]))
        return {"keys": [key.hex() for key, _ in found], "value_bytes": sum(size for _, size in found)}

    def _hbase_cells(self, path: str) -> Iterator[tuple[bytes, int]]:
        jvm, configuration = self._spark.sparkContext._jvm, self._spark.sparkContext._jsc.hadoopConfiguration()
        hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
        file = jvm.org.apache.hadoop.fs.Path(f"file://{path}")
        reader = hbase.io.hfile.HFile.createReader(file.getFileSystem(configuration), file, configuration)
        scanner = reader.getScanner(False, False)
        there = scanner.seekTo()
        while there:
            cell = scanner.getCell()
            yield bytes(hbase.CellUtil.cloneRow(cell)), cell.getValueLength()
            there = scanner.next()

    def _native_cells(self, path: str) -> Iterator[tuple[bytes, int]]:
        from py4j.java_gateway import JavaClass

        io = self._spark.sparkContext._jvm.org.apache.hudi.io
        older = self._spark.sparkContext._jvm.org.apache.hudi.common.util.io
        with open(path, "rb") as file:
            data = bytearray(file.read())
        buffer = io.ByteBufferBackedInputStream
        buffer = buffer if isinstance(buffer, JavaClass) else older.ByteBufferBackedInputStream
        reader = io.hfile.HFileReaderImpl(io.ByteArraySeekableDataInputStream(buffer(data)), len(data))
        there = reader.seekTo()
        while there:
            cell = reader.getKeyValue().get()
            yield str(cell.getKey().getContentInString()).encode(), cell.getValueLength()
            there = reader.next()

    def _meta_client(self, path: str) -> Any:
        jvm = self._spark.sparkContext._jvm
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(configuration)
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(storage).setBasePath(path).build()


def query_options(request: Request) -> dict[str, str]:
    """DataSource options for the four kinds of query; (begin, end] for incremental, `end` None: open."""
    options = {"hoodie.metadata.enable": "false", **request.get("options", {})}
    kind = request["query"]
    if kind in ("snapshot", "read_optimized"):
        options["hoodie.datasource.query.type"] = kind
    elif kind == "time_travel":
        options["as.of.instant"] = request["as_of"]
    elif kind == "incremental":
        options["hoodie.datasource.query.type"] = "incremental"
        options["hoodie.datasource.read.begin.instanttime"] = request["begin"]
        if request["end"] is not None:
            options["hoodie.datasource.read.end.instanttime"] = request["end"]
    else:
        raise ValueError(f"no such query: {kind}")
    return options


def _time(instant: Any) -> str:
    from py4j.protocol import Py4JError

    try:
        return str(instant.requestedTime())
    except Py4JError:  # 0.x has the older name
        return str(instant.getTimestamp())


def _causes(message: str) -> str:
    """The first lines and every cause of a Java exception, without the stack (which stderr has)."""
    first, *rest = [line for line in message.splitlines() if not line.lstrip().startswith(("at ", "... "))]
    return "\n".join([first, *rest[:2], *(line for line in rest[2:] if line.startswith("Caused by"))])


def serve(server: Server, requests: TextIO, answers: TextIO) -> None:
    """Answer until the input ends. A request that fails gets {"ok": false, "error": …}; serving goes on."""
    for line in requests:
        request = json.loads(line)
        try:
            method: Callable[[Request], Answer] = getattr(server, request["do"])
            answer: Answer = {"ok": True, **method(request)}
        except Exception as error:
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {_causes(str(error))}"}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def main() -> None:
    # Spark and the JVM print to file descriptor 1: keep it for answers, and give them stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = start_spark(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    try:
        answers.write(json.dumps({"ok": True, "spark": spark.version}) + "\n")
        answers.flush()
        serve(Server(spark), sys.stdin, answers)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
