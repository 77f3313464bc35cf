"""Which of Hudi's locks the table's writers share, by hoodie.write.lock.provider.

The file-system lock is matched (`lock.HudiLock`), on a store of objects the storage-based one (`lease`). The others
are refused by name: sharing a table with a writer whose lock nobody else takes would be no lock at all.
"""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.table.settings.config import TableConfig

LOCK_PROVIDER: Final = "hoodie.write.lock.provider"
FILE_SYSTEM: Final = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
STORAGE_BASED: Final = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"

# The last part of a provider's class name → why it cannot be shared from here.
_REFUSED: Final = {
    # It finds its client by the path's scheme: s3, s3a, gs, …; for a local path it raises (1.2.0).
    "StorageBasedLockProvider": "Apache Hudi itself has no storage-based lock on a local file system",
    "InProcessLockProvider": "it locks within one Java process only",
    "NoopLockProvider": "it locks nothing",
    "ZookeeperBasedLockProvider": "locks in ZooKeeper are not supported",
    "ZookeeperBasedImplicitBasePathLockProvider": "locks in ZooKeeper are not supported",
    "DynamoDBBasedLockProvider": "locks in DynamoDB are not supported",
    "DynamoDBBasedImplicitPartitionKeyLockProvider": "locks in DynamoDB are not supported",
    "HiveMetastoreBasedLockProvider": "locks in the Hive metastore are not supported",
}
_REFUSED_ON_A_STORE: Final = {
    "FileSystemBasedLockProvider": "on a store of objects two writers can both create its file",
}


def check_lock_provider(config: TableConfig, where: str, *, on_a_store: bool = False) -> None:
    """Raise `UnsupportedTable` where the settings name a lock that cannot be taken from here.

    None named: the file-system lock, since that is what `hudi_assets.writers=locked` asks every writer for; on a store
    of objects the storage-based one, the only one of Hudi's that is a file there.
    """
    shared = STORAGE_BASED if on_a_store else FILE_SYSTEM
    provider = (config.properties.get(LOCK_PROVIDER) or shared).strip()
    if provider == shared:
        return
    refused = {**_REFUSED, **(_REFUSED_ON_A_STORE if on_a_store else {})}
    why = refused.get(provider.rpartition(".")[2], "it is not known here")
    raise UnsupportedTable(
        f"{LOCK_PROVIDER} is {provider}: {why}.",
        where=where,
        hint=f"Give every writer {shared}, or stop them while this runs (hudi_assets.writers=stopped).",
    )
