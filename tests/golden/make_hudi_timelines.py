"""Makes the golden timelines here with unmodified Apache Hudi 1.2.0 on PySpark 3.5: table versions 8 and 9.

    <interop python> make_hudi_timelines.py <hudi-spark3.5-bundle_2.12-1.2.0.jar> [8] [9] [upgraded]

`hudi_1_2_v8/` and `hudi_1_2_v9/` hold one file per kind of instant and state of a table that lived through all of
them, and `history/`, its archived timeline as it was at the end, with two layers. `hudi_1_2_upgraded/history/` is the
archived timeline of a table of version 6 that 1.2.0 upgraded to 9. `SETTINGS` are the writer's.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.auto.upgrade": "false",
}
ARCHIVING = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.timeline.compaction.batch.size": "2",
}
KINDS = (
    ".deltacommit",
    ".deltacommit.inflight",
    ".commit",
    ".compaction.requested",
    ".replacecommit",
    ".replacecommit.requested",
    ".clean",
    ".clean.requested",
    ".savepoint",
    ".rollback",
    ".rollback.requested",
    ".restore",
    ".restore.requested",
)


class Table:
    """A table whose timeline files are kept when they are first seen."""

    def __init__(self, spark: Any, folder: Path, version: int) -> None:
        self.spark = spark
        self.path = folder / f"v{version}"
        self.version = str(version)
        self.kept = HERE / f"hudi_1_2_v{version}"
        self.upserts = 0

    def write(self, **more: str) -> None:
        self.upserts += 1
        rows = self.spark.range(6).selectExpr(
            "id", f"cast({self.upserts * 1000} + id as long) as ts", f"id * 100 + {self.upserts} as v", "'a' as p"
        )
        options = {**SETTINGS, "hoodie.write.table.version": self.version, **more}
        rows.write.format("hudi").options(**options).mode("append").save(str(self.path))

    def call(self, procedure: str, arguments: str) -> None:
        options = {
            key: value for key, value in SETTINGS.items() if not key.startswith(("hoodie.datasource", "hoodie.index"))
        }
        options |= {"hoodie.write.table.version": self.version, "hoodie.compact.inline.max.delta.commits": "1"}
        text = ",".join(f"{key}={value}" for key, value in options.items() if "bucket" not in key)
        named = f"path=>'{self.path}'" if procedure == "run_compaction" else f"table=>'v{self.version}'"
        extra = f", options=>'{text}'" if procedure in ("run_compaction", "run_clean") else ""
        self.spark.sql(f"call {procedure}({named}, {arguments}{extra})").collect()
        self.keep()

    def last(self, suffix: str) -> str:
        return max(file.name for file in (self.path / ".hoodie/timeline").glob(f"*{suffix}"))[:17]

    def keep(self) -> None:
        for kind in KINDS:
            files = sorted((self.path / ".hoodie/timeline").glob(f"[0-9]*{kind}"))
            if files and not list(self.kept.glob(f"*{kind}")):
                shutil.copy(files[-1], self.kept)

    def live(self) -> None:
        """Every kind of action once, then enough commits for the archived timeline to have two layers."""
        shutil.rmtree(self.kept, ignore_errors=True)
        self.kept.mkdir()
        for _ in range(3):
            self.write()
        for key in ("hoodie.metadata.enable=false", f"hoodie.write.table.version={self.version}"):
            self.spark.sql(f"set {key}")
        self.spark.sql(f"create table v{self.version} using hudi location '{self.path}'")
        self.call("run_compaction", "op=>'run'")
        self.write()
        self.call(
            "run_clean", "clean_policy=>'KEEP_LATEST_FILE_VERSIONS', file_versions_retained=>1, skip_locking=>true"
        )
        saved = self.last(".deltacommit")
        self.call("create_savepoint", f"commit_time=>'{saved}'")
        self.write()
        self.write()
        self.call("rollback_to_instant", f"instant_time=>'{self.last('.deltacommit')}'")
        self.call("rollback_to_savepoint", f"instant_time=>'{saved}'")
        self.call("delete_savepoint", f"instant_time=>'{saved}'")
        self.write(**{"hoodie.datasource.write.operation": "insert_overwrite"})
        self.keep()
        for _ in range(7):
            self.write(**ARCHIVING)
        self.keep_history(self.kept)

    def keep_history(self, kept: Path) -> None:
        history = self.path / ".hoodie/timeline/history"
        shutil.copytree(history, kept / "history", ignore=shutil.ignore_patterns("*.crc"))

    def upgrade(self) -> None:
        """Version 6 with a few instants archived, then one write of version 9."""
        kept = HERE / "hudi_1_2_upgraded"
        shutil.rmtree(kept, ignore_errors=True)
        for _ in range(7):
            self.write(**ARCHIVING)
        self.version = "9"
        self.write(**{"hoodie.write.auto.upgrade": "true"})
        self.keep_history(kept)


def main() -> None:
    from hudi_server import start_spark  # type: ignore[import-not-found]

    folder = Path(tempfile.mkdtemp())
    spark = start_spark(sys.argv[1])
    wanted = sys.argv[2:] or ["8", "9", "upgraded"]
    for version in (8, 9):
        if str(version) in wanted:
            Table(spark, folder, version).live()
    if "upgraded" in wanted:
        Table(spark, folder, 6).upgrade()
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
