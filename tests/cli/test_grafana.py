"""The dashboard against the types that Grafana 11 generates from its schema: every field, and every panel's options.

No Grafana is had by a package registry: Debian has none, and npm, PyPI and Go have parts of it alone.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_prometheus import dashboard

HOME = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hudi-assets" / "grafana-types"
COMPOSABLE = "./node_modules/@grafana/schema/dist/esm/raw/composable"
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not (HOME / "ready").exists(), reason="scripts/grafana-types-setup was not run"),
]
# An enumeration of texts takes none but its own members in TypeScript: `Plain` has the texts themselves.
_HEAD = f"""import type {{ Dashboard, Panel }} from "@grafana/schema";
import type * as timeseries from "{COMPOSABLE}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.js";
import type * as stat from "{COMPOSABLE}/stat/panelcfg/x/StatPanelCfg_types.gen.js";

type Plain<T> = T extends string ? `${{T}}` : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;
"""
Typed = Callable[[dict[str, Any]], str]


def source(body: dict[str, Any]) -> str:
    """The dashboard as TypeScript: a constant for each part, so that fields which do not exist are errors too."""
    lines = [_HEAD]

    def holds(name: str, type_: str, value: Any) -> None:
        lines.append(f"export const {name}: Plain<{type_}> = {json.dumps(value)};")

    holds("dashboard", 'Omit<Dashboard, "panels">', {key: value for key, value in body.items() if key != "panels"})
    for number, panel in enumerate(body["panels"]):
        holds(f"panel{number}", "Panel", panel)
        holds(f"options{number}", f"Partial<{panel['type']}.Options>", panel["options"])
        custom = panel["fieldConfig"]["defaults"].get("custom")
        if custom is not None:
            holds(f"field{number}", f"{panel['type']}.FieldConfig", custom)
    return "\n".join(lines)


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """What TypeScript says of a dashboard; nothing where it is right."""
    (tmp_path / "node_modules").symlink_to(HOME / "node_modules")

    def check(body: dict[str, Any]) -> str:
        (tmp_path / "dashboard.ts").write_text(source(body), "utf-8")
        module = ("--module", "nodenext", "--moduleResolution", "nodenext", "--preserveSymlinks")
        command: list[str | Path] = [
            tmp_path / "node_modules/.bin/tsc",
            "--noEmit",
            "--strict",
            "--skipLibCheck",
            *module,
            "dashboard.ts",
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    return check


def test_grafana_knows_every_field_of_the_dashboard(typed: Typed) -> None:
    assert typed(dashboard()) == ""


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("refresh",), 1, "not assignable to type 'string'"),
        (("panls",), [], "panls\"' does not exist"),
        (("panels", 0, "gridPos", "width"), 3, "width\"' does not exist"),
        (("panels", 0, "options", "colorMode"), "red", '"red"\' is not assignable'),
        (("panels", -1, "fieldConfig", "defaults", "custom", "drawStyle"), "lines", '"lines"\' is not assignable'),
    ],
)
def test_what_grafana_does_not_know_is_found(path: tuple[Any, ...], value: Any, says: str, typed: Typed) -> None:
    wrong = copy.deepcopy(dashboard())
    at: Any = wrong
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert says in typed(wrong)
