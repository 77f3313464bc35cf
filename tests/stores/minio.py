"""A MinIO of the tests: on the loopback, with a folder of its own, ended by its process."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from tests.ports import free_port

BUCKET = "lake"
# As scripts/stores-setup: its version is in the name, so that another one is built anew.
_BUILT = "minio-7aac2a2c5b7c"


def minio_program() -> Path | None:
    """The program that HUDI_ASSETS_MINIO names, or the one that scripts/stores-setup has built; None without either."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    named = Path(os.environ.get("HUDI_ASSETS_MINIO") or cache / "hudi-assets" / "bin" / _BUILT)
    return named if os.access(named, os.X_OK) else None


def hadoop_aws(version: str) -> list[Path]:
    """The jars that scripts/hadoop-aws-setup has fetched for a Hadoop of this version; none where it was not run."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return sorted((cache / "hudi-assets" / "jars" / f"hadoop-aws-{version}").glob("*.jar"))


@dataclass(frozen=True)
class Minio:
    """A server that answers: where, and the credentials that it takes, which nobody else has."""

    port: int
    access_key_id: str
    secret_access_key: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_REGION": "us-east-1",
        }

    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
        }

    @property
    def spark_settings(self) -> dict[str, str]:
        """For a Spark with hadoop-aws. The credentials are the environment's."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            # Hudi 1.2.0 leaves streams open: with 96, the default, its readers wait for one after a while.
            "spark.hadoop.fs.s3a.connection.maximum": "10000",
        }

    def arrow(self) -> fs.S3FileSystem:
        """Another client of the same store: Arrow's."""
        return fs.S3FileSystem(
            access_key=self.access_key_id,
            secret_key=self.secret_access_key,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def upload(self, folder: Path, prefix: str) -> str:
        """A folder of this machine into the bucket; its path there. Links become files."""
        store = self.arrow()
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                with store.open_output_stream(f"{BUCKET}/{prefix}/{file.relative_to(folder)}") as out:
                    out.write(file.read_bytes())
        return f"s3://{BUCKET}/{prefix}"


@contextmanager
def running_minio(program: Path, folder: Path) -> Iterator[Minio]:
    """A MinIO with one empty bucket; it ends with the context."""
    minio = Minio(free_port(), f"user{secrets.token_hex(6)}", secrets.token_hex(16))
    environment = {
        **os.environ,
        "MINIO_ROOT_USER": minio.access_key_id,
        "MINIO_ROOT_PASSWORD": minio.secret_access_key,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "minio.log").open("wb") as log:
        command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{minio.port}", str(folder)]
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_for(minio, process)
        minio.arrow().create_dir(BUCKET)
        yield minio
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(minio: Minio, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{minio.endpoint}/minio/health/ready", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"MinIO does not answer (it ended with {process.poll()})")
