"""All queries of a table in a bucket through a real Spark: with Hadoop's S3A, by which it reads Parquet, and without.

`make test-stores-spark` fetches hadoop-aws.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stores.minio import Minio, hadoop_aws
from tests.stores.test_changes import new_path, objects

pytestmark = pytest.mark.timeout(1000)
ROOT = Path(__file__).parents[2]
SNAPSHOT: list[Any] = sorted([f"k{i}", (1_000 if i < 3 else 2_000 if i < 6 else 9_000) + i] for i in range(12))


def asked(minio: Minio, path: str, folder: Path, jars: list[Path], *settings: str) -> dict[str, Any]:
    """What the queries find. The secret is in nothing that Spark or we have written."""
    cleaned = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    script = str(Path(__file__).with_name("queries_by_spark.py"))
    done = subprocess.run(
        [sys.executable, script, path, ",".join(map(str, jars)), str(folder), *settings],
        env={**cleaned, **minio.environment, "PYTHONPATH": os.pathsep.join([str(ROOT), *packages()])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    secret = minio.secret_access_key
    assert secret not in done.stdout + done.stderr
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".plan" for file in written)
    assert [file for file in written if secret.encode() in file.read_bytes()] == []
    assert not any(secret.encode() in data for data in objects(minio, path.replace("s3a://", "s3://")).values())
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("found "))
    found: dict[str, Any] = json.loads(line.removeprefix("found "))
    return found | {"stderr": done.stderr}


def packages() -> list[str]:
    """Of another PySpark, where scripts/test-spark35 runs this."""
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def jars_for_this_spark() -> tuple[str, list[Path]]:
    import pyspark

    version = "3.3.4" if pyspark.__version__.startswith("3.5.") else "3.5.0"
    return version, hadoop_aws(version)


@pytest.mark.interop
@pytest.mark.slow
def test_with_hadoop_aws(minio: Minio, tmp_path: Path) -> None:
    version, jars = jars_for_this_spark()
    if not jars:
        pytest.skip(f"Spark reads no bucket without hadoop-aws {version}: make test-stores-spark fetches it")
    path = new_path()  # s3://, which Hadoop does not know
    found = asked(minio, path, tmp_path, jars)
    check_answers(found)
    assert "no file system" not in found["stderr"]
    assert found["view ro"] == found["ro"] == found["files"]
    assert found["properties"]["hudi_assets.path"] == path
    assert found.get("view rt", SNAPSHOT) == SNAPSHOT


@pytest.mark.interop
@pytest.mark.slow
def test_without_hadoop_aws(minio: Minio, tmp_path: Path) -> None:
    """The engine's tasks read base files too. A view in a catalog is refused, with the line to add."""
    found = asked(minio, new_path(), tmp_path, [])
    check_answers(found)
    version, _ = jars_for_this_spark()
    line = f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
    assert "This Spark has no file system for s3a://." in found["view ro"]
    assert line in found["view ro"]
    assert found["stderr"].count(line) == 1, "said once, however many queries there are"
    assert "S3AFileSystem" in found["files"], "Spark's own reader"


def check_answers(found: dict[str, Any]) -> None:
    """What each query finds, whoever reads the base files."""
    assert found["snapshot"] == SNAPSHOT
    assert found["ro"] == sorted([f"k{i}", (1_000 if i < 3 else 2_000) + i] for i in range(9))
    assert found["rows"] == len(found["ro"])
    assert found["ro filtered"] == [row for row in found["ro"] if int(row[0][1:]) % 2 == 0]
    assert found["snapshot filtered"] == [row for row in SNAPSHOT if int(row[0][1:]) % 2 == 0]
    assert found["as of"] == found["ro"]
    assert found["incremental"] == [row for row in SNAPSHOT if row[1] > 9_000]
    if "source snapshot" in found:
        assert found["source snapshot"] == SNAPSHOT
        assert found["source ro"] == found["ro"]
        assert found["source as of"] == found["as of"]
