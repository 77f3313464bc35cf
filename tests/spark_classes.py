"""The classes that a Spark loads, kept in a file from which the JVMs of tests have them: each starts in half the time.

    python -m tests.spark_classes    makes the file, where there is none for this Java and this PySpark

Java calls it a dynamic archive of class data. It is checked by each JVM that is told of it: where its Java or its class
path is another one, it goes on without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

# Without a word, above all on the standard output, where an archive does not fit.
_SILENT: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_PATIENCE_S: Final = 300


def archive() -> Path | None:
    """Where the file of this environment is, or would be. None where there is no Java."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        return None
    java = Path(found).resolve()
    which = zlib.crc32(f"{java} {java.stat().st_mtime_ns}".encode())
    return Path(sys.prefix) / f"spark-{version('pyspark')}-{which:08x}.jsa"


def option() -> str:
    """What to tell a JVM of Spark's, with a space before it. Nothing where the file is not there."""
    file = archive()
    return f" -XX:SharedArchiveFile={file} {_SILENT}" if file and file.exists() else ""


def make(file: Path) -> None:
    """Starts a Spark, has it do a little of everything, and keeps what it loaded."""
    made = file.with_suffix(f".{os.getpid()}")
    flags = os.environ["SPARK_LAUNCHER_OPTS"]
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{flags} -XX:ArchiveClassesAtExit={made} {_SILENT}"}
    try:
        subprocess.run(
            [sys.executable, "-c", "from tests.spark_classes import work; work()"],
            env=environment,
            check=True,
            timeout=_PATIENCE_S,
            capture_output=True,
            text=True,
        )
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)


def work() -> None:
    """A small table and small queries, in a Spark that ends by itself."""
    import pyarrow as pa

    from hudi_assets.engine import HudiTable
    from hudi_assets.engine.spark.start import local_session

    with tempfile.TemporaryDirectory() as folder:
        settings = {"spark.local.dir": folder, "spark.sql.warehouse.dir": Path(folder, "warehouse").as_uri()}
        spark = local_session("classes", "local[2]", settings)
        rows = pa.table({"id": ["a", "b"], "at": [1_000, 9_000], "v": [1.5, None]})
        table = HudiTable.create(f"{folder}/t", rows.schema, record_key=["id"], ordering_field="at", buckets=1)
        for _ in range(2):
            table.upsert(spark, spark.createDataFrame(rows))
        table.compact(spark, threshold=5_000)
        for view in (table.snapshot(spark), table.read_optimized(spark)):
            view.createOrReplaceTempView("view")
            spark.sql("SELECT at, count(*), sum(v) FROM view WHERE id > '' GROUP BY at ORDER BY at").toPandas()
            spark.table("view").toArrow()
        spark.table("view").write.parquet(f"{folder}/p")
        spark.read.parquet(f"{folder}/p").where("at > 5000").show()
        gateway: Any = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_PATIENCE_S)


def main() -> int:
    from tests import quick_machine

    file = archive()
    if file is None or file.exists():
        return 0
    quick_machine.load()
    print("Keeping the classes that Spark loads …", flush=True)
    try:
        make(file)
    except (OSError, subprocess.SubprocessError) as error:
        # The tests find the same without it, and take longer.
        print(f"{file} was not made: {error} {getattr(error, 'stderr', None) or ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
