"""Which metastore is meant: one that is named, by a setting or the environment, or the one in the home directory."""

from __future__ import annotations

import os

from hudi_assets.catalog.metastore import Metastore, MetastoreError
from hudi_assets.engine import EnvironmentProblem
from hudi_assets.home import home

METASTORE = "HUDI_ASSETS_METASTORE"
DATABASE = "HUDI_ASSETS_DATABASE"


def named_uri(uri: str | None = None) -> str | None:
    """The address that a setting or the environment gives; None where neither does."""
    return uri or os.environ.get(METASTORE) or None


def home_uri() -> str:
    """The address of the metastore in the home directory, started for this process where it does not run."""
    try:
        return Metastore(home()).acquire(os.getpid())
    except MetastoreError as error:
        raise EnvironmentProblem(
            str(error), hint=f"Or name another metastore: --metastore thrift://host:port, {METASTORE}, `uri`."
        ) from error


def has_home_catalog() -> bool:
    """True where something was published there before."""
    return Metastore(home()).database.exists()
