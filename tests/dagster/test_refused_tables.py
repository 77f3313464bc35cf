"""A wrong block, or a wrong table in a block of many: the others go on. Where definitions are validated, none does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from dagster import AssetCheckEvaluation, DagsterInstance, Definitions, build_sensor_context

from hudi_assets.components.refused import VARIABLE
from tests.dagster.test_many_ticks import serving
from tests.defs_project import DefsProject
from tests.ports import free_port
from tests.servers import serving as serving_at

ROOT = Path(__file__).resolve().parents[2]
BLOCK = """type: hudi_assets.components.HudiTablesComponent

attributes:
  name: shop
  defaults: {external: true, data_latency: 1m}
  tables:
    - {name: orders, path: /data/orders}
    - {name: payments, path: /data/payments, compact_every: soon}
    - {name: orders, path: /data/others}
    - {name: no-name, path: /data/no}
    - {name: returns, path: /data/returns, compact_evry: 1h}
    - {name: sources, path: /data/sources, external: false, source: {type: not.there}}
    - {name: bills, path: /data/bills}
"""


def project(folder: Path, text: str = BLOCK) -> DefsProject:
    made = DefsProject(folder / "project").made()
    (made.defs / "shop").mkdir()
    (made.defs / "shop/defs.yaml").write_text(text)
    return made


def told(definitions: Definitions) -> dict[str, str]:
    """What the sensors of wrong blocks report: the words, by the name of the asset, without its mark."""
    found = {}
    with DagsterInstance.ephemeral() as instance:
        for sensor in definitions.sensors or []:
            if sensor.name.startswith("refused_"):
                tick = definitions.resolve_sensor_def(sensor.name).evaluate_tick(build_sensor_context(instance))
                for event in tick.asset_events:
                    assert isinstance(event, AssetCheckEvaluation)
                    assert (event.asset_key.path[0], event.passed) == ("refused", False)
                    found[event.asset_key.path[1]] = str(event.description)
    names = [name.rpartition("_")[0] for name in found]
    assert len(set(names)) == len(names)
    return dict(zip(names, found.values(), strict=True))


def test_the_others_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real code server."""
    monkeypatch.setenv("MANY_WRONG", '{"t1": {"compact_every": "soon"}}')
    with serving(tmp_path, monkeypatch) as served:
        assert "2 of 2 tables were looked at." in served.tick().skip_message
        (repository,) = served.location.get_repositories().values()
        (name,) = [one.name for one in repository.get_sensors() if one.name.startswith("refused_many_")]

        def told() -> list[AssetCheckEvaluation]:
            asked = served.location.get_sensor_execution_data(
                served.instance, repository.handle, name, None, None, None, None, 1.0
            )
            assert asked.skip_message == "Not looked at, because their blocks are wrong: t1."
            for event in asked.asset_events:
                served.instance.report_runless_asset_event(event)
            return list(asked.asset_events)

        (failed,) = told()
        assert re.fullmatch("refused/t1_[0-9a-f]{8}", failed.asset_key.to_user_string())
        assert not failed.passed
        assert "t1: compact_every" in str(failed.description)
        assert "'soon' is not a duration" in str(failed.description)
        assert not told()  # once


def test_each_wrong_table_is_shown_with_what_is_wrong(tmp_path: Path) -> None:
    definitions = project(tmp_path).load()
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert {"orders/ro_snapshot", "bills/ro_snapshot"} <= keys
    assert not keys & {"payments/ro_snapshot", "returns/ro_snapshot"}
    found = told(definitions)
    assert sorted(found) == ["no_name", "orders", "payments", "returns", "sources"]
    assert all("project" in words and "shop" in words for words in found.values())
    for name, words in {
        "payments": "compact_every",
        "returns": "compact_evry",
        "orders": "orders comes twice",
        "no_name": "no-name",
        "sources": "source.type",
    }.items():
        assert words in found[name]


RIGHT = """type: hudi_assets.components.HudiTableComponent

attributes: {name: orders, path: /data/orders, external: true}
"""


@pytest.mark.parametrize(
    ("wrong", "name", "expected"),
    [
        ("{name: payments, path: /p, external: true, compact_every: soon}", "payments", "compact_every .*soon"),
        ("{name: payments, path: /p, external: true, compact_evry: 1h}", "payments", "compact_evry"),
        ("{name: payments, path: /p, external: true, owners: 1}", "payments", "owners"),
        ("{name: payments, path: /p, source: {type: not.there}}", "payments", "source.type: no class"),
        ("{name: payments, path: /p, external: true, sensor: {name: a b}}", "payments", '"a b" is not a valid name'),
        ("{name: no-name, path: /p, external: true}", "no_name", "no-name"),
        ("{name: é, path: /p, external: true}", "_", "é"),
        ("{path: /p, external: true}", "block_wrong", "name"),
        ("{}", "block_wrong", "name"),
    ],
)
def test_a_wrong_block_of_one_table_is_shown(wrong: str, name: str, expected: str, tmp_path: Path) -> None:
    made = project(tmp_path, RIGHT)
    (made.defs / "wrong").mkdir()
    (made.defs / "wrong/defs.yaml").write_text(RIGHT.split("\nattributes")[0] + f"\nattributes: {wrong}\n")
    definitions = made.load()
    assert "orders/ro_snapshot" in {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    ((called, words),) = told(definitions).items()
    assert called == name
    assert re.search(expected, words)
    assert str(made.defs / "wrong") in words


ONE, MANY = "hudi_assets.components.HudiTableComponent", "hudi_assets.components.HudiTablesComponent"
NAMELESS = "{path: /p, external: true, compact_every: soon}"


def block(kind: str, attributes: str) -> str:
    return f"type: {kind}\n\nattributes: {attributes}\n"


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"x": block(ONE, "{name: orders, path: /p, external: true, compact_every: soon}")}, 1),
        ({"x": block(MANY, "{name: m, tables: [{name: orders, path: /p, external: true, x: 1}]}")}, 1),
        ({"x/same": block(ONE, NAMELESS), "y/same": block(ONE, NAMELESS)}, 2),
        ({"a-b": block(ONE, NAMELESS), "a_b": block(ONE, NAMELESS)}, 2),
        ({"x": f"{block(ONE, NAMELESS)}---\n{block(ONE, NAMELESS)}"}, 2),
        ({name: block(MANY, f"{{tables: [{NAMELESS}, {NAMELESS}]}}") for name in "xy"}, 4),
        ({"x": block(MANY, "{sensor: {name: a b}, tables: [{name: p, path: /p, external: true}]}")}, 1),
        ({"x": block(MANY, "{name: a b, tables: [{name: p, path: /p, external: true}]}")}, 1),
        ({"x": block(MANY, "{name: a b, tables: [{name: p, path: /p, external: true, x: 1}]}")}, 1),
    ],
)
def test_names_of_wrong_blocks_take_nothing_away(files: dict[str, str], wrong: int, tmp_path: Path) -> None:
    """They may be those of right tables, of other wrong blocks, none at all, or no names for Dagster."""
    made = project(tmp_path, RIGHT)
    for folder, text in files.items():
        (made.defs / folder).mkdir(parents=True)
        (made.defs / folder / "defs.yaml").write_text(text)
    keys = [spec.key.path for spec in made.load().resolve_all_asset_specs()]
    assert ["orders", "ro_snapshot"] in keys
    assert len([path for path in keys if path[0] == "refused"]) == wrong


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"x": "type: [\n"}, "parsing"),
        ({"x": block("hudi_assets.components.Nothing", "{}")}, "Nothing"),
        ({"x": block(ONE, "[1]")}, "should be an object"),
        ({"x": block(ONE, "{name: p, path: /p, external: true, catalog_resource: nowhere}")}, "nowhere"),
        ({"x": block(ONE, "{name: p, path: /p, external: true, spark_resource: nowhere}")}, "nowhere"),
        ({"x": block(ONE, "{name: orders, path: /p, external: true}")}, "orders_table"),
        ({n: block(MANY, f"{{tables: [{{name: {n}, path: /p, external: true}}]}}") for n in "xy"}, "tables_tables"),
        (
            {"x": block(ONE, NAMELESS) + "post_processing: {assets: [{target: p/ro_snapshot, attributes: {}}]}\n"},
            "p/ro_snapshot",
        ),
    ],
)
def test_what_takes_all_tables_away(files: dict[str, str], words: str, tmp_path: Path) -> None:
    """As the page says: where one of these becomes a red asset, it is to be taken out there."""
    made = project(tmp_path, RIGHT)
    for folder, text in files.items():
        (made.defs / folder).mkdir()
        (made.defs / folder / "defs.yaml").write_text(text)
    with pytest.raises(Exception, match=r".") as error:
        made.load()
    assert words in "".join(traceback.format_exception(error.value))


def test_a_mark_is_of_the_place_alone(tmp_path: Path) -> None:
    """Runs and ticks load a block anew, elsewhere too, and go by its names."""
    wrong = RIGHT.replace("external: true", "compact_every: soon, external: true")
    keys = []
    for folder in ("one", "two"):
        made = DefsProject(tmp_path / folder, "project_of_marks").made()
        (made.defs / "shop").mkdir()
        (made.defs / "shop/defs.yaml").write_text(wrong)
        keys.append([spec.key for spec in made.load().resolve_all_asset_specs()])
    assert keys[0] == keys[1]


def test_the_fields_of_a_block_of_many_are_refused_alike(tmp_path: Path) -> None:
    made = project(tmp_path, RIGHT)
    (made.defs / "wrong").mkdir()
    text = "attributes: {name: many, tables: [], sensor: {look_every: x}}"
    (made.defs / "wrong/defs.yaml").write_text(f"type: hudi_assets.components.HudiTablesComponent\n{text}\n")
    definitions = made.load()
    assert list(told(definitions)) == ["many"]
    assert len(list(definitions.sensors or [])) == 2


LOADS = """from dagster import load_from_defs_folder
from pathlib import Path
defs = load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


def environment(made: DefsProject) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{made.root}{os.pathsep}{ROOT}"}


def validated(made: DefsProject, *command: str) -> subprocess.CompletedProcess[str]:
    """What a program beside this Python says of the project."""
    program = str(Path(sys.executable).with_name(command[0]))
    return subprocess.run(
        [program, *command[1:]],
        cwd=made.root,
        env=environment(made),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        pytest.param(
            RIGHT.replace("external: true", "compact_every: soon, external: true"), marks=pytest.mark.thorough
        ),
    ],
)
def test_dg_check_fails(text: str, tmp_path: Path) -> None:
    """It says so to Dagster's code by a variable, which the load goes by."""
    made = project(tmp_path, text)
    (made.root / made.name / "definitions.py").write_text(LOADS)
    done = validated(made, "dg", "check", "defs", "--use-active-venv", "--no-check-yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "soon" in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.thorough
def test_validation_fails_where_it_loads_the_code_itself(tmp_path: Path) -> None:
    """A code server that runs already does not know that it is being validated."""
    made, port = project(tmp_path), free_port()
    module = f"{made.name}.definitions"
    (made.root / made.name / "definitions.py").write_text(LOADS)
    (made.root / "workspace.yaml").write_text(f"load_from: [grpc_server: {{host: 127.0.0.1, port: {port}}}]\n")
    server = [sys.executable, "-m", "dagster", "api", "grpc", "-m", module, "-h", "127.0.0.1", "-p", str(port)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment(made)["PYTHONPATH"])
        with serving_at(server, tmp_path / "log", port):
            asked = validated(made, "dagster", "definitions", "validate", "-w", "workspace.yaml")
            loaded = validated(made, "dagster", "definitions", "validate", "-m", module)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert loaded.returncode == 1, loaded.stdout + loaded.stderr
    assert "soon" in loaded.stdout + loaded.stderr


@pytest.mark.parametrize("variable", [VARIABLE, "DAGSTER_IS_DEFS_VALIDATION_CLI"])
def test_a_wrong_table_fails_the_load_where_that_is_asked_for(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "fail" if variable == VARIABLE else "1")
    with pytest.raises(Exception, match="shop") as error:
        project(tmp_path).load()
    assert re.search(r"payments: compact_every .*soon", str(error.value.__cause__))


def test_tables_that_are_all_wrong_are_shown(tmp_path: Path) -> None:
    text = BLOCK.replace("/data/orders}", "/data/orders, owners: 1}").replace("/data/bills", "/data/bills, x: 1")
    text = text.replace("    - {name: orders, path: /data/others}\n", "")
    definitions = project(tmp_path, text).load()
    (sensor,) = definitions.sensors or []
    assert sensor.name.startswith("refused_shop_")


def test_the_variable_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "shwo")
    with pytest.raises(Exception, match="shop") as error:
        project(tmp_path).load()
    assert "say show, or fail" in str(error.value.__cause__)
