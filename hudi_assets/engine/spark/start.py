"""Starts a Spark session on this machine, or says in words why it did not start."""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_assets.engine.errors import EnvironmentProblem, HudiAssetsError
from hudi_assets.engine.spark.connect import check_no_connected_session
from hudi_assets.engine.spark.errors import java_cause
from hudi_assets.engine.spark.java_runtime import check_java, check_pyspark
from hudi_assets.engine.spark.stores import tell_of_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Driver and workers are on this machine: its name need not resolve, and nobody else need reach them.
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
    "spark.log.level": "ERROR",
    # Results come back through a socket file: any process of the machine could connect to a TCP port first.
    "spark.python.unix.domain.socket.enabled": "true",
}


def local_session(
    app_name: str = "hudi-assets",
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
    *,
    quiet: bool = False,
) -> SparkSession:
    """A Spark session on this machine whose workers use this Python.

    On a local master it is this environment's Spark and Python, whatever SPARK_HOME and PYSPARK_PYTHON say.

    Args:
        app_name: Spark's name for the application.
        master: Spark's master: `local[…]`, or a cluster's address.
        config: Settings of Spark's over the defaults.
        quiet: Keep off the terminal what Spark's Java process prints, for as long as it lives.

    Raises:
        EnvironmentProblem: PySpark or Java is missing, or this process has a session of Spark Connect. With `quiet`,
            also for all else that keeps Spark from starting.
    """
    check_pyspark()
    check_java()
    check_no_connected_session()
    import pyspark
    from pyspark.sql import SparkSession

    more = dict(config or {})
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        own = Path(pyspark.__file__).parent
        if (own / "jars").is_dir():  # else PySpark is part of a Spark that was installed by itself
            os.environ["SPARK_HOME"] = str(own)
        more = _LOCAL | more
    builder = SparkSession.Builder().appName(app_name).master(master)
    for key, value in {**_DEFAULTS, **more}.items():
        builder = builder.config(key, value)
    session = _quietly(builder.getOrCreate) if quiet else builder.getOrCreate()
    tell_of_store(session)
    return session


def _quietly(start: Callable[[], SparkSession]) -> SparkSession:
    with tempfile.TemporaryFile() as log, _printed_to(log.fileno()):
        try:
            return start()
        except HudiAssetsError:
            raise
        except Exception as error:
            log.seek(0)
            said = log.read().decode(errors="replace")
            raise not_started(error, java_cause(said) or java_cause(str(error)), said) from error


def not_started(error: Exception, cause: str | None, said: str) -> EnvironmentProblem:
    """Why Spark did not start. `cause`: the innermost in Java. `said`: what its process printed."""
    what = cause or str(error).strip().partition("\n")[0]
    java = f"JAVA_HOME={os.environ.get('JAVA_HOME', '')}"
    if "Module jdk.incubator.vector not found" in said:
        hint = "This Java lacks a module that Spark 4 asks for: install a whole Java runtime."
    elif not _is_known(os.getuid()):
        java = f"user id {os.getuid()}"
        hint = (
            "This user has no entry in the system's list of users, and Java needs one: add it (useradd, /etc/passwd)."
        )
    elif cause is not None and cause.startswith("UnknownHostException"):
        java = ""
        hint = "Spark asks for this machine's own name: put it into /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1."
    elif cause is not None:
        java, hint = "", "Mend that, or set what Spark goes by: SPARK_LOCAL_DIRS, TMPDIR, SPARK_CONF_DIR, JAVA_HOME."
    else:
        lines = [line for line in said.splitlines() if line and not line.startswith(("WARNING", "\tat "))]
        hint = "It said: " + " / ".join(lines[-3:]) if lines else "Run this Java by itself: it ends at once."
    return EnvironmentProblem(f"Spark did not start: {what}", where=java or None, hint=hint)


def _is_known(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


@contextmanager
def _printed_to(log: int) -> Iterator[None]:
    """A process that starts meanwhile inherits this file for good: on the terminal stand only our own lines."""
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = {fd: os.dup(fd) for fd in (1, 2)}
    try:
        for fd in terminal:
            os.dup2(log, fd)
        yield
    finally:
        for fd, kept in terminal.items():
            os.dup2(kept, fd)
            os.close(kept)
