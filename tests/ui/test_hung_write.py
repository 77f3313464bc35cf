"""A write of another engine hangs: what an owner sees in Dagster's UI, with a real daemon, in headless Chromium.

`UI_PICTURES=docs/images` keeps the pictures of the page.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from tests.dagster.live import Daemon, hang, live_daemon, web_server

pytestmark = [
    pytest.mark.ui,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no Chromium with its driver"
    ),
]
# Without the window that asks a newcomer for an address.
SETTINGS = "telemetry: {enabled: false}\nnux: {enabled: false}\n"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    often = {"DAEMON_REPORT_EVERY": "10s"}
    with live_daemon(tmp_path, {"events": timedelta(hours=1)}, SETTINGS, often) as opened:
        yield opened


@pytest.fixture
def camera(daemon: Daemon, screenshots: ModuleType) -> Iterator[Any]:
    with web_server(daemon) as url, screenshots.browser() as browser:
        yield screenshots.Camera(browser, url)


def test_red_then_the_lag_then_green(daemon: Daemon, camera: Any, screenshots: ModuleType, pictures: Path) -> None:
    daemon.wait_for("the first tick", lambda: daemon.passes() is True)
    green = screenshots.slo_check(camera, pictures, "events", "check-passed.png", "Succeeded")

    hung = hang(daemon.home / "warehouse" / "events")
    daemon.wait_for("red", lambda: daemon.passes() is False)
    red = screenshots.slo_check(camera, pictures, "events", "check-failed.png", "2 h behind the clock, allowed are 1 h")
    assert not camera.find("Succeeded")
    daemon.wait_for("the lag", lambda: daemon.observed()[0]["lag_seconds"] > 7200)

    for file in hung:
        file.unlink()
    daemon.wait_for("green again", lambda: daemon.passes() is True)
    daemon.wait_for("the lag again", lambda: daemon.observed()[0]["lag_seconds"] < 60)
    lag = screenshots.lag(camera, pictures, "events", "hung-lag.png")
    screenshots.slo_check(camera, pictures, "events", "check-passed.png", "Succeeded")
    assert not camera.find("allowed are 1 h")
    for path in (green, red, lag):
        with Image.open(path) as image:
            assert image.width > 1000
            assert len(image.convert("L").getcolors() or []) > 20
