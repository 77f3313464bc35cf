"""What the page on Dagster shows of a dg project is whole and loads. `make test-wheel` runs all of it, in minutes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from hudi_assets.cli import blocks
from hudi_assets.engine import HudiTable
from tests import pages
from tests.defs_project import DefsProject
from tests.pages import ROOT
from tests.wheel import page

_SCHEMA = pa.schema([("id", pa.string()), ("paid_at", pa.timestamp("us", tz="UTC"))])


def block_of_the_tutorial(table: str) -> str:
    """What the reader of your_hudi_table.md writes by `cat`."""
    (text,) = [one.text for one in pages.blocks(ROOT / "docs/tutorial/your_hudi_table.md") if "<<'YAML'" in one.text]
    return text.partition("<<'YAML'\n")[2].partition("\nYAML\n")[0].replace("/tmp/payments", table)


@pytest.mark.parametrize("block", [page.block, block_of_the_tutorial])
def test_the_block_loads(block: Callable[[str], str], tmp_path: Path) -> None:
    table = HudiTable.create(str(tmp_path / "payments"), _SCHEMA, record_key=["id"], ordering_field="paid_at")
    assert yaml.safe_load(block(table.path))["type"] == blocks.TYPE
    project = DefsProject(tmp_path / "project").made()
    (project.defs / "payments").mkdir()
    (project.defs / "payments/defs.yaml").write_text(block(table.path), "utf-8")
    assets = project.load().resolve_all_asset_keys()
    assert "payments/freshness" in {key.to_user_string() for key in assets}


def test_the_files_are_whole() -> None:
    assert tomllib.loads(page.project_file())["tool"]["dg"]["project"]["root_module"] == "shop"
    compile(page.definitions(), "definitions.py", "exec")


def test_each_command_is_one_that_the_test_of_the_wheel_runs() -> None:
    install, export, *rest = page.commands()
    assert (install, export) == (f"pip install '{page.PACKAGE}' dagster-dg-cli", "export PYTHONPATH=$PWD")
    assert [command.split()[:2] for command in rest] == [["dg", word] for word in ("list", "check", "launch", "dev")]
