"""What tests of Dagster's UI share: the script that photographs it, and where pictures go."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from hudi_assets.home import project_root


@pytest.fixture(scope="module")
def screenshots() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screenshots", project_root() / "scripts" / "screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """`UI_PICTURES` names a folder to keep them in."""
    kept = os.environ.get("UI_PICTURES")
    return Path(kept).absolute() if kept else tmp_path
