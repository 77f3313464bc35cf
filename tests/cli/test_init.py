"""`hudi-assets init`: a block for each table that is there, which Dagster loads and which compacts as it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from dagster import DagsterInstance, Definitions, build_sensor_context
from dagster import RunRequest as Request

from hudi_assets.cli.blocks import Wishes, block_of, identifier, nice
from hudi_assets.cli.init import named
from hudi_assets.components import HudiTableComponent
from hudi_assets.engine import HudiTable, parse_latency
from hudi_assets.engine.model.profile import SeenCleaner, SeenService
from tests.cli.conftest import DONE, FAILED, NOTHING_TO_DO, WRONG_USE, Answer, contents
from tests.defs_project import DefsProject, compacted
from tests.tables.local_session import LocalSession, install
from tests.tables.others import leave_to_others

SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("count", pa.int64()), ("note", pa.string())]
)
Run = Callable[..., Answer]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> LocalSession:
    return install(monkeypatch.setattr)


def made(path: Path, session: LocalSession, *, version: int = 9, schema: pa.Schema = SCHEMA, **more: Any) -> HudiTable:
    """Two commits of a minute's events, made an hour ago."""
    options: dict[str, Any] = {"record_key": ["id"], "ordering_field": "at", "buckets": 1, "table_version": version}
    table = HudiTable.create(str(path), schema, **(options | more))
    start = int(time.time()) - 3600
    for commit in range(2):
        rows = [_row(number, start + 30 * commit + number, schema) for number in range(3)]
        table.upsert(session, session.rows(rows, schema))
    if version == 6:
        leave_to_others(path)
    return table


def _row(number: int, second: int, schema: pa.Schema) -> dict[str, Any]:
    at = datetime.fromtimestamp(second, UTC)
    return {"id": number, "count": number, "note": "n", **{f.name: at for f in schema if pa.types.is_timestamp(f.type)}}


def without(path: Path, *starts: str) -> None:
    properties = path / ".hoodie/hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if not one.startswith(starts)]
    properties.write_text("\n".join(lines) + "\n")


def attributes(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())["attributes"]
    return found


# ------------------------------------------------------------------------------- one table


def test_the_block_of_a_table_loads_and_its_first_tick_asks_for_a_compaction(
    run: Run, session: LocalSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    table = made(tmp_path / "payments", session)
    now = int(time.time()) - 1
    prompt = [_row(number, now, SCHEMA) for number in range(700)]
    table.upsert(session, session.rows(prompt, SCHEMA))
    without(tmp_path / "payments", "hoodie.payload.event.time.field", "hudi_assets.")
    before = contents(tmp_path / "payments")
    project = DefsProject(tmp_path / "project").made()
    answer = run("init", tmp_path / "payments", "--out", project.defs)
    assert (answer.code, answer.err) == (DONE, "")
    assert str(project.defs / "payments/defs.yaml") in answer.out.replace("\n", "")
    given = attributes(project.defs / "payments/defs.yaml")
    assert given["event_time_field"] == "at"
    assert parse_latency(given["data_latency"]) <= 60_000  # of 706 rows six came an hour late
    assert "event_time_unit" not in given  # a timestamp needs none
    assert contents(tmp_path / "payments").keys() - before.keys() <= {".hoodie/.hudi_assets/event_times.json"}
    definitions = project.load()
    request = tick(definitions, instance, "payments")
    assert isinstance(request, Request)
    assert compacted(definitions, instance, "payments", tmp_path)
    assert HudiTable.open(str(tmp_path / "payments")).profile().remaining_log_files <= 1


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DagsterInstance]:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path / "home"))
    with DagsterInstance.ephemeral() as made:
        yield made


def tick(definitions: Definitions, instance: DagsterInstance, name: str) -> Any:
    sensor = next(one for one in definitions.sensors or () if one.name == f"{name}_event_time_trigger")
    assert definitions.resources is not None
    context = build_sensor_context(
        instance=instance,
        definitions=definitions,
        resources={key: definitions.resources[key] for key in (f"{name}_table", "hudi_catalog")},
    )
    found = sensor.evaluate_tick(context)
    return found.run_requests[0] if found.run_requests else found.skip_message


def test_integers_are_written_with_their_unit(run: Run, session: LocalSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts", buckets=1)
    rows = [{"id": 1, "ts": int(time.time() * 1e6) - 7_000_000}]
    table.upsert(session, session.rows(rows, schema))
    leave_to_others(tmp_path / "t")
    without(tmp_path / "t", "hoodie.payload.event.time.field")
    assert run("init", tmp_path / "t", "--out", tmp_path / "defs", "--writers", "stopped").code == DONE
    given = attributes(tmp_path / "defs/t/defs.yaml")
    assert (given["event_time_field"], given["event_time_unit"], given["writers"]) == ("ts", "us", "stopped")


def test_version_6_is_asked_about_its_writers(run: Run, session: LocalSession, tmp_path: Path) -> None:
    made(tmp_path / "t", session, version=6)
    answer = run("init", tmp_path / "t", "--out", tmp_path / "defs")
    assert answer.code == DONE
    assert "nothing in the table says whether its writers take a lock" in answer.err
    text = (tmp_path / "defs/t/defs.yaml").read_text()
    assert "  # writers: locked\n" in text
    assert "writers" not in attributes(tmp_path / "defs/t/defs.yaml")


def test_several_candidates_are_written_as_comments(run: Run, session: LocalSession, tmp_path: Path) -> None:
    stamp = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("id", pa.int64()), ("sent_at", stamp), ("read_at", stamp)])
    made(tmp_path / "t", session, schema=schema, ordering_field="id", event_time_field="sent_at")
    without(tmp_path / "t", "hoodie.payload.event.time.field", "hudi_assets.")
    answer = run("init", tmp_path / "t", "--out", tmp_path / "defs")
    assert answer.code == DONE
    assert "Several columns may be the event time" in answer.err
    text = (tmp_path / "defs/t/defs.yaml").read_text()
    assert "  # event_time_field: sent_at\n" in text
    assert "  # event_time_field: read_at\n" in text
    assert "event_time_field" not in attributes(tmp_path / "defs/t/defs.yaml")
    answer = run("init", tmp_path / "t", "--out", tmp_path / "defs", "--force", "--event-time-field", "read_at")
    assert (answer.code, answer.err) == (DONE, "")
    assert attributes(tmp_path / "defs/t/defs.yaml")["event_time_field"] == "read_at"


def test_a_block_that_is_there_is_never_overwritten(run: Run, session: LocalSession, tmp_path: Path) -> None:
    made(tmp_path / "t", session)
    file = tmp_path / "defs/t/defs.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("mine: true\n")
    answer = run("init", tmp_path / "t", "--out", tmp_path / "defs")
    assert answer.code == NOTHING_TO_DO
    assert "is there already" in answer.err
    assert file.read_text() == "mine: true\n"
    assert run("init", tmp_path / "t", "--out", tmp_path / "defs", "--force").code == DONE
    assert "mine" not in file.read_text()


def test_wrong_use(run: Run, tmp_path: Path) -> None:
    assert run("init", tmp_path / "nowhere").code == WRONG_USE
    assert run("init", tmp_path, "--data-latency", "soon").code == WRONG_USE
    answer = run("init", tmp_path)
    assert answer.code == NOTHING_TO_DO
    assert "no Hudi table" in answer.out


# ------------------------------------------------------------------------------- a folder of tables


def test_a_warehouse_gives_a_block_for_each_table_and_names_what_it_refuses(
    run: Run, session: LocalSession, tmp_path: Path
) -> None:
    house = tmp_path / "house"
    for name in ("sales/orders", "sales/2024 refunds", "web/orders"):
        made(house / name, session)
    made(house / "copies", session)
    properties = house / "copies/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("MERGE_ON_READ", "COPY_ON_WRITE"))
    project = DefsProject(tmp_path / "project").made()
    answer = run("init", house, "--out", project.defs, "--json")
    assert answer.code == FAILED
    states = {Path(one["path"]).relative_to(house).as_posix(): one["state"] for one in answer.json["tables"]}
    assert states == {
        "copies": "refused",
        "sales/2024 refunds": "written",
        "sales/orders": "written",
        "web/orders": "written",
    }
    refused = next(one for one in answer.json["tables"] if one["state"] == "refused")
    assert "COPY_ON_WRITE" in refused["error"]["what"]
    definitions = project.load()
    groups = {spec.key.path[0] for spec in definitions.resolve_all_asset_specs()}
    assert groups == {"sales_orders", "t_2024_refunds", "web_orders"}


def test_names_differ_by_as_many_folders_as_it_takes() -> None:
    found = named(["/a/x/t", "/a/y/t", "/b/x/t", "/b/u"])
    assert found == [("/a/x/t", "a_x_t"), ("/a/y/t", "y_t"), ("/b/x/t", "b_x_t"), ("/b/u", "u")]
    assert named(["/a/t", "/a/t"]) == [("/a/t", "t")]
    assert (identifier("2024-é x"), identifier("--")) == ("t_2024___x", "table")


def test_json_has_the_profile(run: Run, session: LocalSession, tmp_path: Path) -> None:
    made(tmp_path / "t", session)
    (found,) = run("init", tmp_path / "t", "--out", tmp_path / "defs", "--json").json["tables"]
    assert found["profile"]["choice"]["column"]["name"] == "at"
    assert found["decide"] == []
    assert json.loads(json.dumps(found)) == found


# ------------------------------------------------------------------------------- the block's text


def test_a_path_with_signs_of_yaml_is_quoted(session: LocalSession, tmp_path: Path) -> None:
    path = tmp_path / "a: b #c 'd'"
    found = block_of("t", made(path, session).profile())
    given = yaml.safe_load(found.text)["attributes"]
    assert given["path"] == str(path)
    HudiTableComponent(**given)


def test_evidence_of_table_services_cleans_and_locks(session: LocalSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", session).profile()
    seen = replace(
        table,
        table_version=6,
        services=(SeenService("compaction", 4, "20240501120000000"),),
        cleaner=SeenCleaner("20240501120000000", "KEEP_LATEST_COMMITS", 12, False),
        lock="org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    )
    found = block_of("t", seen)
    assert [text for text in found.decide if "Others ran 4 compactions" in text]
    given = yaml.safe_load(found.text)["attributes"]
    assert given["writers"] == "locked"
    assert given["settings"] == {"hoodie.cleaner.commits.retained": "12"}
    other = block_of("t", replace(seen, lock="org.apache.hudi.ZookeeperBasedLockProvider"))
    assert "writers" not in yaml.safe_load(other.text)["attributes"]


def test_latency_and_pace_are_round_and_fit_together(session: LocalSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", session).profile()
    given = yaml.safe_load(block_of("t", replace(table, pace_ms=3_600_000)).text)["attributes"]
    assert (given["data_latency"], given["compact_every"], given["freshness_slo"]) == ("90m", "6h", "18h")
    least = parse_latency(given["data_latency"]) + parse_latency(given["compact_every"])
    assert parse_latency(given["freshness_slo"]) > least
    stated = yaml.safe_load(block_of("t", table, Wishes(data_latency="auto")).text)["attributes"]
    assert stated["data_latency"] == "auto"
    assert "freshness_slo" not in stated
    history = block_of("t", _late(table, 400 * 86_400_000))
    assert [text for text in history.decide if "old events were loaded" in text]


def _late(table: Any, ms: int) -> Any:
    column = replace(table.choice.column, lateness=replace(table.choice.column.lateness, latency_ms=ms, max_ms=ms))
    return replace(table, choice=replace(table.choice, column=column))


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "1s"), (1001, "2s"), (61_000, "2m"), (3_600_000, "1h"), (3_600_001, "90m"), (86_400_000 * 31, "31d")],
)
def test_round_durations(ms: int, text: str) -> None:
    assert nice(ms) == text
    assert parse_latency(text) >= ms
