"""Breakages of the locks that Hudi's writers and we share."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ZOOKEEPER = "hudi_assets/engine/transaction/zookeeper.py"
_PROVIDERS = "hudi_assets/engine/transaction/lock_providers.py"
ZOOKEEPER = ("tests/unit/test_zookeeper.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "our lock in ZooKeeper has kazoo's own name, which Curator overlooks",
        _ZOOKEEPER,
        "        _NODE_NAME = CURATORS\n",
        "        pass\n",
        ZOOKEEPER,
    ),
    Breakage("Curator's locks are overlooked", _ZOOKEEPER, ", extra_lock_patterns=[CURATORS]", "", ZOOKEEPER),
    Breakage(
        "a lock in ZooKeeper is never lost", _ZOOKEEPER, "                raise SessionExpiredError\n", "", ZOOKEEPER
    ),
    Breakage(
        "a lock in ZooKeeper is ours while nobody answers",
        _ZOOKEEPER,
        "            except self._client.handler.timeout_exception:\n                break\n",
        "            except self._client.handler.timeout_exception:\n                return\n",
        ZOOKEEPER,
    ),
    Breakage(
        "an answer that was lost loses the lock",
        _ZOOKEEPER,
        "                time.sleep(_POLL_S)\n",
        "                break\n",
        ZOOKEEPER,
    ),
    Breakage(
        "a server that is behind says whose the lock is",
        _ZOOKEEPER,
        "                self._client.sync_async(self._lock.path).get(timeout=left)\n",
        "",
        ZOOKEEPER,
    ),
    Breakage(
        "the wait for a lock in ZooKeeper begins anew",
        _ZOOKEEPER,
        "with _until(wait_s, mutex.cancel):",
        "if True:",
        ZOOKEEPER,
    ),
    Breakage(
        "a server that falls silent is waited for without end",
        _ZOOKEEPER,
        "with _until(wait_s + self._lock.session_ms / 1000, self._client.stop):",
        "if True:",
        ZOOKEEPER,
    ),
    Breakage(
        "the loser hears the last in the row",
        _ZOOKEEPER,
        "sorted(row, key=_number)",
        "sorted(row, key=_number, reverse=True)",
        ZOOKEEPER,
    ),
    Breakage(
        "a port that Hudi does not read is passed over",
        _ZOOKEEPER,
        "if port != _DEFAULT_PORT and not _PORT",
        "if False and not _PORT",
        ZOOKEEPER,
    ),
    Breakage(
        "what is no path in ZooKeeper is mended",
        _ZOOKEEPER,
        '    path = f"{base}/{key}"\n',
        '    path = "/" + "/".join(part for part in f"{base}/{key}".split("/") if part)\n',
        ZOOKEEPER,
    ),
    Breakage("the implicit path is hashed in small letters", _ZOOKEEPER, ":016X}", ":016x}", ZOOKEEPER),
    Breakage(
        "the implicit path is that of ours",
        _ZOOKEEPER,
        'named = config.properties.get(TABLES_BASE_PATH) or ""',
        "named = config.properties.get(TABLES_BASE_PATH) or where",
        ZOOKEEPER,
    ),
    Breakage(
        "a lock in ZooKeeper is taken as a file",
        _PROVIDERS,
        "    if provider in (ZOOKEEPER, ZOOKEEPER_IMPLICIT):\n",
        "    if provider in (ZOOKEEPER, ZOOKEEPER_IMPLICIT):\n        return FileSystemLock.of(storage, config)\n",
        ZOOKEEPER,
    ),
    Breakage(
        "the check before publishing does not ask Hudi's lock",
        "hudi_assets/engine/transaction/lock.py",
        "            self.shared()\n",
        "            pass\n",
        ZOOKEEPER,
    ),
)
