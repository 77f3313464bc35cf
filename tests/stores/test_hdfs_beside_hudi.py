"""Apache Hudi 1.2.0 and we on one table in HDFS, in turn. Hudi reaches HDFS by Spark's own Hadoop.

`TEST_HDFS=1 scripts/with-env python -m pytest -m interop tests/stores/test_hdfs_beside_hudi.py`, after
scripts/hdfs-setup and scripts/interop-setup.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_assets.engine import NothingToDo
from scripts.hudi_client import Hudi, InteropMissing
from tests.stores.beside_hudi import Life
from tests.stores.hdfs import Hdfs
from tests.stores.test_hdfs_tables import new_path
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]


@contextmanager
def started(release: str) -> Iterator[Hudi]:
    with pytest.MonkeyPatch.context() as patch:
        if "INTEROP_JAVA_OPTIONS" not in os.environ:
            patch.setenv("INTEROP_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        try:
            hudi = Hudi(release)
        except InteropMissing as missing:
            pytest.skip(str(missing))
        with hudi:
            yield hudi


@pytest.fixture(scope="module")
def hudi() -> Iterator[Hudi]:
    with started("1.2.0") as hudi:
        yield hudi


def test_in_turn(hudi: Hudi, session: LocalSession, hdfs: Hdfs) -> None:
    """Two rounds: Hudi writes, we compact and clean, Hudi reads, we write, Hudi compacts and cleans, we read."""
    life = Life(hudi, session, "9", new_path(hdfs))
    life.hudi_writes(range(12), 0, "bulk_insert")
    for round_ in range(2):
        start = 100 * round_
        life.hudi_writes([0, 1, 2, 20 + round_], start + 10)
        life.hudi_writes([3, 4, 5, 30 + round_], start + 50)
        life.hudi_writes([6 + round_, 0], start + 60, "delete")
        life.hudi_writes([0, 1, 9 - round_], start + 70)
        life.hudi_writes([3, 4], start + 40)  # late, and older than what is there
        life.we_compact(start + 45)
        cleaned: Any = life.table.clean()
        assert isinstance(cleaned, NothingToDo) or cleaned.files, cleaned
        life.agree(f"round {round_}, we compacted and cleaned")
        life.we_write([1, 2, 40 + round_], start + 80)
        life.we_delete([20 + round_], start + 85)
        life.agree(f"round {round_}, we wrote")
        life.hudi_compacts_and_cleans()
        life.agree(f"round {round_}, Hudi compacted and cleaned")
    assert life.table.archive() is not None
    life.agree("at the end")
