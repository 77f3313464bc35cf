"""A YARN of the tests: Hadoop's own mini-cluster on the loopback, in a folder, ended with its process's input."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

# As scripts/yarn-setup and scripts/hdfs-setup.
_JARS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudi-assets/jars"
_MINI_CLUSTER = _JARS / "hadoop-client-minicluster-3.5.0.jar"
_OF_SPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar", "log4j-*.jar")
_JAVA = Path(__file__).with_name("java") / "MiniYarn.java"
_STARTS_S = 300
SPARKS_JARS = Path(pyspark.__file__).parent / "jars"


def is_there() -> bool:
    """Whether scripts/yarn-setup has fetched what it takes."""
    return _MINI_CLUSTER.is_file() and (_JARS / "yarn").is_dir()


@contextmanager
def running_yarn(folder: Path) -> Iterator[Path]:
    """The folder of Hadoop's settings (HADOOP_CONF_DIR) of a YARN with two node managers. They end with the block."""
    settings = folder / "conf"
    settings.mkdir(parents=True)
    jars = [_MINI_CLUSTER, *sorted((_JARS / "yarn").glob("*.jar"))]
    jars += [found for pattern in _OF_SPARK for found in sorted(SPARKS_JARS.glob(pattern))]
    home = os.environ.get("JAVA_HOME")
    command = [str(Path(home, "bin", "java")) if home else "java", "-Xmx512m", "-XX:+UseSerialGC"]
    command += ["-cp", ":".join(map(str, jars)), str(_JAVA), str(settings)]
    with (folder / "yarn.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    late = threading.Timer(_STARTS_S, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        if "UP\n" not in iter(process.stdout.readline, ""):
            raise RuntimeError(f"YARN does not start: {(folder / 'yarn.log').read_text('utf-8', 'replace')[-3000:]}")
        late.cancel()
        yield settings
    finally:
        late.cancel()
        process.communicate(timeout=120)
