"""One small table per test, with the assets, checks and sensor that a YAML block would give it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetExecutionContext,
    AssetKey,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    ResourceDefinition,
    RunRequest,
    SkipReason,
    asset,
    build_sensor_context,
    in_process_executor,
)
from dagster.components import build_defs_for_component
from pyspark.sql import SparkSession

from hudi_assets.catalog.publication import properties_of
from hudi_assets.components import HudiTableComponent, SourceModel
from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Freshness
from hudi_assets.reporting import pictures
from hudi_assets.resources.catalog import Catalog
from tests.tables.local_session import Frame, LocalSession, install

RASTERIZED = pictures.png


@dataclass
class Platform:
    """The definitions of the table `events` on an instance of their own, and one Spark."""

    home: Path
    spark: Any
    instance: DagsterInstance
    attributes: Mapping[str, Any] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    read: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.home / "warehouse" / "events"

    def table(self) -> HudiTable:
        return HudiTable.open(str(self.path))

    def table_with_settings(self) -> HudiTable:
        """As the platform opens it."""
        return self.component()._resource().open()

    def component(self) -> HudiTableComponent:
        source = SourceModel(type="tests.dagster.small_source.SmallSource")
        given: dict[str, Any] = {
            "name": "events",
            "spark_resource": "spark",
            "catalog_resource": "catalog",
            "path": "warehouse/events",
            "source": source,
            "record_key": ["id"],
            "ordering_field": "event_time",
            "partition_fields": ["city"],
            "buckets": 1,
            "clock": "commit",
            "data_latency": "1h",
            "compact_every": "6h",
            "freshness_slo": "12h",
        }
        return HudiTableComponent(**(given | dict(self.attributes)))

    def definitions(self) -> Definitions:
        read = self.read

        @asset(deps=[AssetKey(["events", "ro_snapshot"])])
        def reader(context: AssetExecutionContext) -> None:
            read.append(context.run.run_id)

        return Definitions.merge(
            build_defs_for_component(self.component()),
            Definitions(
                assets=[reader],
                executor=in_process_executor,
                resources={
                    "spark": ResourceDefinition.hardcoded_resource(SimpleNamespace(spark_session=self.spark)),
                    "catalog": self.catalog,
                },
            ),
        )

    def run(
        self,
        *assets: str,
        partition: str | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
        run_config: Mapping[str, Any] | None = None,
    ) -> ExecuteInProcessResult:
        """One run of these assets of the table (or `reader`) and their checks."""
        planned = {"ops": {"events__compaction_plan": {"config": dict(config)}}} if config else None
        keys = [AssetKey("reader") if name == "reader" else AssetKey(["events", name]) for name in assets]
        job = self.definitions().resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=keys,
            partition_key=partition,
            run_config=dict(run_config) if run_config else planned,
            tags=dict(tags or {}),
            raise_on_error=False,
        )

    def ingest(self, *windows: int) -> None:
        source = self.component().source
        assert source is not None
        batches = source.load().batches
        for window in windows:
            assert self.run("mor_table", partition=batches[window].id).success

    def compact(self, **config: Any) -> ExecuteInProcessResult:
        return self.run("compaction_plan", "ro_snapshot", "freshness", "housekeeping", config=config)

    def tick(self) -> RunRequest | SkipReason:
        """What the sensor says, without a run."""
        definitions = self.definitions()
        (sensor,) = definitions.sensors or []
        context = build_sensor_context(
            instance=self.instance,
            definitions=definitions,
            resources={"events_table": self.component()._resource(), "catalog": self.catalog},
        )
        found = sensor.evaluate_tick(context)
        if found.run_requests:
            (request,) = found.run_requests
            return request
        return SkipReason(found.skip_message)

    def published(self) -> dict[str, str]:
        return self.catalog.properties(self.spark, "events_ro")

    def metadata(self, name: str) -> dict[str, Any]:
        event = self.instance.get_latest_materialization_event(AssetKey(["events", name]))
        assert event is not None
        assert event.asset_materialization is not None
        return {key: value.value for key, value in event.asset_materialization.metadata.items()}


@pytest.fixture
def platform(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    Catalog().remove(spark, ro="events_ro", rt="events_rt")
    with DagsterInstance.ephemeral() as instance:
        yield Platform(tmp_path, spark, instance)


class InProcess(LocalSession):
    """With what the assets themselves ask of a SparkSession."""

    version = "4.0"

    def createDataFrame(self, rows: pa.Table) -> Frame:  # noqa: N802
        return self.frame(rows)


class FileCatalog(Catalog):
    """The published properties in a file instead of in Spark's catalog; no views."""

    file: str

    def publish(
        self, spark: Any, table: HudiTable, freshness: Freshness | None = None, *, ro: str, rt: str
    ) -> dict[str, str]:
        properties = properties_of(table.publication())
        Path(self.file).write_text(json.dumps(properties))
        return properties

    def properties(self, spark: Any, view: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(Path(self.file).read_text())
        return found


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """The same without Spark: for what the engine and Dagster do between themselves.

    Its pictures are made, and not rasterized, which takes a fifth of such a test: `platform` and tests of pictures do.
    """
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    install(monkeypatch.setattr)
    monkeypatch.setattr(pictures, "png", lambda figure: b"\x89PNG of " + type(figure).__name__.encode())
    with DagsterInstance.ephemeral() as instance:
        yield Platform(tmp_path, InProcess(), instance, catalog=FileCatalog(file=str(tmp_path / "catalog.json")))


def checks(result: ExecuteInProcessResult) -> dict[str, bool]:
    return {found.check_name: found.passed for found in result.get_asset_check_evaluations()}


def materialized(result: ExecuteInProcessResult) -> list[str]:
    return [event.asset_key.path[-1] for event in result.get_asset_materialization_events() if event.asset_key]
