"""`make run` on two days, then Dagster's UI on its instance in headless Chromium, as a user sees it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from hudi_assets.home import project_root

pytestmark = [
    pytest.mark.ui,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no Chromium with its driver"
    ),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a replay of two days leaves behind."""
    path = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-m", "hudi_assets.demo", "--days", "2", "--verify"],
        env={**os.environ, "HUDI_ASSETS_HOME": str(path)},
        cwd=project_root(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.fixture(scope="module")
def camera(home: Path, screenshots: ModuleType) -> Iterator[Any]:
    os.environ["HUDI_ASSETS_HOME"] = str(home)
    try:
        with screenshots.ui(home / "dagster") as url, screenshots.browser() as browser:
            yield screenshots.Camera(browser, url)
    finally:
        del os.environ["HUDI_ASSETS_HOME"]


def test_the_replay_says_what_it_did(home: Path) -> None:
    summary = json.loads((home / "last-run.json").read_text())
    assert summary["mode"] == "new"
    assert summary["batches"] == 16
    assert summary["failed_runs"] == 0
    assert len(summary["compactions"]) >= 2
    assert summary["violations"] == 0
    for compaction in summary["compactions"]:
        assert compaction["logs_compacted"] > 0
        assert compaction["threshold"]
        assert compaction["seconds"] > 0


@pytest.mark.parametrize(
    "picture", ["asset_graph", "sensor_ticks", "check_results", "freshness_checks", "lag", "event_time_picture"]
)
def test_the_ui_shows(picture: str, camera: Any, screenshots: ModuleType, tmp_path: Path) -> None:
    """Each of the script's functions waits for what it is about, and times out where that is not shown."""
    path = getattr(screenshots, picture)(camera, tmp_path)
    with Image.open(path) as image:
        assert image.width > 1000
        assert len(image.convert("L").getcolors() or []) > 20
