"""A Hive metastore on PostgreSQL, as a company has one: both started for a test, on the loopback, and stopped after it.

PostgreSQL is that of `tests.postgresql`; the metastore is in Spark's own jars; the JDBC driver comes by
`scripts/interop-setup`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from hudi_assets import catalog
from scripts.hudi_client import InteropMissing, interop_home
from tests.ports import free_port
from tests.postgresql import USER, Database, PostgresMissing, postgresql
from tests.servers import serving

_DRIVER = "postgresql-42.7.4.jar"
_SITE = """<?xml version="1.0"?>
<configuration>
  <property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:postgresql://127.0.0.1:{port}/metastore</value></property>
  <property><name>javax.jdo.option.ConnectionDriverName</name><value>org.postgresql.Driver</value></property>
  <property><name>javax.jdo.option.ConnectionUserName</name><value>{user}</value></property>
  <property><name>javax.jdo.option.ConnectionPassword</name><value>none</value></property>
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
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hive-") as folder,
            postgresql("metastore") as database,
            _metastore(Path(folder), driver, database) as uri,
        ):
            yield uri
    except PostgresMissing as missing:
        raise InteropMissing(str(missing)) from missing


@contextmanager
def _metastore(folder: Path, driver: Path, database: Database) -> Iterator[str]:
    conf = folder / "conf"
    conf.mkdir()
    (conf / "hive-site.xml").write_text(_SITE.format(port=database.port, user=USER, folder=folder))
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
    with serving([*command, *main], folder / "metastore.log", port):
        yield f"thrift://127.0.0.1:{port}"
