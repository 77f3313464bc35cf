"""A Hive metastore on PostgreSQL, as a company has one: both started for a test, on the loopback, and stopped after it.

PostgreSQL is the system's (Debian: apt-get install postgresql); the metastore is in Spark's own jars; the JDBC driver
comes by `scripts/interop-setup`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from hudi_assets import catalog
from scripts.hudi_client import InteropMissing, interop_home
from tests.ports import answers, free_port

_DRIVER = "postgresql-42.7.4.jar"
_SITE = """<?xml version="1.0"?>
<configuration>
  <property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:postgresql://127.0.0.1:{port}/metastore</value></property>
  <property><name>javax.jdo.option.ConnectionDriverName</name><value>org.postgresql.Driver</value></property>
  <property><name>javax.jdo.option.ConnectionUserName</name><value>hive</value></property>
  <property><name>javax.jdo.option.ConnectionPassword</name><value>hive</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value>{folder}/warehouse</value></property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""


@contextmanager
def metastore_on_postgresql() -> Iterator[str]:
    """Its address. Raises `InteropMissing` where PostgreSQL or the driver is not there."""
    driver = interop_home() / "jars" / _DRIVER
    if not driver.exists():
        raise InteropMissing(f"{driver} is missing: run scripts/interop-setup first")
    # Not below TMPDIR: PostgreSQL's own user may not enter a folder of ours there.
    folder = Path(tempfile.mkdtemp(prefix="hive-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        with _postgresql(folder) as database, _metastore(folder, driver, database) as uri:
            yield uri
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgresql(folder: Path) -> Iterator[int]:
    tools = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    found = shutil.which("initdb")
    bin_folder = tools or (Path(found).resolve().parent if found else None)
    if bin_folder is None:
        raise InteropMissing("PostgreSQL is missing: apt-get install postgresql")
    data = folder / "data"
    data.mkdir()
    user: Sequence[str] = ()
    if os.getuid() == 0:  # PostgreSQL does not run as root
        user = ("runuser", "-u", "postgres", "--")
        shutil.chown(data, "postgres")
    port = free_port()
    server = [str(bin_folder / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", str(data), "-F"]
    _run(*user, str(bin_folder / "initdb"), "-D", str(data), "-A", "trust", "-U", "hive", "--no-sync")
    stop = [*user, str(bin_folder / "pg_ctl"), "-D", str(data), "-m", "fast", "-w", "stop"]
    with _process([*user, *server], folder / "postgresql.log", port, stop):
        _run(*user, str(bin_folder / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", "hive", "metastore")
        yield port


@contextmanager
def _metastore(folder: Path, driver: Path, database: int) -> Iterator[str]:
    conf = folder / "conf"
    conf.mkdir()
    (conf / "hive-site.xml").write_text(_SITE.format(port=database, folder=folder))
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    jars = Path(spec.submodule_search_locations[0]) / "jars" / "*"
    java = Path(os.environ["JAVA_HOME"]) / "bin/java" if "JAVA_HOME" in os.environ else Path("java")
    port = free_port()
    command = [str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{conf}:{jars}:{driver}"]
    # Hive's own handler behind a socket of the loopback: its main class would listen on all addresses.
    source = Path(catalog.__file__).with_name("java") / "LoopbackMetastore.java"
    main = ["org.codehaus.janino.SimpleCompiler", str(source), "hudi_assets.LoopbackMetastore", str(port)]
    with _process([*command, *main], folder / "metastore.log", port):
        yield f"thrift://127.0.0.1:{port}"


@contextmanager
def _process(command: Sequence[str], log: Path, port: int, stop: Sequence[str] = ()) -> Iterator[None]:
    """`stop`: a command that ends it; without one it is asked by a signal."""
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 180
            while not answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
                time.sleep(0.2)
            yield
        finally:
            if stop:
                _run(*stop)
            else:
                process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=120)
