"""docs/how-to/monitor.md lists the metrics and the alerts that there are."""

from __future__ import annotations

import re
from importlib.resources import files

import yaml

from hudi_assets.home import project_root
from hudi_assets.monitoring.samples import NAMES

GUIDE = (project_root() / "docs/how-to/monitor.md").read_text("utf-8")


def test_each_metric_is_in_the_guide() -> None:
    (table,) = re.findall(r"^\| metric \|.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"\bhudi_assets_\w+", table)) == NAMES


def test_each_alert_is_in_the_guide() -> None:
    (group,) = yaml.safe_load((files("hudi_assets.monitoring") / "alerts.yml").read_text("utf-8"))["groups"]
    assert re.findall(r"^\| `(HudiAssets\w+)`", GUIDE, re.MULTILINE) == [rule["alert"] for rule in group["rules"]]
