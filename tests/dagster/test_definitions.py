"""The code location as it is deployed, and what a wrong YAML block says."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, Definitions

from hudi_assets.components import HudiTableComponent, SourceModel
from hudi_assets.definitions import defs
from hudi_assets.demo.driver import prepare_instance
from hudi_assets.home import project_root

_SMALL = SourceModel(type="tests.dagster.small_source.SmallSource")


def test_the_code_location_loads() -> None:
    Definitions.validate_loadable(defs)
    assert {key.to_user_string() for key in defs.resolve_all_asset_keys()} == {
        "flights/mor_table",
        "flights/compaction_plan",
        "flights/ro_snapshot",
        "flights/freshness",
        "flights/housekeeping",
    }
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "no_pre_threshold_logs",
        "carried_over_logs_resolve",
        "files_match_timeline",
        "ro_complete_below_freshness",
        "no_late_records",
        "freshness_within_slo",
    }
    assert defs.resolve_sensor_def("flights_event_time_trigger").minimum_interval_seconds == 40


def test_only_checks_of_the_read_optimized_view_block() -> None:
    graph = defs.resolve_asset_graph()
    blocking = {key.name for key in graph.asset_check_keys if graph.get_check_spec(key).blocking}
    assert blocking == {"no_pre_threshold_logs", "files_match_timeline"}


def test_the_page_for_users_has_each_check_where_it_is() -> None:
    page = (project_root() / "docs/how-to/dagster.md").read_text()
    graph = defs.resolve_asset_graph()
    rows = re.findall(r"^\| `(\w+)` \((.*?)\) \| `(\w+)` \|", page, re.MULTILINE)
    assert {(name, asset, "blocking" in how) for name, how, asset in rows} == {
        (key.name, key.asset_key.path[-1], bool(graph.get_check_spec(key).blocking)) for key in graph.asset_check_keys
    }


def test_the_assets_form_one_line() -> None:
    graph = defs.resolve_asset_graph()
    line = ["mor_table", "compaction_plan", "ro_snapshot", "freshness"]
    for before, after in itertools.pairwise(line):
        assert graph.get(AssetKey(["flights", after])).parent_keys == {AssetKey(["flights", before])}
    housekeeping = graph.get(AssetKey(["flights", "housekeeping"]))
    assert housekeeping.parent_keys == {AssetKey(["flights", name]) for name in ("ro_snapshot", "freshness")}


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({}, "either `source` or `external: true`"),
        ({"source": _SMALL, "external": True}, "either `source` or `external: true`"),
        ({"external": True, "name": "two words"}, "letters, digits and underscores"),
        ({"external": True, "data_latency": "soon"}, "soon"),
        ({"external": True, "freshness_slo": "auto"}, "auto"),
        ({"external": True, "compact_every": "often"}, "compact_every(.|\\n)*often"),
        ({"external": True, "writers": "stoped"}, "writers(.|\\n)*'stopped' or 'locked'"),
        ({"external": True, "clock": "foo"}, "clock(.|\\n)*'system' or 'commit'"),
        ({"external": True, "executor": "java"}, "executor(.|\\n)*'native' or 'hudi'"),
        ({"external": True, "settings": {"hudi_assets.no.such": "1"}}, "no setting hudi_assets.no.such"),
        ({"external": True, "settings": {"hudi_assets.carry.over": "foo"}}, "hudi_assets.carry.over"),
        ({"external": True, "settings": {"carry.over": "copy"}}, "carry.over"),
        (
            {
                "external": True,
                "settings": {"hudi_assets.exact.split": True, "hudi_assets.compaction.whole.slices": True},
            },
            "contradict each other",
        ),
    ],
)
def test_a_wrong_block_is_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words):
        HudiTableComponent(**({"name": "events", "path": "events"} | attributes))


@pytest.mark.parametrize("path", ["no_such_module.Source", "tests.dagster.small_source.NoSource"])
def test_a_source_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ValueError, match=path.rsplit(".", 1)[-1]):
        SourceModel(type=path).load()


def test_something_that_is_no_source_is_refused() -> None:
    with pytest.raises(TypeError, match="batches, rows and schema"):
        SourceModel(type="builtins.dict").load()


def test_the_instance_settings_are_written_once(tmp_path: Path) -> None:
    prepare_instance(tmp_path / "dagster")
    settings = tmp_path / "dagster" / "dagster.yaml"
    settings.write_text("telemetry:\n  enabled: false\n")
    prepare_instance(tmp_path / "dagster")
    assert settings.read_text() == "telemetry:\n  enabled: false\n"
