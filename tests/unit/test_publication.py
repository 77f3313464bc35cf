"""What is remembered of a promise, and when its reason is no longer true."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import pyarrow as pa
import pytest
from dagster import AssetKey, AssetMaterialization

from hudi_assets.catalog import spark_sql
from hudi_assets.catalog.follow import Followed
from hudi_assets.catalog.publication import properties_of, what_differs
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.dagster.followed import report_publication
from hudi_assets.dagster.known import Known
from hudi_assets.dagster.told import PROMISED
from hudi_assets.engine import Freshness, Publication


def promise(freshness: int | None, reason: str | None = None, instant: str = "20240301000000000") -> Freshness:
    return Freshness(freshness, reason, None, 5, instant, None, 9)


def read(freshness: int | None, reason: str | None = None) -> Publication:
    return Publication("/t", promise(freshness, reason), 7, pa.schema([]), (), "d")


@pytest.mark.parametrize(
    ("reason", "why"), [("a is gone", None), ("b is gone", "the published reason is not the table's")]
)
def test_another_reason_is_published(reason: str, why: str | None) -> None:
    published = properties_of(read(None, "a is gone"))
    assert what_differs(published, read(None, reason), files=True) == why


@dataclass
class Spark:
    """Keeps the properties of one table, and what else it is told to do."""

    properties: dict[str, str]
    version: str = "4.0.0"
    told: list[str] = field(default_factory=list)
    catalog: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(tableExists=lambda _: False))

    def sql(self, statement: str) -> None:
        altered = re.fullmatch(r"ALTER TABLE `d`.`ro` (UN)?SET TBLPROPERTIES (?:IF EXISTS )?\((.*)\)", statement)
        if altered is None:
            self.told.append(statement)
        elif altered[1]:
            for key in re.findall("'(.*?)'", altered[2]):
                del self.properties[key]
        else:
            self.properties |= dict(re.findall("'(.*?)' = '(.*?)'", altered[2]))


@pytest.mark.parametrize("reason", ["a is gone", None])
def test_what_was_published_before_does_not_stay_in_a_synced_table(
    monkeypatch: pytest.MonkeyPatch, reason: str | None
) -> None:
    """A reason, and what was said of the partitions when that was wanted. Somebody else's stay."""
    theirs = {"last_commit_time_sync": "1"}
    ours = {f"hudi_assets.{key}": "x" for key in ("reason", "partitions", "partitions_digest", "watermark_ms")}
    spark, table = (
        Spark(theirs | ours),
        SimpleNamespace(path="/t", storage=None, publication=lambda: read(None, reason)),
    )
    monkeypatch.setattr(spark_sql, "_synced", lambda *_: ["ro"])
    monkeypatch.setattr(spark_sql, "properties_by_spark", lambda *_: spark.properties)
    said = spark_sql.publish_by_spark(spark, table, Names("d", "ro", "rt", Form.SYNCED))  # type: ignore[arg-type]
    assert spark.properties == theirs | said
    assert said.get("hudi_assets.reason") == reason
    assert spark.told == []


def test_the_promise_that_is_remembered_is_the_published_one() -> None:
    """What is published is read anew: it may be higher than what the look has seen."""
    events: list[AssetMaterialization] = []
    instance = SimpleNamespace(
        get_latest_materialization_event=lambda key: None, report_runless_asset_event=events.append
    )
    table = SimpleNamespace(key=lambda name: AssetKey(name))
    seen = SimpleNamespace(freshness=promise(1000, instant="20240201000000000"), now_ms=9000)
    followed = Followed(True, "why", properties_of(read(2000)))
    report_publication(Known(instance), table, seen, followed)  # type: ignore[arg-type]
    (event,) = events
    assert event.metadata[PROMISED].value == "1970-01-01T00:00:02Z"
    assert event.metadata["last_compaction"].value == "20240301000000000"
