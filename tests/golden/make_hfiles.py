"""Makes the golden HFiles here with unmodified Apache Hudi 0.15.0 and 1.2.0 on PySpark 3.5, one release a run.

    python make_hfiles.py <hudi-spark3.5-bundle_2.12-0.15.0.jar>
    python make_hfiles.py <hudi-spark3.5-bundle_2.12-1.2.0.jar>

`hfile_*.hfile`: `entries()` by the release's own HFile writer (0.15.0: HBase's), with blocks small enough to have
several, and with 0.15.0 an index of several levels. `metadata_*`: the files partition of a table's metadata table,
base file and log files; `hfiles.json` has what is on its timeline, and what the table's folders listed then.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MANIFEST = HERE / "hfiles.json"
SCHEMA = '{"type":"record","name":"golden","fields":[{"name":"x","type":"int"}]}'
META = b"a block beside the data"
BLOCK_SIZE = 600
COMMITS = (("a", "b"), ("a", "b", "c"), ("a",), ("c",), ("b",))


def entries() -> list[tuple[str, bytes]]:
    """Keys and values in the order of their bytes: short and long ones, empty values, letters of several bytes."""
    rows = [(f"key-{number:03d}", bytes([number % 256]) * (number * 7 % 90)) for number in range(150)]
    rows += [("long-" + "x" * 300, b"long"), ("p=ü/q=日本", b"letters"), ("z", bytes(range(256)) * 8)]
    return sorted(rows, key=lambda row: row[0].encode())


def start_spark(jar: str) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.ui.enabled", "false")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .getOrCreate()
    )


# ------------------------------------------------------------------------------------- by the writers alone


def write_by_hbase(spark: Any, folder: Path) -> Iterator[Path]:
    """HBase's writer as 0.15.0 brings it: GZ and NONE, CRC32C, an index of several levels."""
    jvm = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    conf.set("hfile.index.block.max.size", "100")
    conf.set("hfile.index.block.min.entries", "2")
    hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
    comparator = jvm.org.apache.hudi.io.storage.HoodieHBaseKVComparator()
    for codec in ("GZ", "NONE"):
        file = folder / f"hfile_0_15_{codec.lower()}.hfile"
        path = jvm.org.apache.hadoop.fs.Path(file.as_uri())
        context = (
            hbase.io.hfile.HFileContextBuilder()
            .withBlockSize(BLOCK_SIZE)
            .withCompression(getattr(hbase.io.compress.Compression.Algorithm, codec))
            .withCellComparator(comparator)
            .build()
        )
        factory = hbase.io.hfile.HFile.getWriterFactory(conf, hbase.io.hfile.CacheConfig(conf))
        writer = factory.withPath(path.getFileSystem(conf), path).withFileContext(context).create()
        for key, value in entries():
            writer.append(hbase.KeyValue(bytearray(key.encode()), None, None, bytearray(value)))
        writer.appendFileInfo(bytearray(b"schema"), bytearray(SCHEMA.encode()))
        writer.appendMetaBlock("golden", jvm.org.apache.hadoop.io.BytesWritable(bytearray(META)))
        writer.close()
        yield file


def write_natively(spark: Any, folder: Path) -> Iterator[Path]:
    """Hudi's own writer of 1.x: GZIP and NONE."""
    jvm = spark.sparkContext._jvm
    for codec in ("GZIP", "NONE"):
        file = folder / f"hfile_1_2_{codec.lower()}.hfile"
        hfile = jvm.org.apache.hudi.io.hfile
        compression = getattr(jvm.org.apache.hudi.io.compress.CompressionCodec, codec)
        context = hfile.HFileContext.builder().blockSize(BLOCK_SIZE).compressionCodec(compression).build()
        writer = hfile.HFileWriterImpl(context, jvm.java.io.FileOutputStream(str(file)))
        for key, value in entries():
            writer.append(key, bytearray(value))
        writer.appendFileInfo("schema", bytearray(SCHEMA.encode()))
        writer.appendMetaInfo("golden", bytearray(META))
        writer.close()
        yield file


# ---------------------------------------------------------------------------------------- by a whole table


def write_table(spark: Any, path: Path, version: str) -> dict[str, dict[str, int]]:
    """A table with a metadata table that was compacted once; what its folders list."""
    options = {
        "hoodie.table.name": "golden",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.compact.inline": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
    }
    for number, partitions in enumerate(COMMITS):
        rows = [(f"{partition}{key}", number, partition) for partition in partitions for key in range(5)]
        frame = spark.createDataFrame(rows, "id string, ts bigint, p string")
        frame.write.format("hudi").options(**options).mode("append").save(str(path))
    return {
        partition.name: {file.name: file.stat().st_size for file in sorted(partition.iterdir()) if _is_data(file)}
        for partition in sorted(path.iterdir())
        if partition.is_dir() and partition.name != ".hoodie"
    }


def _is_data(file: Path) -> bool:
    return not file.name.endswith(".crc") and not file.name.startswith(".hoodie")


def newest_slice(metadata: Path) -> tuple[list[Path], list[str]]:
    """The files of the newest slice of the files partition, and the names on the metadata table's own timeline."""
    later = metadata / ".hoodie/timeline"
    timeline = sorted(f.name for f in (later if later.exists() else metadata / ".hoodie").glob("[0-9]*"))
    completions = dict(name.split(".")[0].split("_") for name in timeline if "_" in name)
    files = [f for f in sorted((metadata / "files").iterdir()) if _is_data(f)]
    base = max((f for f in files if f.suffix == ".hfile"), key=_instant)
    logs = [f for f in files if ".log." in f.name]
    return [base, *(f for f in logs if completions.get(_instant(f), _instant(f)) >= _instant(base))], timeline


def _instant(file: Path) -> str:
    return file.stem.rsplit("_", 1)[1] if file.suffix == ".hfile" else file.name.split("_")[1].split(".")[0]


def main(jar: str) -> None:
    older = "0.15.0" in jar
    spark = start_spark(jar)
    folder = Path(tempfile.mkdtemp())
    for file in write_by_hbase(spark, folder) if older else write_natively(spark, folder):
        shutil.copyfile(file, HERE / file.name)
    manifest = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
    for version in ("6",) if older else ("6", "9"):
        name = f"metadata_{'0_15' if older else '1_2'}_v{version}"
        listing = write_table(spark, folder / name, version)
        kept, timeline = newest_slice(folder / name / ".hoodie/metadata")
        (HERE / name).mkdir(exist_ok=True)
        for file in (HERE / name).iterdir():
            file.unlink()
        for file in kept:
            shutil.copyfile(file, HERE / name / file.name)
        manifest[name] = {"listing": listing, "timeline": timeline}
    MANIFEST.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1])
