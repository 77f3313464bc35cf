"""Workers that lack the package, or do not see the table, are refused by name before anything is published; and
workers that lack it are sent it, as docs/how-to/cluster.md says.

On a cluster of two workers, of which the second has mounted nothing where one of the tables is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from tests.cluster.cluster import can_hide, cluster
from tests.cluster.driver import PROJECT
from tests.connect.server import connect_server
from tests.pages import ROOT, blocks_of
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("COMPACTIONS"), reason="a suite of its own: make test-cluster"),
]
PAGE = ROOT / "docs/how-to/cluster.md"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
OLD = 1_650_000_000_000
BETWEEN = "2023-01-01T00:00:00Z"
ROWS = 20
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


def a_table(path: Path, session: LocalSession) -> HudiTable:
    table = created(path, SCHEMA, event_time_unit="ms", table_version=9)
    table.upsert(session, session.rows([{"id": f"o{n}", "ts": OLD + n} for n in range(ROWS)], SCHEMA))
    return table


def steps(running: Cluster, table: HudiTable, python: str, *settings: str, url: str = "") -> dict[str, Any]:
    """What each action gave, or in which words it was refused. `python`: the workers'. Default: on the cluster."""
    command = [sys.executable, "-m", "tests.cluster.steps", url or running.url, table.path, BETWEEN, *settings]
    environment = {**os.environ, "PYTHONPATH": PROJECT, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    done = subprocess.run(command, cwd=running.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    print(done.stdout)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["action"]: line.get("gave", line.get("refused")) for line in lines}


def tree(table: HudiTable) -> set[str]:
    return {str(path) for path in Path(table.path).rglob("*") if path.is_file()}


def test_workers_without_the_package_are_refused(running: Cluster, tmp_path: Path, session: LocalSession) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    table = a_table(tmp_path / "t", session)
    before = tree(table)
    python = str(tmp_path / "bare/bin/python")
    found = steps(running, table, python)
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
    found = steps(running, table, sys.executable, f"spark.executorEnv.PYTHONPATH={PROJECT}")
    for action in ASKS:
        assert "Spark's workers see another folder than this process where the table is" in found[action]
        assert "No such file or directory" in found[action]
        assert "; 1 of 2 workers" in found[action]
    assert tree(table) == before


@pytest.fixture(scope="module")
def packed(running: Cluster) -> Path:
    """The project's wheel in an environment that is made and packed by the page's lines."""
    folder = running.folder
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        PROJECT,
    ]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    lock = Path(PROJECT, "requirements.lock").read_text("utf-8")
    pins = re.findall(r"^([A-Za-z0-9_.-]+==[^\s;\\]+(?: ; [^\\\n]+)?)", lock, re.MULTILINE)
    (folder / "constraints.txt").write_text("\n".join(pins) + "\n", "utf-8")
    section = PAGE.read_text("utf-8").partition("## Send an environment with the job")[2]
    lines = blocks_of(section, "sh")[0].text
    lines = lines.replace("python3.11 -m venv", f"{sys.executable} -m venv")
    lines = lines.replace("install hudi-assets venv-pack", f"install -q -c constraints.txt {wheel} venv-pack")
    subprocess.run(["sh", "-e", "-c", lines.replace("venv-pack -p", "venv-pack -q -p")], cwd=folder, check=True)
    return folder / "environment.tar.gz"


DONE = {
    "snapshot before": ROWS,
    "upsert": 40,
    "delete": 1,
    "compact": 1,
    "log files left": 3,
    "read_optimized": ROWS,
    "incremental": ROWS + 39,
    "snapshot": ROWS + 39,
}


def test_workers_are_sent_a_packed_environment(
    running: Cluster, packed: Path, tmp_path: Path, session: LocalSession
) -> None:
    table = a_table(tmp_path / "t", session)
    assert steps(running, table, "./environment/bin/python", f"spark.archives={packed}#environment") == DONE


def test_a_connect_server_is_sent_a_packed_environment(
    running: Cluster, packed: Path, tmp_path: Path, session: LocalSession
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    folder, bare = running.folder / "connect", str(tmp_path / "bare/bin/python")
    with connect_server(folder, {"spark.ui.enabled": "false"}, python=bare) as url:
        table = a_table(tmp_path / "t", session)
        found = steps(running, table, "", url=url)
        assert {action for action in ASKS if "workers lack a package" not in str(found[action])} == set()
        assert steps(running, table, "", f"archive={packed}#environment", url=url) == DONE
