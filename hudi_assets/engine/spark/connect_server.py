"""A Spark of this process that serves sessions of Spark Connect, on the loopback address alone.

Spark's own plug-in does it, which `SparkSession.builder.remote("local")` uses too. Its Java process ends with this one,
however that ends. What is asked of the server's sessions is in no public class of Spark's: it was tried with PySpark
4.3.0.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hudi_assets.engine.errors import EnvironmentProblem
from hudi_assets.engine.spark.connect import LOOPBACK, USER, check_client
from hudi_assets.engine.spark.java_runtime import check_java
from hudi_assets.engine.spark.start import local_session

_TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_CHECKS_TOKENS: Final = "org.apache.spark.sql.connect.service.PreSharedKeyAuthenticationInterceptor"
_ONLY_A_CLIENTS: Final = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_SERVING: Final = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": LOOPBACK,
    "spark.connect.grpc.binding.port": "0",  # any that is free
    # A session lasts as long as its client's process, and whoever started the server ends it then.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    # With it each session's first task starts a Python of its own, and imports all anew: 4 s.
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
}
# Spark's default pool takes jobs one after the other: a small run would wait for all tasks of a large one.
_POOLS: Final = """<?xml version="1.0"?>
<allocations>
  <pool name="default"><schedulingMode>FAIR</schedulingMode></pool>
</allocations>
"""


def check_can_serve() -> None:
    """Raise `EnvironmentProblem` unless a server can be started here, and sessions of it made."""
    check_client()
    check_java()
    import pyspark

    if not list((Path(pyspark.__file__).parent / "jars").glob("spark-connect_*.jar")):
        raise EnvironmentProblem(
            f"This PySpark {pyspark.__version__} has no server of Spark Connect with it.",
            hint="Install PySpark 4 (pip install 'pyspark[connect]>=4'), or share no Spark.",
        )


class ConnectServer:
    """The server of this process. A process has one."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
        self._service = getattr(service, "MODULE$")
        self.port = int(self._service.localPort())

    @classmethod
    def start(cls, settings: Mapping[str, str], token: str, directory: Path) -> ConnectServer:
        """Start Spark and the server.

        Args:
            settings: Spark's, as a session of one's own would have them.
            token: What clients are known by.
            directory: Of the server's own, for files that Spark reads.

        Raises:
            EnvironmentProblem: This Spark's server knows no token: any user of the machine could run code there.
        """
        os.environ[_TOKEN] = token  # not among the settings: each session may read those
        for name in _ONLY_A_CLIENTS:
            os.environ.pop(name, None)
        pools = directory / "pools.xml"
        pools.write_text(_POOLS, "utf-8")
        fair = {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": pools.as_uri()}
        more = fair | dict(settings) | _SERVING
        spark: Any = local_session("hudi-assets", more.get("spark.master", "local[*]"), more)
        if not _knows_tokens(spark._jvm):
            spark.stop()
            raise EnvironmentProblem(
                f"The Connect server of Spark {spark.version} knows no token.",
                hint="Install PySpark 4.3, or share no Spark.",
            )
        _log_less(spark._jvm)
        return cls(spark)

    def is_alive(self) -> bool:
        """False once Spark's Java process has ended, its Spark has stopped, or nothing listens there any more."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        context = self._spark.sparkContext
        if context._gateway.proc.poll() is not None:
            return False
        try:
            return not context._jsc.sc().isStopped() and not _is_refused(self.port)
        except Py4JError:
            return False

    def close(self, session_id: str) -> None:
        """Stop what a session does, and forget it. Nothing happens where it is not known."""
        key = self._spark._jvm.org.apache.spark.sql.connect.service.SessionKey(USER, session_id)
        self._service.sessionManager().closeSession(key, False)

    def forget_shared(self) -> None:
        """Drop what sessions left that is no session's own: cached data and global temporary views."""
        self._spark.catalog.clearCache()
        self._spark._jsparkSession.sharedState().globalTempViewManager().clear()

    def stop(self) -> None:
        self._spark.stop()


def _log_less(jvm: Any) -> None:
    """What fails is told to its client; here it would be 6 KiB at the end of each session."""
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.connect.utils.ErrorUtils", log4j.Level.OFF)


def _is_refused(port: int) -> bool:
    """True where nobody listens. Who does not answer in time may have much to do, and we may have no file to ask by."""
    try:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((LOOPBACK, port)) == errno.ECONNREFUSED
    except OSError:
        return False


def _knows_tokens(jvm: Any) -> bool:
    from py4j.protocol import Py4JError

    try:
        jvm.java.lang.Class.forName(_CHECKS_TOKENS)
    except Py4JError:
        return False
    return True
