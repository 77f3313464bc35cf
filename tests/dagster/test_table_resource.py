"""What a block's fields say about a table that others made."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.components import HudiTableComponent
from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction.hudi_executor import session_settings
from hudi_assets.engine.errors import EnvironmentProblem, UnsupportedTable
from hudi_assets.engine.table.settings.config import EVENT_TIME_FIELD
from hudi_assets.home import project_root
from hudi_assets.resources.spark import HUDI_BUNDLE
from hudi_assets.shared_spark.local import of_bundle

SCHEMA = pa.schema([("id", pa.string()), ("paid_at", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])


def made(path: Path, *, version: int = 9, event_time_field: str | None) -> Path:
    HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="paid_at", table_version=version)
    properties = path / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(EVENT_TIME_FIELD)]
    if event_time_field:
        lines.append(f"{EVENT_TIME_FIELD}={event_time_field}")
    properties.write_text("\n".join(lines) + "\n")
    return path


def block(path: Path, **fields: str) -> HudiTable:
    return HudiTableComponent(name="payments", path=str(path), external=True, **fields)._resource().open()  # type: ignore[arg-type]


def test_the_blocks_event_time_field_counts_where_the_table_names_none(tmp_path: Path) -> None:
    path = made(tmp_path / "t", event_time_field=None)
    assert block(path).config.event_time_field is None
    assert block(path, event_time_field="paid_at").config.event_time_field == "paid_at"


def test_the_tables_own_event_time_field_stays(tmp_path: Path) -> None:
    path = made(tmp_path / "t", event_time_field="paid_at")
    assert block(path, event_time_field="n").config.event_time_field == "paid_at"


def test_the_blocks_event_time_unit_counts_where_the_table_states_none(tmp_path: Path) -> None:
    path = made(tmp_path / "t", event_time_field="n")
    assert block(path).config.event_time_unit is None
    assert block(path, event_time_unit="us").config.event_time_unit == "us"
    with pytest.raises(ValueError, match=r"event_time_unit(.|\n)*'s', 'ms' or 'us'"):
        block(path, event_time_unit="days")
    with (path / ".hoodie/hoodie.properties").open("a") as file:
        file.write("hudi_assets.event.time.unit=ms\n")
    assert block(path, event_time_unit="us").config.event_time_unit == "ms"


@pytest.mark.parametrize("how", [{"event_time_unit": "us"}, {"settings": {"hudi_assets.event.time.unit": "us"}}])
def test_a_table_that_is_created_states_the_blocks_unit(how: dict[str, Any], tmp_path: Path) -> None:
    made = HudiTableComponent(
        name="payments", path=str(tmp_path / "t"), external=True, record_key=["id"], ordering_field="n", **how
    )
    made._resource().open_or_create(SCHEMA)
    assert HudiTable.open(str(tmp_path / "t")).config.event_time_unit == "us"


def test_the_block_says_who_executes(tmp_path: Path) -> None:
    path = made(tmp_path / "t", event_time_field="paid_at")
    assert block(path).config.executor == "native"
    assert block(path, executor="hudi").config.executor == "hudi"
    with pytest.raises(ValueError, match=r"executor(.|\n)*'native' or 'hudi'"):
        block(path, executor="flink")


def test_settings_may_be_numbers_and_truth_values(tmp_path: Path) -> None:
    """Dagster's YAML makes an int of "60", quotes or not."""
    path = made(tmp_path / "t", event_time_field="paid_at")
    given = {"hoodie.cleaner.commits.retained": 60, "hoodie.clean.automatic": False}
    properties = block(path, settings=given).config.properties  # type: ignore[arg-type]
    assert properties["hoodie.cleaner.commits.retained"] == "60"
    assert properties["hoodie.clean.automatic"] == "false"


def test_hudi_executes_no_plan_of_ours_on_version_6(tmp_path: Path) -> None:
    table = block(made(tmp_path / "t", version=6, event_time_field="paid_at"), executor="hudi", writers="stopped")
    with pytest.raises(UnsupportedTable, match="table version 6"):
        table.plan_compaction(threshold="2026-01-01T00:00:00Z")
    with pytest.raises(UnsupportedTable, match="table version 6"):
        table.execute_compaction(None, "20260101000000000")  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
def test_a_run_that_does_not_share_has_a_spark_of_its_own_and_the_homes_catalog(tmp_path: Path) -> None:
    program = """
from hudi_assets.resources import SparkResource
first = SparkResource()
first.spark_session.sql("CREATE VIEW one AS SELECT 1 AS a")
first.teardown_after_execution(None)
again = SparkResource().spark_session  # of the next run in this process: the same Spark
print(again.sql("SELECT a FROM default.one").collect()[0].a, again.sparkContext.master)
"""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "HUDI_ASSETS_"))}
    environment |= {"HUDI_ASSETS_HOME": str(tmp_path), "PYTHONPATH": str(project_root())}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "local[*]"], done.stderr
    assert (tmp_path / "catalog/metastore_db").exists()
    assert not (tmp_path / "shared_spark").exists()


def test_the_bundle_of_the_environment_goes_into_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match="not there"):
        session_settings(str(tmp_path / "hudi.jar"))
    (tmp_path / "hudi.jar").touch()
    monkeypatch.setenv(HUDI_BUNDLE, str(tmp_path / "hudi.jar"))
    assert of_bundle()["spark.jars"] == str(tmp_path / "hudi.jar")
    monkeypatch.delenv(HUDI_BUNDLE)
    assert of_bundle() == {}
