"""The component has one name: in blocks, in the pages, and in what `dg` lists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from dagster.components.core.package_entry import discover_package_objects

from hudi_assets.cli import blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
_WITHOUT = """
import importlib.util
import sys

for absent in ("dagster", "dagster_pyspark", "matplotlib", "PIL"):
    sys.modules[absent] = None
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: found(name) if name not in sys.modules else None
import hudi_assets.components

print([name for name in dir(hudi_assets.components) if not name.startswith("_")])
from hudi_assets.components import HudiTableComponent
"""


def test_dg_lists_it_under_the_name_that_blocks_have() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    modules = list(project["entry-points"]["dagster_dg_cli.registry_modules"].values())
    listed = {key.to_typename() for key in discover_package_objects(modules)}
    assert listed == {blocks.TYPE, "hudi_assets.components.HudiTablesComponent"}


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_that_name(page: str) -> None:
    named = re.findall(r"[\w.]+\.HudiTableComponent", (ROOT / page).read_text("utf-8"))
    assert {*named} <= {blocks.TYPE}


def test_without_dagster_there_is_none_and_its_import_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False, timeout=120)
    assert "HudiTable" not in done.stdout
    assert "pip install 'hudi-assets[dagster]'" in done.stderr
