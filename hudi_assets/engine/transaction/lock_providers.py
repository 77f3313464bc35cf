"""Which of Hudi's locks the table's writers share, by hoodie.write.lock.provider.

The file-system lock is matched (`lock.HudiLock`). The others are refused by name: sharing a table with a writer whose
lock nobody else takes would be no lock at all.
"""

from __future__ import annotations

from typing import Final

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.table.settings.config import TableConfig

LOCK_PROVIDER: Final = "hoodie.write.lock.provider"
FILE_SYSTEM: Final = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"

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


def check_lock_provider(config: TableConfig, where: str) -> None:
    """Raise `UnsupportedTable` where the settings name a lock that cannot be taken from here.

    None named: the file-system lock, since that is what `hudi_assets.writers=locked` asks every writer for.
    """
    provider = (config.properties.get(LOCK_PROVIDER) or FILE_SYSTEM).strip()
    if provider == FILE_SYSTEM:
        return
    why = _REFUSED.get(provider.rpartition(".")[2], "it is not known here")
    raise UnsupportedTable(
        f"{LOCK_PROVIDER} is {provider}: {why}.",
        where=where,
        hint=f"Give every writer {FILE_SYSTEM}, or stop them while this runs (hudi_assets.writers=stopped).",
    )
