"""Which lock in ZooKeeper the settings name, what is refused, and what the lock does where the server fails."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, NoAuthError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, EnvironmentProblem, InvalidInput, LockLost
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER, ZOOKEEPER, ZOOKEEPER_IMPLICIT, shared_lock
from hudi_assets.engine.transaction.zookeeper import (
    BASE_PATH,
    CONNECTION,
    CURATORS,
    LOCK_KEY,
    PORT,
    SESSION,
    TABLES_BASE_PATH,
    URL,
    ZooKeeperLock,
)
from tests.races.player import create
from tests.unit.fake_zookeeper import FakeClient, Tree, goes_away

NAMED = {LOCK_PROVIDER: ZOOKEEPER, URL: "zk1:2181,zk2:2181", BASE_PATH: "/hudi/locks"}
LOCK = ZooKeeperLock("zk:2181", "/hudi/locks/t", 300, 1_000, "a table")


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return create(tmp_path / "t")


def named(table: HudiTable, **settings: str) -> ZooKeeperLock:
    given = {key: value for key, value in {**NAMED, **settings}.items() if value}
    config = HudiTable.open(table.path, settings={WRITERS: "locked", **given}).config
    found = shared_lock(LocalStorage(table.path), config)
    assert isinstance(found, ZooKeeperLock)
    return found


def test_hudis_settings_name_the_lock(table: HudiTable) -> None:
    assert named(table) == ZooKeeperLock("zk1:2181,zk2:2181", "/hudi/locks/t", 60_000, 15_000, table.path)
    other = named(table, **{LOCK_KEY: "other", SESSION: "5000", CONNECTION: "700", URL: "zk/hudi"})
    assert other == ZooKeeperLock("zk/hudi", "/hudi/locks/other", 5_000, 700, table.path)


def test_the_implicit_lock_lies_at_the_hash_of_the_path_as_it_is_written(table: HudiTable) -> None:
    implicit = {LOCK_PROVIDER: ZOOKEEPER_IMPLICIT, BASE_PATH: "/elsewhere", LOCK_KEY: "elsewhere"}
    assert named(table, **implicit, **{TABLES_BASE_PATH: "/lake/t"}).path == "/tmp/DAAEB82EEC27790E/lock_key"
    with pytest.raises(InvalidInput, match=TABLES_BASE_PATH):
        named(table, **implicit)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({URL: ""}, f"needs {URL}"),
        ({BASE_PATH: ""}, f"needs {BASE_PATH}"),
        ({BASE_PATH: "hudi/locks"}, "no path"),
        ({BASE_PATH: "/hudi/locks/"}, "no path"),
        ({BASE_PATH: "/hudi/../locks"}, "no path"),
        ({LOCK_KEY: "a\0b"}, "no path"),
        ({SESSION: "soon"}, SESSION),
        ({CONNECTION: "0"}, CONNECTION),
        ({URL: "zk1,zk2", PORT: "2182"}, "which Hudi does not read"),
        ({URL: "zk1,zk2:2182", PORT: "70000"}, PORT),
    ],
)
def test_settings_that_name_no_lock_are_refused(table: HudiTable, settings: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        named(table, **settings)


@pytest.mark.parametrize("url", ["zk1:2182,zk2:2182", "zk1:2182/hudi"])
def test_a_port_beside_those_of_the_servers_says_nothing(table: HudiTable, url: str) -> None:
    assert named(table, **{URL: url, PORT: "2182"}).hosts == url
    assert named(table, **{URL: "zk1", PORT: "2181"}).hosts == "zk1"


def test_a_url_of_no_servers_is_refused(table: HudiTable) -> None:
    lock = named(table, **{URL: "zk1:port"})
    with pytest.raises(InvalidInput, match="zk1:port"), lock.held(0, "works"):
        pass


def test_without_kazoo_the_error_says_what_to_install(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'hudi-assets\[zookeeper\]'"), LOCK.held(0, "works"):
        pass


# -- on a server of the tests' own --------------------------------------------------------------------


@pytest.fixture
def tree() -> Tree:
    return Tree()


@pytest.fixture
def client(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The session of our lock."""
    made = FakeClient(tree)

    @contextmanager
    def session(lock: ZooKeeperLock) -> Iterator[FakeClient]:
        yield made

    monkeypatch.setattr(ZooKeeperLock, "_session", session)
    return made


def curators(tree: Tree, data: bytes = b"10.0.0.7") -> str:
    """A node of Curator's below the lock."""
    return tree.create(f"{LOCK.path}/_c_0a64d65d-f406-4780-aafd-81527d709e7b{CURATORS}", data)


def taken(wait_s: float) -> None:
    with LOCK.held(wait_s, "works"):
        pass


def test_our_node_has_curators_name_and_says_who_we_are(tree: Tree, client: FakeClient) -> None:
    with LOCK.held(1, "cleans"):
        (node,) = tree.nodes
        assert node.startswith("/hudi/locks/t/")
        assert node.rpartition("lock-")[2] == "0000000000"
        said = json.loads(tree.nodes[node])
        assert "hudi-assets cleans" in said["holder"]
        assert said["table"] == "a table"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"10.0.0.7", "10.0.0.7"),
        (b'{"holder": "hudi-assets cleans"}', "hudi-assets cleans"),
        (b'{"application_id": "app-1"}', '{"application_id": "app-1"}'),
        (b"\xff\n" + b"x" * 5_000, "x" * 100),
        (b"", "its node says nothing"),
    ],
)
def test_the_loser_hears_the_first_in_the_row(tree: Tree, client: FakeClient, data: bytes, shown: str) -> None:
    curators(tree, data)
    curators(tree, b"the second")
    tree.nodes[f"{LOCK.path}/no contender"] = b"not one of them"
    with pytest.raises(Conflict) as lost:
        taken(0)
    assert shown in lost.value.what
    assert "since 2023-11-14T22:13:20" in lost.value.what
    assert len(lost.value.what) < 400
    assert len(tree.nodes) == 3  # ours is gone


def test_the_wait_is_one_however_many_go_before_us(tree: Tree, client: FakeClient) -> None:
    for after_s in (3.0, 2.4, 1.8, 0.9):
        goes_away(tree, curators(tree), after_s)
    begun = time.monotonic()
    with pytest.raises(Conflict):
        taken(1.2)
    assert 1.1 < time.monotonic() - begun < 1.7


def test_the_check_asks_a_server_that_knows_the_latest(tree: Tree, client: FakeClient) -> None:
    with LOCK.held(1, "works") as check:
        client.asked.clear()
        check()
        (node,) = tree.nodes
        assert client.asked == [f"sync {LOCK.path}", f"exists {node}"]


def test_a_lock_whose_node_is_gone_is_lost(tree: Tree, client: FakeClient) -> None:
    with LOCK.held(1, "works") as check:
        tree.nodes.clear()
        with pytest.raises(LockLost, match="its session in ZooKeeper has ended") as lost:
            check()
    assert SESSION in str(lost.value)


def test_an_answer_that_was_lost_is_asked_for_again(tree: Tree, client: FakeClient) -> None:
    with LOCK.held(1, "works") as check:
        client.faults = [ConnectionLoss()]
        check()


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([SessionExpiredError()], "its session in ZooKeeper has ended"),
        ([ConnectionLoss() for _ in range(100)], "did not answer for as long as a session lasts"),
        ([NoAuthError()], "NoAuthError"),
        ([KazooTimeoutError()], "did not answer for as long as a session lasts"),
    ],
)
def test_without_an_answer_the_lock_counts_as_lost(
    tree: Tree, client: FakeClient, faults: list[Exception], said: str
) -> None:
    with LOCK.held(1, "works") as check:
        client.faults = faults
        with pytest.raises(LockLost, match=said):
            check()


def test_a_server_that_falls_silent_while_we_wait_is_waited_for_no_longer_than_a_session(
    tree: Tree, client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()

    def silent(*args: Any, **kwargs: Any) -> str:
        assert stopped.wait(5)
        raise ConnectionClosedError

    monkeypatch.setattr(client, "create", silent)
    monkeypatch.setattr(client, "stop", stopped.set)
    with pytest.raises(EnvironmentProblem, match="ConnectionClosedError"):
        taken(0)


def test_a_server_that_refuses_is_named(tree: Tree, client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> str:
        raise NoAuthError

    monkeypatch.setattr(client, "create", refuse)
    with pytest.raises(EnvironmentProblem, match="NoAuthError"):
        taken(0)


def test_the_write_lock_asks_this_one_before_publishing(table: HudiTable, tree: Tree, client: FakeClient) -> None:
    config = HudiTable.open(table.path, settings={WRITERS: "locked", **NAMED}).config
    with write_lock(LocalStorage(table.path), config, wait_s=0) as held:
        held.check()
        tree.nodes.clear()
        with pytest.raises(LockLost):
            held.check()
    assert not (Path(table.path) / ".hoodie/lock").exists()
