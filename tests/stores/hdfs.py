"""An HDFS of the tests: Hadoop's own mini-cluster on the loopback, in a folder, ended with its process's input."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# As scripts/hdfs-setup.
_JAR = "hadoop-client-minicluster-3.5.0.jar"
_OF_SPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar", "log4j-*.jar")
_JAVA = Path(__file__).with_name("java") / "MiniHdfs.java"
_STARTS_S = 120


@dataclass(frozen=True)
class Hdfs:
    """A name node that answers: `hdfs://localhost:PORT`."""

    uri: str

    @property
    def environment(self) -> dict[str, str]:
        """For another process: nothing, as who it is says the system."""
        return {}


def mini_cluster() -> Path | None:
    """The jar that scripts/hdfs-setup has fetched; None where it was not run, and without TEST_HDFS."""
    if not os.environ.get("TEST_HDFS"):
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jar = cache / "hudi-assets" / "jars" / _JAR
    return jar if jar.is_file() else None


@contextmanager
def running_hdfs(jar: Path, folder: Path) -> Iterator[Hdfs]:
    """A name node and two data nodes. They end with the context."""
    import pyspark

    spark = Path(pyspark.__file__).parent / "jars"
    jars = [jar, *(found for pattern in _OF_SPARK for found in sorted(spark.glob(pattern)))]
    home = os.environ.get("JAVA_HOME")
    command = [str(Path(home, "bin", "java")) if home else "java", "-Xmx512m", "-XX:TieredStopAtLevel=1"]
    command += ["-XX:+UseSerialGC", "-cp", ":".join(map(str, jars)), str(_JAVA), str(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "hdfs.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield Hdfs(_said(process))
    finally:
        process.communicate(timeout=60)


def _said(process: subprocess.Popen[str]) -> str:
    """What it says once it answers."""
    assert process.stdout is not None
    late = threading.Timer(_STARTS_S, process.kill)
    late.start()
    try:
        for line in process.stdout:
            if line.startswith("UP "):
                return line.removeprefix("UP ").strip()
    finally:
        late.cancel()
    raise RuntimeError(f"HDFS does not start (it ended with {process.wait()})")
