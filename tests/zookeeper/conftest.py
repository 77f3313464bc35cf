"""One ZooKeeper for all tests of this folder; each test has a path of its own in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.zookeeper.servers import ZooKeeper, zookeeper


@pytest.fixture(scope="session")
def server() -> Iterator[ZooKeeper]:
    with zookeeper() as running:
        yield running
