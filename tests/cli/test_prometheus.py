"""The alert rules by promtool, and a real Prometheus that scrapes a real exporter until an alert fires.

Debian has both programs in its package `prometheus`; the daemon need not run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from hudi_assets.engine import HudiTable
from hudi_assets.monitoring.samples import NAMES
from tests.cli.conftest import Answer
from tests.ports import free_port
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

RULES = Path(str(files("hudi_assets.monitoring"))) / "alerts.yml"
CASES = Path(__file__).with_name("alert_cases.yml")
_SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
_PROMTOOL = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool here: Debian has it in its package prometheus"
)
_PROMETHEUS = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus here: Debian has it in its package prometheus"
)
_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: hudi-assets
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\bhudi_assets_\w+", text))


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_rules_name_only_metrics_that_there_are() -> None:
    for rule in rules():
        assert names_in(rule["expr"]) <= NAMES, rule
        assert rule["annotations"].keys() == {"summary", "description"}


def test_each_alert_has_a_case() -> None:
    cases = yaml.safe_load(CASES.read_text("utf-8").replace("[RULES]", "[]"))["tests"]
    fires = {one["alertname"] for case in cases for one in case["alert_rule_test"] if one["exp_alerts"]}
    assert fires == {rule["alert"] for rule in rules()}


# -- the dashboard --------------------------------------------------------------------------------


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RULES.parent / "dashboard.json").read_text("utf-8"))
    return found


def expressions() -> list[str]:
    """Of every panel, with the variable as Grafana fills it in for all tables."""
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return [target["expr"].replace("$table", ".*") for target in targets]


def test_the_dashboard_is_printed(run: Callable[..., Answer]) -> None:
    assert json.loads(run("metrics", "--dashboard").out) == dashboard()


def test_the_dashboard_names_only_metrics_that_there_are_and_its_own_variables() -> None:
    body = dashboard()
    known = {variable["name"] for variable in body["templating"]["list"]}
    assert known == {"datasource", "table"}
    for expression in expressions():
        assert names_in(expression)
        assert names_in(expression) <= NAMES, expression
    assert names_in(json.dumps(body["templating"])) <= NAMES
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(body))) <= known


def test_the_dashboards_panels_lie_side_by_side() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels)


# -- the rules ------------------------------------------------------------------------------------


@_PROMTOOL
def test_promtool_takes_the_rules(run: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(run("metrics", "--rules").out, "utf-8")
    done = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout


@_PROMTOOL
def test_each_alert_fires_in_its_case_and_not_before(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yml"
    cases.write_text(CASES.read_text("utf-8").replace("[RULES]", f"[{RULES}]"), "utf-8")
    done = subprocess.run(["promtool", "test", "rules", cases], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here: Debian has it in its package prometheus")
    cases, strict = tmp_path / "cases.yml", tmp_path / "rules.yml"
    strict.write_text(RULES.read_text("utf-8").replace("_lag_seconds >", "_lag_seconds >="), "utf-8")
    cases.write_text(CASES.read_text("utf-8").replace("[RULES]", f"[{strict}]"), "utf-8")
    done = subprocess.run(["promtool", "test", "rules", cases], capture_output=True, text=True, check=False)
    assert done.returncode != 0


# -- a real Prometheus ----------------------------------------------------------------------------


@contextmanager
def running(*command: object, log: Path) -> Iterator[None]:
    with log.open("w") as out:
        process = subprocess.Popen([*map(str, command)], stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def until(asked: Callable[[], Any], log: Path, seconds: float = 90) -> Any:
    """What is asked for, as soon as there is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := asked():
                return found
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"not seen in {seconds} s:\n{log.read_text()[-4000:]}")


class Prometheus:
    """Its HTTP API."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"

    def get(self, what: str, **asked: str) -> Any:
        with urllib.request.urlopen(f"{self._base}/{what}?{urllib.parse.urlencode(asked)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str) -> float | None:
        result = self.get("query", query=expression)["result"]
        return float(result[0]["value"][1]) if result else None

    def firing(self) -> set[str]:
        return {one["labels"]["alertname"] for one in self.get("alerts")["alerts"] if one["state"] == "firing"}


def at_once(folder: Path) -> Path:
    """The rules with nothing to wait for."""
    body = yaml.safe_load(RULES.read_text("utf-8"))
    for rule in body["groups"][0]["rules"]:
        rule["for"] = "2s"
    path = folder / "rules.yml"
    path.write_text(yaml.safe_dump(body), "utf-8")
    return path


def write(table: HudiTable, session: LocalSession, ago: int) -> None:
    """A row that happened so many seconds ago."""
    rows = [{"id": "a", "ts": int((time.time() - ago) * 1000)}]
    table.upsert(session, session.rows(rows, _SCHEMA))


@pytest.fixture
def table(tmp_path: Path, session: LocalSession) -> HudiTable:
    made = created(tmp_path / "late", _SCHEMA, event_time_unit="ms", buckets=1)
    write(made, session, 0)
    return made


@contextmanager
def watched(table: HudiTable, folder: Path) -> Iterator[tuple[Prometheus, Path]]:
    """An exporter that looks at a table twice a second, and a Prometheus that scrapes it each second."""
    exported, served = free_port(), free_port()
    (folder / "prometheus.yml").write_text(_CONFIG.format(rules=at_once(folder), port=exported), "utf-8")
    log = folder / "prometheus.log"
    exporter = (sys.executable, "-m", "hudi_assets.cli", "metrics", table.path, "--slo", "10m")
    prometheus = ("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb")
    with (
        running(*exporter, "--listen", f"127.0.0.1:{exported}", "--interval", "0.5", log=folder / "exporter.log"),
        running(*prometheus, f"--web.listen-address=127.0.0.1:{served}", log=log),
    ):
        yield Prometheus(served), log


@_PROMETHEUS
@pytest.mark.thorough
def test_an_alert_fires_when_a_table_falls_behind_its_slo(
    table: HudiTable, session: LocalSession, tmp_path: Path
) -> None:
    with watched(table, tmp_path) as (prometheus, log):
        assert until(lambda: prometheus.value("hudi_assets_up"), log) == 1
        assert until(lambda: prometheus.value("hudi_assets_remaining_log_files"), log) == 1
        for expression in expressions():
            prometheus.get("query", query=expression)  # which refuses one that does not parse
        assert prometheus.value(expressions()[4]) is not None  # the lag
        with pytest.raises(urllib.error.HTTPError):
            prometheus.get("query", query="count(hudi_assets_up{")
        time.sleep(4)
        assert "HudiAssetsFreshnessBeyondSlo" not in prometheus.firing()
        write(table, session, 3600)  # late: the freshness falls back by an hour
        until(lambda: "HudiAssetsFreshnessBeyondSlo" in prometheus.firing(), log)
        assert 3600 < (prometheus.value("hudi_assets_freshness_lag_seconds") or 0) < 3800
        shutil.rmtree(table.path)
        until(lambda: "HudiAssetsLookFailing" in prometheus.firing(), log)
        until(lambda: prometheus.value("hudi_assets_freshness_lag_seconds") is None, log)
        until(lambda: "HudiAssetsFreshnessBeyondSlo" not in prometheus.firing(), log)
