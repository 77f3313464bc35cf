"""Photographs Dagster's UI: the asset graph, the sensor's ticks, the checks, the lag over time, the event-time picture.

    scripts/with-env python scripts/screenshots.py [--out docs/images] [--url http://127.0.0.1:3000]
    UI_PICTURES=docs/images scripts/with-env python -m pytest -m "" tests/ui/test_hung_write.py

Without --url the first starts the UI itself, on the instance that `make run` filled, and ends it afterwards. The second
photographs a write that hangs: the check that is red, and the lag meanwhile.
Needs Chromium and its driver (Debian: chromium-driver).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from hudi_assets.demo.driver import prepare_instance
from hudi_assets.home import dagster_home, project_root

_REPOSITORY = "__repository__@hudi_assets"
_WAIT = 60
_WIDTH, _HEIGHT = 1500, 1250
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class Camera:
    """A browser that looks at one UI."""

    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        self.browser = browser
        self.url = url.rstrip("/")

    def open(self, path: str, *texts: str) -> None:
        """Open a page, and wait until it shows these texts."""
        self.browser.get(self.url + path)
        for text in texts:
            self.wait_for(text)

    def wait_for(self, text: str) -> WebElement:
        """The first visible element with this text of its own."""
        self.until(lambda: self.find(text))
        return self.find(text)[0]

    def find(self, text: str) -> list[WebElement]:
        found = self.browser.find_elements(By.XPATH, f"//*[text()[contains(., {text!r})]]")
        return [element for element in found if element.is_displayed()]

    def until(self, condition: object) -> None:
        assert callable(condition)
        WebDriverWait(self.browser, _WAIT, ignored_exceptions=()).until(lambda _: condition())

    def click(self, text: str) -> None:
        self.browser.execute_script("arguments[0].click()", self.wait_for(text))

    def take(self, path: Path) -> Path:
        """Save what is shown, once it has stood still for half a second."""
        before = b""
        for _ in range(20):
            time.sleep(0.5)
            now = self.browser.get_screenshot_as_png()
            if now == before:
                break
            before = now
        path.write_bytes(before)
        return path


def asset_graph(camera: Camera, out: Path) -> Path:
    """All assets and how they depend on each other."""
    # They stand in one row: a page of the usual height would be empty for the most part.
    camera.browser.set_window_size(_WIDTH, 3 * _HEIGHT // 5)
    try:
        camera.open(f"/locations/{_REPOSITORY}/asset-groups/flights/lineage")
        for name in ("mor_table", "compaction_plan", "ro_snapshot", "freshness", "housekeeping"):
            camera.wait_for(name)
        return camera.take(out / "asset-graph.png")
    finally:
        camera.browser.set_window_size(_WIDTH, _HEIGHT)


def sensor_ticks(camera: Camera, out: Path) -> Path:
    """The sensor's ticks: those that requested a run, and those that did not."""
    page = f"/locations/{_REPOSITORY}/sensors/flights_event_time_trigger"
    camera.open(page, "flights_event_time_trigger", "run requested")
    deadline = time.monotonic() + _WAIT
    while camera.find("The sensor daemon is not running") and time.monotonic() < deadline:
        time.sleep(2)  # its first heartbeat is on the way
        camera.open(page, "flights_event_time_trigger", "run requested")
    camera.click("1hr")
    return camera.take(out / "sensor-ticks.png")


def check_results(camera: Camera, out: Path) -> Path:
    camera.open("/assets/flights/ro_snapshot?view=checks", "no_pre_threshold_logs", "files_match_timeline")
    return camera.take(out / "asset-checks.png")


def freshness_checks(camera: Camera, out: Path) -> Path:
    camera.open("/assets/flights/freshness?view=checks", "no_late_records", "freshness_within_slo")
    return camera.take(out / "freshness-checks.png")


def event_time_picture(camera: Camera, out: Path) -> Path:
    """The picture in the metadata of the newest compaction."""
    camera.open("/assets/flights/ro_snapshot?view=events", "logs_compacted", "picture")
    camera.click("Show Markdown")
    image = "//img[starts-with(@src, 'data:image/png')]"
    camera.until(
        lambda: any(
            camera.browser.execute_script("return arguments[0].naturalWidth > 0", element)
            for element in camera.browser.find_elements(By.XPATH, image)
        )
    )
    return camera.take(out / "event-time-picture.png")


def lag(camera: Camera, out: Path, table: str = "flights", name: str = "lag.png") -> Path:
    """How far the freshness lay behind the clock over time, and what remained to be compacted."""
    camera.browser.set_window_size(_WIDTH, 3 * _HEIGHT // 2)
    try:
        camera.open(f"/assets/{table}/freshness?view=overview", "lag_seconds")
        camera.click("Plots")
        camera.until(lambda: camera.browser.find_elements(By.TAG_NAME, "canvas"))
        plot = camera.wait_for("lag_seconds")
        camera.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        return camera.take(out / name)
    finally:
        camera.browser.set_window_size(_WIDTH, _HEIGHT)


def slo_check(camera: Camera, out: Path, table: str, name: str, *texts: str) -> Path:
    """The check of the SLO, whose last evaluation shows these texts."""
    camera.open(f"/assets/{table}/freshness?view=checks&checkDetail=freshness_within_slo", *texts)
    return camera.take(out / name)


PICTURES = (asset_graph, sensor_ticks, check_results, freshness_checks, lag, event_time_picture)


@contextmanager
def browser(width: int = _WIDTH, height: int = _HEIGHT) -> Iterator[webdriver.Chrome]:
    """A headless Chromium with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="hudi-assets-browser-") as profile:
        options = webdriver.ChromeOptions()
        for flag in (*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if chromium:
            options.binary_location = chromium
        made = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            yield made
        finally:
            made.quit()


@contextmanager
def ui(directory: Path) -> Iterator[str]:
    """Dagster's web server and daemon on the instance in `directory`, as `make ui` starts them."""
    prepare_instance(directory)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "dagster", "dev"),
            *("--workspace", str(project_root() / "workspace.yaml")),
            *("--host", "127.0.0.1", "--port", str(port)),
        ],
        env={**os.environ, "DAGSTER_HOME": str(directory)},
        cwd=project_root(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _await(url, server)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=30)


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 2 * _WAIT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"Dagster ended with {server.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/server_info", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"no answer from {url}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Photograph Dagster's UI")
    parser.add_argument("--out", type=Path, default=project_root() / "docs" / "images")
    parser.add_argument("--url", help="a UI that is running already")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        if options.url:
            _take_all(Camera(opened, options.url), options.out)
        else:
            with ui(dagster_home()) as url:
                _take_all(Camera(opened, url), options.out)
    return 0


def _take_all(camera: Camera, out: Path) -> None:
    for picture in PICTURES:
        print(picture(camera, out))


if __name__ == "__main__":
    sys.exit(main())
