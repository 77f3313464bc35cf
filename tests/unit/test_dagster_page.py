"""What the page on Dagster shows of a dg project is whole and loads. `make test-wheel` runs all of it, in minutes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import yaml

from hudi_assets.cli import blocks
from hudi_assets.engine import HudiTable
from tests.defs_project import DefsProject
from tests.wheel import page

_SCHEMA = pa.schema([("id", pa.string()), ("paid_at", pa.timestamp("us", tz="UTC"))])


def test_the_block_loads(tmp_path: Path) -> None:
    table = HudiTable.create(str(tmp_path / "payments"), _SCHEMA, record_key=["id"], ordering_field="paid_at")
    assert yaml.safe_load(page.block(table.path))["type"] == blocks.TYPE
    project = DefsProject(tmp_path / "project").made()
    (project.defs / "payments").mkdir()
    (project.defs / "payments/defs.yaml").write_text(page.block(table.path), "utf-8")
    assets = project.load().resolve_all_asset_keys()
    assert "payments/freshness" in {key.to_user_string() for key in assets}


def test_the_files_are_whole() -> None:
    assert tomllib.loads(page.project_file())["tool"]["dg"]["project"]["root_module"] == "shop"
    compile(page.definitions(), "definitions.py", "exec")


def test_each_command_is_one_that_the_test_of_the_wheel_runs() -> None:
    install, export, *rest = page.commands()
    assert (install, export) == (f"pip install '{page.PACKAGE}' dagster-dg-cli", "export PYTHONPATH=$PWD")
    assert [command.split()[:2] for command in rest] == [["dg", word] for word in ("list", "check", "launch", "dev")]
