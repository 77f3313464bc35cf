"""The lock that Hudi's writers and we share (`SharedLock`), by hoodie.write.lock.provider.

On a file system, HDFS too, that is Hudi's own there (`file_lock`) or one in ZooKeeper (`zookeeper`), on a store of
objects the storage-based one (`lease`). The others are refused by name: sharing a table with a writer whose lock nobody
else takes would be no lock at all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.transaction.file_lock import FileSystemLock
from hudi_assets.engine.transaction.zookeeper import ZooKeeperLock

LOCK_PROVIDER: Final = "hoodie.write.lock.provider"
_PACKAGE: Final = "org.apache.hudi.client.transaction.lock"
FILE_SYSTEM: Final = f"{_PACKAGE}.FileSystemBasedLockProvider"
STORAGE_BASED: Final = f"{_PACKAGE}.StorageBasedLockProvider"
ZOOKEEPER: Final = f"{_PACKAGE}.ZookeeperBasedLockProvider"
ZOOKEEPER_IMPLICIT: Final = f"{_PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider"

_NO_DYNAMODB: Final = "locks in DynamoDB are not supported"
# The last part of a provider's class name → why it cannot be shared from here.
_REFUSED: Final = {
    # It finds its client by the path's scheme: s3, s3a, gs, …; for a local path it raises (1.2.0).
    "StorageBasedLockProvider": "Apache Hudi itself has no storage-based lock on a local file system or in HDFS",
    "InProcessLockProvider": "it locks within one Java process only",
    "NoopLockProvider": "it locks nothing",
    "DynamoDBBasedLockProvider": _NO_DYNAMODB,
    "DynamoDBBasedImplicitPartitionKeyLockProvider": _NO_DYNAMODB,
    "HiveMetastoreBasedLockProvider": "locks in the Hive metastore are not supported",
}
_NOT_ON_A_STORE: Final = "beside a store of objects locks in ZooKeeper are not supported"
_REFUSED_ON_A_STORE: Final = {
    **_REFUSED,
    "FileSystemBasedLockProvider": "on a store of objects two writers can both create its file",
    "ZookeeperBasedLockProvider": _NOT_ON_A_STORE,
    "ZookeeperBasedImplicitBasePathLockProvider": _NOT_ON_A_STORE,
}


class SharedLock(Protocol):
    """A lock that every writer of a table takes, whichever engine it is."""

    def held(self, wait_s: float, action: str) -> AbstractContextManager[Callable[[], None]]:
        """Hold it; `Conflict`, naming the holder, where another one does for longer than `wait_s` seconds.

        Inside it, what is given raises `Conflict` where the lock is no longer ours: asked right before publishing.
        """


def shared_lock(storage: Storage, config: TableConfig) -> SharedLock:
    """The lock that the settings name; `UnsupportedTable` for one that cannot be taken from here.

    None named: the file-system lock, since that is what `hudi_assets.writers=locked` asks every writer for.
    """
    provider = _provider(config) or FILE_SYSTEM
    if provider == FILE_SYSTEM:
        return FileSystemLock.of(storage, config)
    if provider in (ZOOKEEPER, ZOOKEEPER_IMPLICIT):
        return ZooKeeperLock.of(config, storage.base, implicit=provider == ZOOKEEPER_IMPLICIT)
    raise _unsupported(provider, _REFUSED, f"{FILE_SYSTEM} or {ZOOKEEPER}", storage.base)


def check_lease_is_shared(config: TableConfig, where: str) -> None:
    """Raise `UnsupportedTable` unless the lease on a store of objects is the lock that the settings name.

    None named: it is, since the storage-based one is the only one of Hudi's that is a file there.
    """
    provider = _provider(config)
    if provider not in ("", STORAGE_BASED):
        raise _unsupported(provider, _REFUSED_ON_A_STORE, STORAGE_BASED, where)


def _provider(config: TableConfig) -> str:
    return (config.properties.get(LOCK_PROVIDER) or "").strip()


def _unsupported(provider: str, reasons: dict[str, str], shared: str, where: str) -> UnsupportedTable:
    why = reasons.get(provider.rpartition(".")[2], "it is not known here")
    return UnsupportedTable(
        f"{LOCK_PROVIDER} is {provider}: {why}.",
        where=where,
        hint=f"Give every writer {shared}, or stop them while this runs (hudi_assets.writers=stopped).",
    )
