"""The home directory's metastore asks nobody who he is: so other machines do not reach it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.catalog import hive
from tests.catalog.conftest import Served

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
_LISTENS = "0A"
# 127.0.0.1 as the kernel writes it: of IPv4, and mapped into IPv6.
_LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


def _listening_at(port: int) -> set[str]:
    found = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text("ascii").splitlines()[1:] if table.exists() else ():
            address, state = line.split()[1], line.split()[3]
            if state == _LISTENS and address.endswith(f":{port:04X}"):
                found.add(address.split(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux alone tells who listens where in a file")
def test_the_metastore_listens_on_the_loopback_alone(served: Served) -> None:
    found = _listening_at(int(served.uri.rsplit(":", 1)[1]))
    assert found
    assert found <= _LOOPBACK
    for _ in range(3):  # a connection's end leaves the server as it was
        with hive.connect(served.uri) as opened:
            assert opened.entry("default", "nothing") is None
