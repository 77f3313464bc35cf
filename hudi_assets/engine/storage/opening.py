"""Which storage a path is on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlparse

from hudi_assets.engine.errors import (
    EnvironmentProblem,
    InvalidInput,
    UnsupportedTable,
)
from hudi_assets.engine.storage import aws
from hudi_assets.engine.storage.interface import Storage
from hudi_assets.engine.storage.local import LocalStorage


def open_storage(path: str, options: Mapping[str, str] | None = None) -> Storage:
    """The storage under a table's base path. Whether a table is there is not looked at.

    Args:
        path: An absolute or relative path, a `file:` URI, `s3://BUCKET/PATH` (`s3a://`), `hdfs://HOST:PORT/PATH`;
            for looking alone `gs://BUCKET/PATH` and `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH` (`abfs://`).
        options: For S3, all optional: `endpoint`, `region`, `profile`, `virtual_hosted` ("true"), `access_key_id`,
            `secret_access_key`, `session_token`. Default: the environment's. The others take none.

    Raises:
        UnsupportedTable: The path's scheme is another store's, as `ftp://`.
        InvalidInput: The path or an option is none, or options are given for a local path.
        EnvironmentProblem: The package is not installed that the store needs: obstore for S3, hdfs-native for HDFS.
    """
    text = str(path)
    scheme = urlparse(text).scheme
    if scheme in aws.SCHEMES:
        return _open_s3(text, options or {})
    if scheme == "hdfs":
        return _open_hdfs(text, options or {})
    if scheme in ("gs", "abfs", "abfss"):
        return _open_for_looking(text, options or {})
    if scheme and len(scheme) > 1:
        if scheme != "file":
            raise UnsupportedTable(
                f"Storage {scheme}:// is not supported yet.", where=text, hint="Use a local path, s3:// or hdfs://."
            )
        text = unquote(urlparse(text).path)
    if options:
        raise InvalidInput(
            f"A local table takes no storage options (got {', '.join(sorted(options))}).",
            where=text,
            hint="Leave them out.",
        )
    if not text.strip():
        raise InvalidInput("The table's path is empty.", hint="Give the table's base path.")
    return LocalStorage(os.path.abspath(text))


def _open_s3(path: str, options: Mapping[str, str]) -> Storage:
    try:
        from hudi_assets.engine.storage.s3 import open_s3
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        hint = "pip install 'hudi-assets[s3]'"
        raise EnvironmentProblem("Tables on S3 need the package obstore.", hint=hint) from error
    return open_s3(path, options)


def _open_for_looking(path: str, options: Mapping[str, str]) -> Storage:
    try:
        from hudi_assets.engine.storage.azure import open_azure
        from hudi_assets.engine.storage.gcs import open_gcs
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        hint = "pip install 'hudi-assets[s3]'"
        raise EnvironmentProblem("Tables in GCS and Azure need the package obstore.", hint=hint) from error
    return open_gcs(path, options) if path.startswith("gs:") else open_azure(path, options)


def _open_hdfs(path: str, options: Mapping[str, str]) -> Storage:
    try:
        from hudi_assets.engine.storage.hdfs import open_hdfs
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "hdfs_native":
            raise
        hint = "pip install 'hudi-assets[hdfs]'"
        raise EnvironmentProblem("Tables in HDFS need the package hdfs-native.", hint=hint) from error
    return open_hdfs(path, options)


def folder_storage(path: str) -> Storage:
    """A local folder that is no table, as Hudi's lock may have one: nothing but the named files is left in it."""
    return LocalStorage(os.path.abspath(path), scratch="")
