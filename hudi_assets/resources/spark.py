"""One Spark session per process, made when it is first used, against the shared catalog."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagster_pyspark import LazyPySparkResource

from hudi_assets.catalog.metastore import Metastore
from hudi_assets.catalog.places import named_metastore
from hudi_assets.engine import connected_session, named_server, session_settings, tell_of_store
from hudi_assets.home import home, project_root

# What a table's maintenance needs on one machine. `spark_config` in a deployment overrides it.
LOCAL_SETTINGS: Mapping[str, Any] = {
    "spark.app.name": "hudi-assets",
    "spark.master": "local[*]",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.catalogImplementation": "hive",
    # Results come back through a socket file: any process of the machine could connect to a TCP port first.
    "spark.python.unix.domain.socket.enabled": "true",
}


# The path of Apache Hudi's Spark bundle, for tables whose executor is `hudi`.
HUDI_BUNDLE = "HUDI_BUNDLE"


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, with the catalog's address put in when the session is made.

    The address is not known earlier: the metastore's process chooses its port when it starts. With the
    in-process executor all steps of a run share this one session. A process that already has a session
    gets that one.

    With `remote`, or SPARK_REMOTE in the environment, it is a session of that Spark Connect server: its settings are
    the server's own, and no Java is started here.
    """

    spark_config: dict[str, Any] = dict(LOCAL_SETTINGS)  # noqa: RUF012 - a pydantic field
    remote: str | None = None

    def _init_session(self) -> None:
        remote = self.remote or named_server()
        if remote:
            if self._spark_session is None:
                self._spark_session = connected_session(remote)
            return
        if self._spark_session is None:
            master = str(self.spark_config.get("spark.master", "local"))
            prepare_environment(local=master.startswith("local"))
            self._add_hudi()
            metastore = Metastore(home())
            uri = named_metastore(self.spark_config.get("spark.hadoop.hive.metastore.uris"))
            self.spark_config["spark.hadoop.hive.metastore.uris"] = uri or metastore.acquire(os.getpid())
            self.spark_config.setdefault("spark.sql.warehouse.dir", str(metastore.warehouse))
        super()._init_session()
        tell_of_store(self._spark_session)

    def _add_hudi(self) -> None:
        """Add the settings that Apache Hudi's bundle needs, where the environment names one."""
        bundle = os.environ.get(HUDI_BUNDLE)
        for key, value in (session_settings(bundle) if bundle else {}).items():
            self.spark_config.setdefault(key, value)


def prepare_environment(*, local: bool = True) -> None:
    """Let Spark's Python workers run in this environment, activated or not, and find this project.

    The Python of a cluster's workers (not `local`) is what PYSPARK_PYTHON says.
    """
    if local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(Metastore(home()).spark_conf_dir))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(project_root())
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if (Path(root) / "pyspark_hudi_assets").exists() and root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, paths)])
