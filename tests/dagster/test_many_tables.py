"""One block for many tables: shared defaults, labels, and one sensor that looks at all of them in turn."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from dagster import AssetCheckEvaluation, AssetKey, DagsterInstance, SensorResult, build_sensor_context

from hudi_assets.components import HudiTableComponent, HudiTablesComponent
from hudi_assets.components.fields import interval_of
from hudi_assets.components.hudi_tables import RoundModel, merged
from hudi_assets.components.refused import VARIABLE
from hudi_assets.dagster import round as rounds
from hudi_assets.dagster.assets import TableAssets
from hudi_assets.dagster.looks import is_due
from hudi_assets.dagster.round import RoundCursor
from hudi_assets.engine import HudiTable
from tests.defs_project import DefsProject
from tests.tables.local_session import LocalSession, install

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
DEFAULTS: dict[str, Any] = {
    "external": True,
    "data_latency": "1m",
    "compact_every": "15m",
    "freshness_slo": "1h",
    "group": "shop",
    "owners": ["team:shop"],
    "tags": {"tier": "gold"},
    "settings": {"hoodie.cleaner.commits.retained": "30"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path / "home"))
    session = install(monkeypatch.setattr)
    made(tmp_path / "t0", session)
    for number in range(1, 4):
        shutil.copytree(tmp_path / "t0", tmp_path / f"t{number}")
    return tmp_path


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def made(path: Path, session: LocalSession) -> None:
    """One commit of an hour ago."""
    table = HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="at", buckets=1, table_version=9)
    rows = [{"id": 1, "at": datetime.fromtimestamp(int(time.time()) - 3600, UTC)}]
    table.upsert(session, session.rows(rows, SCHEMA))


def block(home: Path, **more: Any) -> dict[str, Any]:
    tables = [{"name": f"t{number}", "path": str(home / f"t{number}")} for number in range(4)]
    return {"name": "shop", "defaults": DEFAULTS, "tables": tables, **more}


class Ticks:
    """The sensor of a block, with the cursor that its last tick left."""

    def __init__(self, home: Path, instance: DagsterInstance, **more: Any) -> None:
        from dagster.components import build_defs_for_component

        self.instance, self.cursor = instance, None
        self.block = block(home) | more
        self.definitions = build_defs_for_component(HudiTablesComponent(**self.block))

    @property
    def tables(self) -> list[TableAssets]:
        return [one._table_assets("shop_tables") for one in HudiTablesComponent(**self.block).components()]

    def evaluated(self, started: float | None = 1.0) -> Any:
        """What a tick brings; of one that somebody tests in the UI nobody says when the sensor was started."""
        (sensor,) = self.definitions.sensors or []
        context = build_sensor_context(
            instance=self.instance,
            definitions=self.definitions,
            cursor=self.cursor,
            resources={"hudi_catalog": (self.definitions.resources or {})["hudi_catalog"]},
            last_sensor_start_time=started,
        )
        return sensor.evaluate_tick(context)

    def tick(self) -> SensorResult:
        found: Any = self.evaluated()
        self.cursor = found.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        return found


def asked(found: Any) -> list[str]:
    return [request.tags["hudi_assets/table"] for request in found.run_requests]


def test_one_tick_looks_at_all_tables_and_asks_for_a_run_of_each(home: Path, instance: DagsterInstance) -> None:
    found: Any = Ticks(home, instance).tick()
    assert asked(found) == ["t0", "t1", "t2", "t3"]
    assert found.run_requests[1].asset_selection == [
        AssetKey(["t1", name]) for name in ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")
    ]
    observed = {event.asset_key.path[0] for event in found.asset_events}
    assert observed == {"t0", "t1", "t2", "t3"}
    assert len({request.run_key for request in found.run_requests}) == 4


def test_a_bad_table_does_not_stop_the_others(home: Path, instance: DagsterInstance) -> None:
    shutil.rmtree(home / "t1")
    (home / "t2/.hoodie/hoodie.properties").write_text("hoodie.table.name=t2\n")
    ticks = Ticks(home, instance)
    found: Any = ticks.tick()
    assert asked(found) == ["t0", "t3"]
    shutil.rmtree(home / "t0")
    shutil.rmtree(home / "t3")
    found = ticks.tick()
    assert asked(found) == []
    assert "4 of 4 tables were looked at. 4 could not be: t0: " in found.skip_message


def test_a_tick_that_has_no_time_left_goes_on_at_the_next_one(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    looked: list[str] = []
    real = rounds.evaluate_table  # type: ignore[attr-defined]

    def slowly(context: Any, table: Any) -> SensorResult:
        now[0] += 1
        looked.append(table.name)
        return real(context, table)

    monkeypatch.setattr(rounds, "evaluate_table", slowly)
    ticks = Ticks(home, instance, sensor={"look_seconds": 3})
    assert asked(ticks.tick()) == ["t0", "t1", "t2"]
    assert RoundCursor.of(ticks.cursor).next == "t3"
    ticks.tick()
    assert looked == ["t0", "t1", "t2", "t3", "t0", "t1"]
    ticks = Ticks(home, instance, sensor={"look_seconds": 0})  # a table is looked at whatever time there is
    del looked[:]
    for _ in range(5):
        ticks.tick()
    assert looked == ["t0", "t1", "t2", "t3", "t0"]


def test_the_log_says_which_table_a_line_is_of(
    home: Path, instance: DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    Ticks(home, instance).tick()
    logged = capsys.readouterr().err
    assert all(f"t{number}: first compaction" in logged for number in range(4))


def test_what_a_look_reported_is_not_reported_again_at_once(home: Path, instance: DagsterInstance) -> None:
    ticks = Ticks(home, instance)
    first: Any = ticks.tick()
    again: Any = ticks.tick()
    assert [event for event in first.asset_events if event.asset_key.path[-1] == "freshness"]
    assert not [event for event in again.asset_events if event.asset_key.path[-1] == "freshness"]


def test_the_cursor_is_packed_and_one_of_others_is_passed_over() -> None:
    cursor = RoundCursor("t7", {f"t{n}": '{"at": 1795373373000, "state": "..."}' for n in range(1000)})
    assert RoundCursor.of(cursor.text()) == cursor
    assert len(cursor.text()) < 12_000
    for other in (None, "", "x", "[1, 2]", '{"a": 1}', '["t", "bm8="]'):
        assert RoundCursor.of(other) == RoundCursor()


# ------------------------------------------------------------------------------- the block


def test_the_block_loads_with_labels_and_one_job(home: Path) -> None:
    project = DefsProject(home / "project").made()
    tables = block(home)
    tables["tables"][1] |= {"group": "other", "tags": {"kind": "log"}}
    text = yaml.safe_dump({"type": "hudi_assets.components.HudiTablesComponent", "attributes": tables})
    (project.defs / "shop").mkdir()
    (project.defs / "shop/defs.yaml").write_text(text)
    definitions = project.load()
    specs = {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}
    assert {spec.group_name for key, spec in specs.items() if key.startswith("t0/")} == {"shop"}
    assert {spec.group_name for key, spec in specs.items() if key.startswith("t1/")} == {"other"}
    assert specs["t1/freshness"].tags["tier"] == "gold"
    assert specs["t1/freshness"].tags["kind"] == "log"
    assert specs["t0/freshness"].owners == ["team:shop"]
    repository = definitions.get_repository_def()
    assert repository.has_job("shop_compaction")
    assert not repository.has_job("t0_compaction")
    assert [one.name for one in repository.sensor_defs] == ["shop_event_time_trigger"]


def test_all_tables_are_one_resource_which_runs_find_their_table_in(home: Path, instance: DagsterInstance) -> None:
    """Dagster goes through all resources for each asset and check: with one for each table, 1,000 took minutes."""
    definitions = Ticks(home, instance).definitions
    assert set(definitions.resources or {}) == {"hudi_spark", "hudi_catalog", "shop_tables"}
    job = definitions.resolve_implicit_global_asset_job_def()
    checked = job.get_subset(asset_selection={AssetKey(["t2", "compaction_plan"])}).execute_in_process(
        instance=instance,
        run_config={"ops": {"t2__compaction_plan": {"config": {"dry_run": True}}}},
    )
    assert checked.success


def test_one_table_can_have_group_owners_and_tags(home: Path) -> None:
    from dagster.components import build_defs_for_component

    component = HudiTableComponent(name="t0", path=str(home / "t0"), **DEFAULTS)
    specs = build_defs_for_component(component).resolve_all_asset_specs()
    assert {spec.group_name for spec in specs} == {"shop"}


def test_wrong_tables_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "fail")
    wrong = block(home)
    wrong["tables"][2]["data_latency"] = "soon"
    with pytest.raises(ValueError, match=r"tables: t2: data_latency .*soon"):
        HudiTablesComponent(**wrong)
    twice = block(home)
    twice["tables"][2]["name"] = "t0"
    with pytest.raises(ValueError, match="t0 comes twice"):
        HudiTablesComponent(**twice)


def test_defaults_are_merged_key_by_key() -> None:
    assert merged({"a": 1, "settings": {"x": 1, "y": 2}}, {"b": 2, "settings": {"y": 3}}) == {
        "a": 1,
        "b": 2,
        "settings": {"x": 1, "y": 3},
    }


def test_what_many_tables_report_at_a_pace_is_spread_over_it(home: Path, instance: DagsterInstance) -> None:
    """All began together, at the first tick or after an outage of the daemon; a tick comes each 40 seconds."""
    (table, *_) = Ticks(home, instance).tables
    tables = [replace(table, name=f"table{number}") for number in range(1000)]
    every, then = 300_000, 1_795_000_000_000
    last = dict.fromkeys((one.name for one in tables), then)
    reports: dict[str, int] = dict.fromkeys(last, 0)
    busiest = 0
    for now in range(then + 40_000, then + 10 * every + 1, 40_000):
        due = [one for one in tables if is_due(one, last[one.name], now, every)]
        busiest = max(busiest, len(due))
        for one in due:
            assert now - last[one.name] <= every + 40_000
            last[one.name] = now
            reports[one.name] += 1
    assert busiest < 200
    assert set(reports.values()) == {10}
    alone = replace(table, shared_key=None)
    assert [is_due(alone, then, then + at, every) for at in (every - 1, every)] == [False, True]


QUIET = {**DEFAULTS, "data_latency": "5h", "compact_every": "1h", "freshness_slo": "9h"}


def reported(found: Any) -> list[str]:
    """The tables that a tick says something of, in this order."""
    return list(dict.fromkeys(event.asset_key.path[0] for event in found.asset_events))


def test_what_does_not_fit_into_a_tick_is_reported_by_later_ones(home: Path, instance: DagsterInstance) -> None:
    """The daemon writes a tick's events one by one: 4,000 at once took it minutes, and no table was looked at."""
    ticks = Ticks(home, instance, defaults=QUIET, sensor={"most_events": 9})
    first: Any = ticks.tick()
    assert len(first.asset_events) <= 9
    assert reported(first) == ["t0", "t1"]
    assert "4 of 4 tables were looked at; later ticks report 2 of them" in first.skip_message
    assert sorted(RoundCursor.of(ticks.cursor).tables) == ["t0", "t1"]
    assert RoundCursor.of(ticks.cursor).next == "t2"
    second: Any = ticks.tick()
    assert reported(second) == ["t2", "t3"]
    assert RoundCursor.of(ticks.cursor).next is None
    assert not ticks.tick().asset_events
    seen = {event.asset_key.path[0]: event.asset_key for one in (first, second) for event in one.asset_events}
    assert sorted(seen) == ["t0", "t1", "t2", "t3"]


def test_runs_and_failing_checks_do_not_wait_for_other_reports(home: Path, instance: DagsterInstance) -> None:
    tables = [{"name": f"t{n}", "path": str(home / f"t{n}")} for n in range(4)]
    tables[2]["data_latency"] = "1m"
    found: Any = Ticks(home, instance, defaults=QUIET, tables=tables, sensor={"most_events": 4}).tick()
    assert asked(found) == ["t2"]
    assert reported(found) == ["t0", "t2"]


@pytest.mark.parametrize("passed", [True, False])
def test_a_failing_check_does_not_wait(passed: bool) -> None:
    def result() -> SensorResult:
        check = AssetCheckEvaluation(asset_key=AssetKey(["t0", "freshness"]), check_name="fresh", passed=passed)
        return SensorResult(asset_events=[check], skip_reason="nothing is due")

    context = build_sensor_context()
    found = rounds.Found(context, {}, most_events=1, events=[object()])
    table = HudiTableComponent(name="t0", path="/t0", external=True)._table_assets()
    found.take(table, result)
    assert (found.left_out, len(found.events)) == ((["t0"], 1) if passed else ([], 2))


def test_a_tick_says_where_a_table_was_not_looked_at_for_too_long(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    ticks = Ticks(home, instance, defaults=QUIET)
    ticks.tick()
    now[0] += 59
    found: Any = ticks.tick()
    assert "longer than" not in found.skip_message
    now[0] += 72
    found = ticks.tick()
    assert "t3 was not looked at for 72 s, longer than `look_every`, 60 s" in found.skip_message


def test_dagsters_interval_leaves_room_in_look_every() -> None:
    def interval(**sensor: Any) -> int:
        model = RoundModel(**sensor)
        return interval_of(model.look_every, model.minimum_interval_seconds)

    assert interval() == 40
    assert interval(look_every="30s") == 20
    assert interval(look_every="1s") == 1
    assert interval(look_every="10m", minimum_interval_seconds=7) == 7
    with pytest.raises(ValueError, match=r"sensor\.look_every: .*soon"):
        RoundModel(look_every="soon")
    with pytest.raises(ValueError, match="less than a second"):
        RoundModel(look_every="0s")
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        RoundModel(minimum_interval_seconds=0)
