"""The settings of a Spark on one machine, whether a run has it for itself or shares it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi_assets.catalog.metastore import Metastore
from hudi_assets.catalog.places import named_metastore
from hudi_assets.engine import session_settings
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

_METASTORE = "spark.hadoop.hive.metastore.uris"


def prepare(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a Spark of this process is started with: `settings`, Apache Hudi's bundle, and the catalog's address.

    The address is not known earlier: the metastore's process chooses its port when it starts. The environment is set
    too, for Spark's Python workers.
    """
    prepare_environment(local=str(settings.get("spark.master", "local")).startswith("local"))
    if settings.get("spark.sql.catalogImplementation", "hive") != "hive":
        return {**of_bundle(), **settings}
    metastore = Metastore(home())
    uri = named_metastore(settings.get(_METASTORE)) or metastore.acquire(os.getpid())
    return {"spark.sql.warehouse.dir": str(metastore.warehouse), **of_bundle(), **settings, _METASTORE: uri}


def of_bundle() -> dict[str, str]:
    """The settings that Apache Hudi's bundle needs, where the environment names one."""
    bundle = os.environ.get(HUDI_BUNDLE)
    return dict(session_settings(bundle)) if bundle else {}


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
