"""The wheel in an empty environment: the command line, and the component in a dg project of somebody else's.

Installs the locked versions with pip, so it runs only by `make test-wheel`, and in CI.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable

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
_BLOCK = """type: hudi_assets.components.HudiTableComponent

attributes:
  name: payments
  path: {table}
  external: true
  data_latency: 2h
  compact_every: 1h
  writers: stopped
"""
_PROJECT = """[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
"""
_DEFINITIONS = """from pathlib import Path

from dagster import definitions, load_from_defs_folder

import resources

assert resources.OURS


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
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
    made.run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", ".", str(ROOT))
    (wheel,) = made.folder.glob("*.whl")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pins = re.findall(r"^([A-Za-z0-9_.-]+==[^\s;\\]+(?: ; [^\\\n]+)?)", lock, re.MULTILINE)
    (made.folder / "constraints.txt").write_text("\n".join(pins) + "\n", "utf-8")
    made.run(sys.executable, "-m", "venv", "venv")
    made.run("python", "-m", "pip", "install", "-q", "-c", "constraints.txt", f"{wheel}[dagster]", "dagster-dg-cli")
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


def test_a_block_loads_and_runs_in_a_project_with_resources_of_its_own(installed: Environment, table: Path) -> None:
    project = installed.folder / "shop_project"
    block = project / "shop/defs/payments"
    block.mkdir(parents=True)
    (project / "resources").mkdir()
    (project / "resources/__init__.py").write_text("OURS = True\n", "utf-8")
    (project / "pyproject.toml").write_text(_PROJECT, "utf-8")
    (project / "shop/__init__.py").write_text("", "utf-8")
    (project / "shop/defs/__init__.py").write_text("", "utf-8")
    (project / "shop/definitions.py").write_text(_DEFINITIONS, "utf-8")
    (block / "defs.yaml").write_text(_BLOCK.format(table=table), "utf-8")
    here = {"PYTHONPATH": str(project)}

    installed.run("dg", "check", "defs", "--no-check-yaml", cwd=project, more=here)
    listed = installed.run("dg", "list", "components", "--package", "hudi_assets", cwd=project, more=here)
    assert "hudi_assets.components.HudiTableComponent" in listed
    installed.run("dg", "launch", "--assets", "*", cwd=project, more=here)

    conf = {"SPARK_CONF_DIR": str(installed.folder / "home/spark")}
    rows = installed.run("spark-sql", "-S", "-e", "SELECT id FROM payments_ro", more=conf)
    assert rows.split() == ["a"]
    assert "freshness" in installed.run("spark-sql", "-S", "-e", "SHOW TBLPROPERTIES payments_ro", more=conf)


def test_a_wrong_setting_fails_the_check_and_names_the_field(installed: Environment, table: Path) -> None:
    project = installed.folder / "wrong_project"
    block = project / "shop/defs/payments"
    block.mkdir(parents=True)
    (project / "pyproject.toml").write_text(_PROJECT, "utf-8")
    (project / "shop/__init__.py").write_text("", "utf-8")
    (project / "shop/defs/__init__.py").write_text("", "utf-8")
    (project / "shop/definitions.py").write_text(
        _DEFINITIONS.replace("import resources\n\nassert resources.OURS\n\n\n", ""), "utf-8"
    )
    wrong = _BLOCK.format(table=table).replace("data_latency: 2h", "data_latency: soon")
    (block / "defs.yaml").write_text(wrong, "utf-8")
    done = subprocess.run(
        ["dg", "check", "defs", "--no-check-yaml"],
        cwd=project,
        env={**installed.env, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode != 0
    assert "data_latency" in done.stdout + done.stderr
