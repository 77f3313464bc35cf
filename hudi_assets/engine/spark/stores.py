"""Files on a store as Spark has them: by Hadoop's name, and by Hadoop's own S3A where Spark reads Parquet itself.

The engine's tasks read by the engine's storage, on workers too, and need none of this. Spark's Parquet reader, and so
the read-optimized view in a catalog, needs hadoop-aws on Spark's class path.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from hudi_assets.engine.errors import EnvironmentProblem
from hudi_assets.engine.spark.capabilities import is_connect
from hudi_assets.engine.storage import aws

log = logging.getLogger(__name__)
_S3A: Final = "s3a://"
_PROVIDER: Final = "fs.s3a.aws.credentials.provider"
_STATED: Final = (
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.path.style.access",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    _PROVIDER,
)
_LACKING: Final = {  # Hadoop's name of a store → what a Spark without it needs
    "s3a": "spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}",
    "abfs": "spark.jars.packages=org.apache.hadoop:hadoop-azure:{version}",
    "abfss": "spark.jars.packages=org.apache.hadoop:hadoop-azure:{version}",
    "gs": "Google's gcs-connector among its jars",
}
# Spark context → a store → what it lacks for it
_MISSING: WeakKeyDictionary[Any, dict[str, str | None]] = WeakKeyDictionary()


def spark_name(uri: str) -> str:
    """The name under which Spark knows a file: to Hadoop a bucket is `s3a://`, and it has no `s3://`."""
    return _S3A + uri.removeprefix("s3://") if uri.startswith("s3://") else uri


def check_reads_by_itself(session: Any, uri: str) -> None:
    """Ask whether Spark can read a table's base files without the engine, as a view in a catalog needs it.

    Args:
        session: A SparkSession.
        uri: The table's path.

    Raises:
        EnvironmentProblem: It cannot. The error has the line to add.
    """
    lacking = why_not_by_itself(session, uri)
    if lacking is not None:
        raise EnvironmentProblem(
            f"This Spark has no file system for {_scheme(uri)}://.", where=uri, hint=f"Start it with {lacking}."
        )


def why_not_by_itself(session: Any, uri: str) -> str | None:
    """The setting that Spark lacks to read a file without the engine; None where nothing is missing.

    It is said once for each session, at WARNING. Behind Spark Connect nobody can tell.
    """
    scheme = _scheme(uri)
    if scheme not in _LACKING or is_connect(session):
        return None
    context = session.sparkContext
    missing = _MISSING.setdefault(context, {})
    if scheme not in missing:
        missing[scheme] = _missing_package(context, scheme)
        if missing[scheme] is not None:
            log.warning(
                "This Spark has no file system for %s://: base files are read by the engine's tasks, which is slower, "
                "and no view in a catalog can be read. Start it with %s.",
                scheme,
                missing[scheme],
            )
    return missing[scheme]


def _scheme(uri: str) -> str:
    return spark_name(uri).partition("://")[0]


def _missing_package(context: Any, scheme: str) -> str | None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    hadoop = context._jvm.org.apache.hadoop
    try:
        hadoop.fs.FileSystem.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
        return None
    except (Py4JError, PySparkException):
        return _LACKING[scheme].format(version=hadoop.util.VersionInfo.getVersion())


def tell_of_store(session: Any, environment: Mapping[str, str] = os.environ) -> None:
    """Let a session that the engine has started look for S3 where the environment says, as the engine's storage does.

    Endpoint, region, and the order in which AWS's own library looks for credentials. None of it is a secret. A session
    in which somebody has said any of it, by Spark's settings or Hadoop's files, is left alone.

    Args:
        session: A SparkSession.
        environment: Default: this process's.
    """
    if is_connect(session):
        return
    context = session.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    if any(_is_stated(configuration, name) for name in _STATED):
        return
    version = str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    for name, value in s3a_settings(environment, version).items():
        configuration.set(name, value)


def _is_stated(configuration: Any, name: str) -> bool:
    """True where it comes from elsewhere than from Hadoop's own defaults."""
    sources = configuration.getPropertySources(name)
    return sources is not None and list(sources)[-1] != "core-default.xml"


def s3a_settings(environment: Mapping[str, str], hadoop: str) -> dict[str, str]:
    """What S3A of a version of Hadoop's is told for an environment. Nothing where that says nothing of AWS."""
    endpoint, region = aws.endpoint_of(environment), aws.region_of(environment)
    settings = {}
    if endpoint:
        settings["fs.s3a.endpoint"] = endpoint
        settings["fs.s3a.path.style.access"] = "true"
        settings["fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region:
        settings["fs.s3a.endpoint.region"] = region
    if environment.get("AWS_SKIP_SIGNATURE", "").lower() == "true":
        settings[_PROVIDER] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    elif any(name.startswith("AWS_") for name in environment):
        settings[_PROVIDER] = _default_chain(hadoop)
    return settings


def _default_chain(hadoop: str) -> str:
    """AWS's own order: environment, web identity, profile, container, machine. Hadoop 3.4 has its new library."""
    major, minor = (int(part) for part in hadoop.split(".")[:2])
    if (major, minor) < (3, 4):
        return "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"
    return "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
