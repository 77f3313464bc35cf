"""The wheel in an empty environment: the command line, and the component in a dg project of somebody else's.

Installs the locked versions with pip, so it runs only by `make test-wheel`, and in CI.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from tests.wheel import page

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
_SCHEMA = pa.schema([("id", pa.string()), ("paid_at", pa.timestamp("us", tz="UTC")), ("amount", pa.float64())])
_WRITE = """
import sys
from pyspark.sql import SparkSession
from hudi_assets.engine import HudiTable

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("SELECT 'a' AS id, timestamp'2024-05-01 08:00:00' AS paid_at, 9.5D AS amount")
HudiTable.open(sys.argv[1]).upsert(spark, rows)
"""


class Environment:
    """A virtual environment elsewhere, with the wheel and what it asks for; nothing of this source tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv/bin"
        self.env = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "HUDI_ASSETS_HOME": str(folder / "home"),
            "DAGSTER_HOME": str(folder / "dagster"),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            **{key: value for key, value in os.environ.items() if key.startswith("PIP_") or key == "JAVA_HOME"},
        }

    def run(self, *command: str, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            list(command),
            cwd=cwd or self.folder,
            env={**self.env, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("elsewhere"))
    install = page.commands()[0]
    made.run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", ".", str(ROOT))
    (wheel,) = made.folder.glob("*.whl")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pins = re.findall(r"^([A-Za-z0-9_.-]+==[^\s;\\]+(?: ; [^\\\n]+)?)", lock, re.MULTILINE)
    (made.folder / "constraints.txt").write_text("\n".join(pins) + "\n", "utf-8")
    made.run(sys.executable, "-m", "venv", "venv")
    made.run("sh", "-c", install.replace(page.PACKAGE, f"{wheel}[dagster]") + " -q -c constraints.txt")
    (made.folder / "dagster").mkdir()
    return made


@pytest.fixture(scope="module")
def table(installed: Environment) -> Path:
    path = installed.folder / "tables/payments"
    HudiTable.create(str(path), _SCHEMA, record_key=["id"], ordering_field="paid_at", buckets=1)
    (installed.folder / "write.py").write_text(_WRITE, "utf-8")
    installed.run("python", "write.py", str(path))
    return path


def test_the_command_line_works_on_a_new_table(installed: Environment, table: Path) -> None:
    assert "compact" in installed.run("hudi-assets", "--help")
    assert '"log_files": 1' in installed.run("hudi-assets", "status", str(table), "--json")


@pytest.fixture(scope="module")
def project(installed: Environment, table: Path) -> Path:
    """The page's project, with a package of its own that is called as one of this repository."""
    own = "import resources\n\nassert resources.OURS\n\n\n@definitions"
    made = new_project(installed.folder / "shop_project", page.block(str(table)))
    (made / "resources").mkdir()
    (made / "resources/__init__.py").write_text("OURS = True\n", "utf-8")
    definitions = made / "shop/definitions.py"
    definitions.write_text(definitions.read_text("utf-8").replace("@definitions", own), "utf-8")
    return made


def new_project(root: Path, block: str) -> Path:
    folder = root / "shop/defs/payments"
    folder.mkdir(parents=True)
    (root / "pyproject.toml").write_text(page.project_file(), "utf-8")
    (root / "shop/__init__.py").touch()
    (root / "shop/defs/__init__.py").touch()
    (root / "shop/definitions.py").write_text(page.definitions(), "utf-8")
    (folder / "defs.yaml").write_text(block, "utf-8")
    return root


def test_the_pages_commands_run_in_a_project_with_resources_of_its_own(installed: Environment, project: Path) -> None:
    install, export, *rest = page.commands()
    assert install.startswith("pip install")
    assert rest[-1] == "dg dev"
    said = [installed.run("sh", "-c", f"{export}\n{command}", cwd=project) for command in rest[:-1]]
    assert "hudi_assets.components.HudiTableComponent" in said[0]

    conf = {"SPARK_CONF_DIR": str(installed.folder / "home/spark")}
    rows = installed.run("spark-sql", "-S", "-e", "SELECT id FROM payments_ro", more=conf)
    assert rows.split() == ["a"]
    assert "freshness" in installed.run("spark-sql", "-S", "-e", "SHOW TBLPROPERTIES payments_ro", more=conf)


def test_dg_dev_serves_the_assets(installed: Environment, project: Path) -> None:
    _, export, *_, dev = page.commands()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["sh", "-c", f"{export}\nexec {dev} --port {port}"]
    with subprocess.Popen(command, cwd=project, env=installed.env, start_new_session=True) as server:
        try:
            assert "freshness" in asset_names(f"http://127.0.0.1:{port}/graphql", server)
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(timeout=240)  # it ends its daemon and code server first, slowly beside other work
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                raise


def asset_names(address: str, server: subprocess.Popen[bytes]) -> set[str]:
    question = json.dumps({"query": "{assetNodes{assetKey{path}}}"}).encode()
    asked = urllib.request.Request(address, question, {"Content-Type": "application/json"})
    deadline = time.monotonic() + 240
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return {node["assetKey"]["path"][-1] for node in json.load(answer)["data"]["assetNodes"]}
        except (urllib.error.URLError, TimeoutError):
            time.sleep(1)
    raise AssertionError("dg dev does not answer")


def test_a_wrong_setting_fails_the_check_and_names_the_field(installed: Environment, table: Path) -> None:
    wrong = page.block(str(table)).replace("data_latency: 2h", "data_latency: soon")
    project = new_project(installed.folder / "wrong_project", wrong)
    done = subprocess.run(
        ["dg", "check", "defs"],
        cwd=project,
        env={**installed.env, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode != 0
    assert "data_latency" in done.stdout + done.stderr
