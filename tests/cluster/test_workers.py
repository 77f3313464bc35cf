"""Workers that lack the package, or do not see the table, are refused by name before anything is published; and
workers that lack it are sent it, as docs/how-to/cluster.md says.

On a cluster of two workers, of which the second has mounted nothing where one of the tables is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hudi_assets.engine import HudiTable
from tests.cluster.cluster import can_hide, cluster
from tests.cluster.driver import PROJECT
from tests.cluster.tables import DONE, a_table, steps
from tests.connect.server import connect_server
from tests.tables.local_session import LocalSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("COMPACTIONS"), reason="a suite of its own: make test-cluster"),
]
ASKS = {"upsert", "delete", "compact", "snapshot before", "incremental", "snapshot"}


class Cluster(NamedTuple):
    """A master's URL, and the folder that one worker sees empty."""

    url: str
    folder: Path
    hidden: Path


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """On a disk, and not kept: each worker unpacks an environment there."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPARK_LOCAL_DIRS")) as name:
        folder, hidden = Path(name), Path(name, "hidden")
        hidden.mkdir()
        with cluster(folder, hidden=hidden if can_hide(hidden) else None) as url:
            yield Cluster(url, folder, hidden)


def tree(table: HudiTable) -> set[str]:
    return {str(path) for path in Path(table.path).rglob("*") if path.is_file()}


def test_workers_without_the_package_are_refused(running: Cluster, tmp_path: Path, session: LocalSession) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    table = a_table(tmp_path / "t", session)
    before = tree(table)
    python = str(tmp_path / "bare/bin/python")
    found = steps(running.url, table, running.folder, python=python)
    for action in ASKS:
        said = found[action]
        assert "Spark's workers lack hudi-assets (ModuleNotFoundError: No module named 'hudi_assets')" in said
        assert f"host {os.uname().nodename}, {python} (Python 3." in said
        assert f"{python} -m pip install hudi-assets" in said.replace("'", "")
        assert "spark.archives=environment.tar.gz#environment" in said
    assert tree(table) == before


def test_a_worker_that_does_not_see_the_table_is_refused(running: Cluster, session: LocalSession) -> None:
    if not can_hide(running.hidden):
        pytest.skip("this user may start no process with mounts of its own")
    table = a_table(running.hidden / "t", session)
    before = tree(table)
    found = steps(running.url, table, running.folder, f"spark.executorEnv.PYTHONPATH={PROJECT}", python=sys.executable)
    for action in ASKS:
        assert "Spark's workers see another folder than this process where the table is" in found[action]
        assert "No such file or directory" in found[action]
        assert "; 1 of 2 workers" in found[action]
    assert tree(table) == before


def test_workers_are_sent_a_packed_environment(
    running: Cluster, packed: Path, tmp_path: Path, session: LocalSession
) -> None:
    table = a_table(tmp_path / "t", session)
    sent = f"spark.archives={packed}#environment"
    assert steps(running.url, table, running.folder, sent, python="./environment/bin/python") == DONE


def test_a_connect_server_is_sent_a_packed_environment(
    running: Cluster, packed: Path, tmp_path: Path, session: LocalSession
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    folder, bare = running.folder / "connect", str(tmp_path / "bare/bin/python")
    with connect_server(folder, {"spark.ui.enabled": "false"}, python=bare) as url:
        table = a_table(tmp_path / "t", session)
        found = steps(url, table, running.folder)
        assert {action for action in ASKS if "workers lack a package" not in str(found[action])} == set()
        assert steps(url, table, running.folder, f"archive={packed}#environment") == DONE
