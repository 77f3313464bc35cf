"""Breakages of the locks that Hudi's writers and we share."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ZOOKEEPER = "hudi_assets/engine/transaction/zookeeper.py"
_PROVIDERS = "hudi_assets/engine/transaction/lock_providers.py"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "our lock in ZooKeeper has kazoo's own name, which Curator overlooks",
        _ZOOKEEPER,
        "        _NODE_NAME = CURATORS\n",
        "        pass\n",
        ("tests/unit/test_zookeeper.py::test_our_node_has_curators_name_and_says_who_we_are",),
    ),
    Breakage(
        "Curator's locks are overlooked",
        _ZOOKEEPER,
        ", extra_lock_patterns=[CURATORS]",
        "",
        ("tests/unit/test_zookeeper.py::test_the_loser_hears_the_first_in_the_row",),
    ),
    Breakage(
        "a lock in ZooKeeper is never lost",
        _ZOOKEEPER,
        "                raise SessionExpiredError\n",
        "",
        ("tests/unit/test_zookeeper.py::test_a_lock_whose_node_is_gone_is_lost",),
    ),
    Breakage(
        "a lock in ZooKeeper is ours while nobody answers",
        _ZOOKEEPER,
        "            except self._client.handler.timeout_exception:\n                break\n",
        "            except self._client.handler.timeout_exception:\n                return\n",
        ("tests/unit/test_zookeeper.py::test_without_an_answer_the_lock_counts_as_lost",),
    ),
    Breakage(
        "an answer that was lost loses the lock",
        _ZOOKEEPER,
        "                time.sleep(_POLL_S)\n",
        "                break\n",
        ("tests/unit/test_zookeeper.py::test_an_answer_that_was_lost_is_asked_for_again",),
    ),
    Breakage(
        "a server that is behind says whose the lock is",
        _ZOOKEEPER,
        "                self._client.sync_async(self._lock.path).get(timeout=left)\n",
        "",
        ("tests/unit/test_zookeeper.py::test_the_check_asks_a_server_that_knows_the_latest",),
    ),
    Breakage(
        "the wait for a lock in ZooKeeper begins anew",
        _ZOOKEEPER,
        "with _until(wait_s, mutex.cancel):",
        "if True:",
        ("tests/unit/test_zookeeper.py::test_the_wait_is_one_however_many_go_before_us",),
    ),
    Breakage(
        "a server that falls silent is waited for without end",
        _ZOOKEEPER,
        "with _until(wait_s + self._lock.session_ms / 1000, self._client.stop):",
        "if True:",
        (
            "tests/unit/test_zookeeper.py::test_a_server_that_falls_silent_while_we_wait_is_waited_for_no_longer_than_a_session",
        ),
    ),
    Breakage(
        "the loser hears the last in the row",
        _ZOOKEEPER,
        "sorted(row, key=_number)",
        "sorted(row, key=_number, reverse=True)",
        ("tests/unit/test_zookeeper.py::test_the_loser_hears_the_first_in_the_row",),
    ),
    Breakage(
        "a port that Hudi does not read is passed over",
        _ZOOKEEPER,
        "if port != _DEFAULT_PORT and not _PORT",
        "if False and not _PORT",
        ("tests/unit/test_zookeeper.py::test_settings_that_name_no_lock_are_refused",),
    ),
    Breakage(
        "what is no path in ZooKeeper is mended",
        _ZOOKEEPER,
        '    path = f"{base}/{key}"\n',
        '    path = "/" + "/".join(part for part in f"{base}/{key}".split("/") if part)\n',
        ("tests/unit/test_zookeeper.py::test_settings_that_name_no_lock_are_refused",),
    ),
    Breakage(
        "the implicit path is hashed in small letters",
        _ZOOKEEPER,
        ":016X}",
        ":016x}",
        ("tests/unit/test_zookeeper.py::test_the_implicit_lock_lies_at_the_hash_of_the_path_as_it_is_written",),
    ),
    Breakage(
        "the implicit path is that of ours",
        _ZOOKEEPER,
        'named = config.properties.get(TABLES_BASE_PATH) or ""',
        "named = config.properties.get(TABLES_BASE_PATH) or where",
        ("tests/unit/test_zookeeper.py::test_the_implicit_lock_lies_at_the_hash_of_the_path_as_it_is_written",),
    ),
    Breakage(
        "a lock in ZooKeeper is taken as a file",
        _PROVIDERS,
        "    if provider in (ZOOKEEPER, ZOOKEEPER_IMPLICIT):\n",
        "    if provider in (ZOOKEEPER, ZOOKEEPER_IMPLICIT):\n        return FileSystemLock.of(storage, config)\n",
        ("tests/unit/test_zookeeper.py::test_hudis_settings_name_the_lock",),
    ),
    Breakage(
        "the check before publishing does not ask Hudi's lock",
        "hudi_assets/engine/transaction/lock.py",
        "            self.shared()\n",
        "            pass\n",
        ("tests/unit/test_zookeeper.py::test_the_write_lock_asks_this_one_before_publishing",),
    ),
)
