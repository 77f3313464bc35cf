"""What Hudi's Flink job does to a table, done in its order by Hudi's own classes, in a JVM without Flink.

Hudi's artifacts for Flink could be had from no registry here. So this stands in their place. It follows what
StreamWriteOperatorCoordinator, BucketStreamWriteFunction, BucketAssigner and StreamerUtil do (read in source):

- The table is made from the same properties.
- An instant is inflight from one checkpoint to the next, also while nothing is written and while a plan is executed.
- A checkpoint's rows come in several mini-batches. Each makes append handles of its own, on the slice as it then is.
- Rows of a key within a mini-batch are not combined. A deleted row is a record with the operation DELETE.
- File groups are born by log files. Their ids are bare UUIDs, or begin with the bucket's number: no `-0` at the end.
- A checkpoint commits, plans a compaction where the job has them planned, and starts the next instant at once.
- A job that ends leaves its last instant inflight.

Handles (HoodieAppendHandle is what FlinkAppendHandle extends), log files, commits, plans, rollbacks: Hudi's classes.
Not the same: the class of the write client (Spark's), the timeline server's view (none here), the write token.

Run by Hudi's own environment (`scripts/interop-setup`), driven by JSON lines as `scripts/hudi_server.py` is, whose
requests it answers too.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT))

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "record",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "ts", "type": "long"},
            {"name": "v", "type": ["null", "long"], "default": None},
            {"name": "p", "type": "string"},
        ],
    }
)
_MODEL = "org.apache.hudi.common.model."
_DELTA = "deltacommit"
# FlinkOptions' defaults, as far as they matter to a table; markers as engines but Spark have them.
_OPTIONS: Mapping[str, str] = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.payload.class": _MODEL + "EventTimeAvroPayload",
    "hoodie.compaction.payload.class": _MODEL + "EventTimeAvroPayload",
    "hoodie.payload.event.time.field": "ts",
    "hoodie.payload.ordering.field": "ts",
    "hoodie.index.type": "INMEMORY",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.auto.commit": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.compact.inline.max.delta.commits": "5",
}


class Job:
    """One job on one table; `state` outlives it, as Flink's checkpoints do."""

    def __init__(self, spark: Any, request: Mapping[str, Any]) -> None:
        """`buckets`: those of the bucket index; 0: the index in Flink's state."""
        self._jvm, self._spark = spark.sparkContext._jvm, spark
        self._path, self._buckets, self._release = request["path"], request["buckets"], request["release"]
        self._hudi = self._jvm.org.apache.hudi
        version = request["version"]
        settings = {**_OPTIONS, "hoodie.write.table.version": str(version), **request.get("options", {})}
        self._schedules = settings.pop("compaction.schedule.enabled", "false") == "true"
        if not Path(self._path, ".hoodie/hoodie.properties").exists():
            self._make(version)
        builder = self._hudi.config.HoodieWriteConfig.newBuilder().withPath(self._path).forTable("t")
        self._config = builder.withSchema(SCHEMA).withProps(self._map(settings)).build()
        self._engine = self._hudi.client.common.HoodieSparkEngineContext(spark.sparkContext._jsc)
        self._client = self._hudi.client.SparkRDDWriteClient(self._engine, self._config)
        self._supplier = self._hudi.common.engine.LocalTaskContextSupplier()
        self._converter = self._hudi.avro.MercifulJsonConverter()
        # Each name on the way to a class is a question to the JVM: asked once, not for each row.
        model = self._hudi.common.model
        self._key, self._payload, self._row = model.HoodieKey, model.EventTimeAvroPayload, model.HoodieAvroRecord
        self._inserted, self._deleted = (model.HoodieOperation.fromName(name) for name in ("I", "D"))
        self._names = self._hudi.index.bucket.BucketIdentifier
        self._bucket_of: dict[str, int] = {}
        if self._release.startswith("0."):
            self._schema = self._jvm.org.apache.avro.Schema.Parser().parse(SCHEMA)
        else:
            self._schema = self._hudi.common.schema.HoodieSchema.parse(SCHEMA)
        # As ViewStorageProperties: the job's file view has no server here.
        auxiliary = Path(self._path, ".hoodie/.aux")
        auxiliary.mkdir(exist_ok=True)
        (auxiliary / "view_storage_conf.properties").write_text("hoodie.filesystem.view.type=MEMORY\n")
        self._state = Path(f"{self._path}-state.json")
        kept: dict[str, Any] = {"checkpoint": 0, "groups": {}}
        if self._state.exists():
            kept = json.loads(self._state.read_text())
        self.checkpoints: int = kept["checkpoint"]
        # What the writers know without a look at the table: `p/bucket` or `p/key` → file group.
        self._groups: dict[str, str] = kept["groups"] if not self._buckets else self._bootstrapped()
        self._statuses = self._jvm.java.util.ArrayList()
        self.instant = self._start()

    def _make(self, version: int) -> None:
        """As StreamerUtil.initTableIfNotExists."""
        client = self._hudi.common.table.HoodieTableMetaClient
        old = self._release.startswith("0.")
        builder = client.withPropertyBuilder() if old else client.newTableBuilder().setTableVersion(version)
        builder = builder.setPreCombineField("ts") if old else builder.setOrderingFields("ts")
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()
        (
            builder.setTableCreateSchema(SCHEMA)
            .setTableType("MERGE_ON_READ")
            .setTableName("t")
            .setDatabaseName("default_database")
            .setRecordKeyFields("id")
            .setPayloadClassName(_MODEL + "EventTimeAvroPayload")
            .setArchiveLogFolder("archived" if version < 8 else "history")
            .setPartitionFields("p")
            .setKeyGeneratorClassProp("org.apache.hudi.keygen.SimpleAvroKeyGenerator")
            .setHiveStylePartitioningEnable(False)
            .setUrlEncodePartitioning(False)
            .setCDCEnabled(False)
            .setCDCSupplementalLoggingMode("DATA_BEFORE_AFTER")
            .initTable(self._hudi.hadoop.fs.HadoopFSUtils.getStorageConf(configuration), self._path)
        )

    def _map(self, settings: Mapping[str, str]) -> Any:
        found = self._jvm.java.util.HashMap()
        for key, value in settings.items():
            found.put(key, value)
        return found

    def _table(self) -> Any:
        return self._hudi.table.HoodieSparkTable.create(self._config, self._engine)

    def _bootstrapped(self) -> dict[str, str]:
        """As BucketStreamWriteFunction.bootstrapIndexIfNeed: the buckets of the latest file slices."""
        table, found = self._table(), {}
        for folder in sorted(Path(self._path).glob("*/.hoodie_partition_metadata")):
            partition = folder.parent.name
            for one in table.getHoodieView().getLatestFileSlices(partition).iterator():
                key = f"{partition}/{int(one.getFileId()[:8])}"
                assert key not in found, f"two file groups of {key}"
                found[key] = one.getFileId()
        return found

    def _start(self) -> str:
        meta = self._table().getMetaClient()
        instant = str(self._client.startCommit(_DELTA, meta))
        meta.getActiveTimeline().transitionRequestedToInflight(_DELTA, instant)
        return instant

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """One mini-batch: append handles of its own, one for each file group."""
        groups: dict[tuple[str, str], Any] = {}
        for row in rows:
            group = (row["p"], self._group_of(row))
            groups.setdefault(group, self._jvm.java.util.ArrayList()).add(self._record(row))
        table = self._table()
        for (partition, file_id), records in groups.items():
            handle = self._hudi.io.HoodieAppendHandle(
                self._config, self.instant, table, partition, file_id, records.iterator(), self._supplier
            )
            handle.doAppend()
            self._statuses.addAll(handle.close())

    def _record(self, row: Mapping[str, Any]) -> Any:
        values = {name: row[name] for name in ("id", "ts", "v", "p")}
        converted = self._converter.convert(json.dumps(values), self._schema)
        operation = self._deleted if row.get("deleted") else self._inserted
        return self._row(self._key(row["id"], row["p"]), self._payload(converted, row["ts"]), operation)

    def _group_of(self, row: Mapping[str, Any]) -> str:
        if self._buckets:
            if row["id"] not in self._bucket_of:
                self._bucket_of[row["id"]] = self._names.getBucketId(row["id"], "id", self._buckets)
            number = self._bucket_of[row["id"]]
            key = f"{row['p']}/{number}"
            if key not in self._groups:
                self._groups[key] = str(self._names.newBucketFileIdPrefix(number))
            return self._groups[key]
        key = f"{row['p']}/{row['id']}"
        if key not in self._groups:
            # A group is full with eight keys: Flink goes by sizes, and puts new keys into small groups.
            mine = [group for other, group in self._groups.items() if other.startswith(f"{row['p']}/")]
            room = [group for group in dict.fromkeys(mine) if mine.count(group) < 8]
            self._groups[key] = room[0] if room else str(uuid.uuid4())
        return self._groups[key]

    def checkpoint(self) -> dict[str, Any]:
        """Commit, plan a compaction where that is asked for, start the next instant."""
        self.checkpoints += 1
        committed = self.instant
        extra = self._hudi.common.util.Option.of(self._map({"flink_checkpoint_id": str(self.checkpoints)}))
        statuses = self._spark.sparkContext._jsc.parallelize(self._statuses, 1)
        assert self._client.commit(committed, statuses, extra), f"{committed} was not committed"
        self._statuses = self._jvm.java.util.ArrayList()
        self._state.write_text(json.dumps({"checkpoint": self.checkpoints, "groups": self._groups}))
        planned = None
        if self._schedules:
            found = self._client.scheduleCompaction(self._hudi.common.util.Option.empty())
            planned = str(found.get()) if found.isPresent() else None
        self.instant = self._start()
        return {"committed": committed, "planned": planned, "inflight": self.instant}

    def compact(self, instant: str) -> None:
        """Execute a plan, while the instant is inflight; as the job's compaction operators do."""
        result = self._client.compact(instant)
        if not self._table().getMetaClient().reloadActiveTimeline().filterCompletedInstants().containsInstant(instant):
            if self._release.startswith("0."):
                metadata = result.getCommitMetadata().get()
                self._client.commitCompaction(instant, metadata, self._hudi.common.util.Option.empty())
            else:
                self._client.commitCompaction(instant, result, self._hudi.common.util.Option.empty())

    def close(self) -> None:
        """As a job that is stopped: its last instant stays inflight."""
        self._client.close()


def stream(spark: Any, folder: Path, request: Mapping[str, Any]) -> None:
    """A checkpoint every `seconds`, in two mini-batches, until the file `stop` appears; tests/live/events.py's events.

    `offsets/N` has how many events the first N + 1 checkpoints hold, before the last of them is committed.
    """
    from tests.live.events import event

    start, per_second, written, number = int(time.time() * 1000), request["per_second"], 0, 0
    (folder / "start").write_text(str(start))
    (folder / "offsets").mkdir()
    job = Job(spark, {**request, "path": str(folder / "table")})
    while not (folder / "stop").exists():
        due = time.monotonic() + request["seconds"]
        for pause in (request["seconds"] / 2, due - time.monotonic()):
            time.sleep(max(0.0, pause))
            end = int((time.time() * 1000 - start) * per_second / 1000)
            events = [event(one, start, per_second) for one in range(written, end)]
            job.write({"id": e.key, "ts": e.ts, "v": e.number, "p": "p", "deleted": e.deleted} for e in events)
            written = end
        (folder / f"offsets/{number}").write_text(str(written))
        planned = job.checkpoint()["planned"]
        if planned is not None:
            job.compact(planned)
        number += 1
    job.close()


def main() -> None:
    from scripts.hudi_server import Server, serve, start_spark

    class Flinklike(Server):
        _job: Job

        def job(self, request: dict[str, Any]) -> dict[str, Any]:
            self._job = Job(self._spark, request)
            return {"inflight": self._job.instant}

        def batch(self, request: dict[str, Any]) -> dict[str, Any]:
            self._job.write(request["batch"])
            return {}

        def checkpoint(self, request: dict[str, Any]) -> dict[str, Any]:
            return self._job.checkpoint()

        def execute(self, request: dict[str, Any]) -> dict[str, Any]:
            self._job.compact(request["instant"])
            return {}

        def end(self, request: dict[str, Any]) -> dict[str, Any]:
            self._job.close()
            return {}

    if len(sys.argv) == 4 and sys.argv[2] == "stream":
        request = json.loads(sys.argv[3])
        folder, ended = Path(request["folder"]), ""
        try:
            stream(start_spark(sys.argv[1]), folder, request)
        except Exception as error:
            ended = f"{type(error).__name__}: {error}"
        (folder / "ending").write_text(ended)
        (folder / "ending").rename(folder / "ended")
        return
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve_with = Flinklike(start_spark(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
    answers.write('{"ok": true}\n')
    answers.flush()
    serve(serve_with, sys.stdin, answers)


if __name__ == "__main__":
    main()
