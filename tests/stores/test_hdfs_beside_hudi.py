"""Apache Hudi 1.2.0 and we on one table in HDFS, in turn. Hudi reaches HDFS by Spark's own Hadoop.

`TEST_HDFS=1 scripts/with-env python -m pytest -m interop tests/stores/test_hdfs_beside_hudi.py`, after
scripts/hdfs-setup and scripts/interop-setup.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts.hudi_client import Hudi
from tests.stores.beside_hudi import Life, started
from tests.stores.hdfs import Hdfs
from tests.stores.test_hdfs_tables import new_path
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def hudi() -> Iterator[Hudi]:
    with started("1.2.0") as hudi:
        yield hudi


def test_in_turn(hudi: Hudi, session: LocalSession, hdfs: Hdfs) -> None:
    Life(hudi, session, "9", new_path(hdfs)).takes_turns(2)
