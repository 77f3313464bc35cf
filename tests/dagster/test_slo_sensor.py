"""A sensor that goes by the freshness SLO: when it asks for a compaction, up to where, and what it says meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    MetadataValue,
    RunRequest,
    validate_run_config,
)

from hudi_assets.components import HudiTableComponent, HudiTablesComponent
from hudi_assets.dagster import sensors
from hudi_assets.dagster.decisions import Compact, Wait, decide
from hudi_assets.dagster.told import BESIDES, publish_ms, told_metadata
from hudi_assets.engine import InvalidInput, NoPlan, SloTerms, StartNow, WaitUntil
from hudi_assets.engine.model import Plan
from hudi_assets.engine.model.units import parse_time
from hudi_assets.engine.past import rewriting
from tests.dagster.conftest import Platform
from tests.dagster.small_source import ms
from tests.dagster.test_looks import hang, live
from tests.dagster.test_many_tables import DEFAULTS, Ticks, block, made
from tests.dagster.ticking import Sensor
from tests.tables.local_session import LocalSession

HOUR = 3_600_000
SLO = "freshness_within_slo"
# The clock is the commits', three hours apart: nobody looks in between.
BY_SLO = {"compact_by": "freshness_slo", "freshness_slo": "12h", "sensor": {"look_every": "3h"}}
FRESHNESS = AssetKey(["events", "freshness"])


@pytest.fixture
def sensor(quick: Platform) -> Sensor:
    quick.attributes = BY_SLO
    return Sensor(quick)


def asked(sensor: Sensor) -> RunRequest:
    sensor.tick()
    (request,) = sensor.last.run_requests
    assert isinstance(request, RunRequest)
    return request


def threshold_of(request: RunRequest, table: str) -> str:
    return str(request.run_config["ops"][f"{table}__compaction_plan"]["config"]["threshold"])


def run(sensor: Sensor, request: RunRequest) -> None:
    """The run that was asked for, of the table's own job."""
    job = sensor.platform.definitions().resolve_job_def("events_compaction")
    done = job.execute_in_process(instance=sensor.instance, run_config=request.run_config, tags=request.tags)
    assert done.success


# -- when, and up to where ------------------------------------------------------------------------


def test_it_waits_as_long_as_the_slo_allows_and_says_so(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1, 2)  # the first record is of 00:15, and it is 09:00
    sensor.tick()
    assert "the SLO of 12 h needs no compaction until 2024-03-01T12:1" in sensor.skip
    assert "would move 0.1 MB" in sensor.skip
    found = sensor.observed
    assert found["proposal"].startswith("wait until 2024-03-01T")
    assert found["proposal_why"] == sensor.skip
    assert found["proposal_bytes"] > 0
    assert sensor.check(SLO) is True


def test_it_asks_for_what_the_slo_needs_and_the_run_goes_up_to_there(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1, 2, 3)
    request = asked(sensor)
    assert "must be in a published base file by 2024-03-01T12:1" in request.tags["hudi_assets/reason"]
    threshold = parse_time(threshold_of(request, "events"))
    assert sensor.observed["proposal"].startswith("compact up to ")
    run(sensor, request)
    (done,), (bill,) = sensor.platform.table().past_compactions(), sensor.platform.table().bills()
    told = sensor.platform.metadata("ro_snapshot")
    assert (told["bytes_read"], told["bytes_written"]) == (bill.bytes_read, bill.bytes_written)
    assert told["freshness_gained_hours"] == round((bill.gained_ms or 0) / HOUR, 3) > 0
    assert told["bytes_per_hour_of_freshness"] == round(bill.bytes_per_hour or 0) > 0
    assert done.threshold == threshold != ms(12) - HOUR  # up to where `compact_every` goes
    sensor.platform.ingest(4)
    sensor.tick()
    assert "needs no compaction until" in sensor.skip


def test_compact_every_is_as_it_was(quick: Platform) -> None:
    sensor = Sensor(quick)
    quick.ingest(0)
    request = asked(sensor)
    assert request.run_config == {}
    assert "proposal" not in sensor.observed


def test_a_plan_that_was_not_finished_comes_first(sensor: Sensor) -> None:
    sensor.platform.ingest(0)
    assert sensor.platform.run("compaction_plan").success
    request = asked(sensor)
    assert "not finished" in request.tags["hudi_assets/reason"]
    assert request.run_config == {}


def test_a_bound_comes_before_the_slo(sensor: Sensor) -> None:
    sensor.platform.ingest(0, 1, 2, 3)
    run(sensor, asked(sensor))
    sensor.platform.attributes = BY_SLO | {"bounds": {"bytes_per_hour": 1}}
    sensor.platform.ingest(4, 6, 7)
    sensor.tick()
    words = sensor.observed["proposal_why"]
    assert "MB is needed for the SLO of 12 h" in words
    assert "the bytes an hour allow none until 20" in words
    assert not sensor.last.run_requests


def test_a_proposal_decides_where_there_is_one() -> None:
    plan = Plan("20240301000000000", 8 * HOUR, (), "strategy", {})
    given: dict[str, Any] = {
        "pending": None,
        "due": plan,
        "last_threshold": 8 * HOUR,
        "freshness": 8 * HOUR,
        "published": 8 * HOUR,
        "now": 9 * HOUR,
        "compact_every": HOUR,
        "slo": 10 * HOUR,
    }
    start = StartNow(5 * HOUR, 100, 1, 1, None, True, "rows are due")
    assert decide(**given, proposal=start) == Compact("rows are due", None, 5 * HOUR)
    assert decide(**(given | {"due": NoPlan("a write is unfinished")}), proposal=start) == Wait("a write is unfinished")
    wait = WaitUntil(5 * HOUR, 100, "not yet")
    assert decide(**(given | {"due": NoPlan("not yet")}), proposal=wait) == Wait("not yet")
    assert isinstance(decide(**given), Wait)


@pytest.mark.parametrize(
    "threshold", [0, -1, 20130101, 86_399_999, 999_999_999, 1_000_000_000, 1_735_689_600_123, -(10**14), 10**17]
)
def test_a_run_reads_the_threshold_that_it_was_given(
    sensor: Sensor, threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of digits alone `0` is refused, `20130101` is a day of 2013, and `1000000000` looks like seconds."""
    sensor.platform.ingest(0)
    start = StartNow(threshold, 100, 1, 1, None, True, "rows are due")
    monkeypatch.setattr(rewriting, "propose", lambda *_: start)
    monkeypatch.setattr(sensors, "decide", lambda **_: Compact("rows are due", None, threshold))
    assert parse_time(threshold_of(asked(sensor), "events")) == threshold


# -- what is learnt -------------------------------------------------------------------------------


def test_a_run_notes_what_it_took_besides_and_the_sensor_counts_on_it(sensor: Sensor) -> None:
    sensor.platform.ingest(0)
    assert sensor.platform.compact(threshold=str(ms(0.5))).success
    (measured,) = sensor.platform.metadata("freshness")[BESIDES]
    assert 0 < measured < 600
    sensor.platform.ingest(1, 2)  # what is left begins at 02:15 and is due at 14:15, and it is 09:00
    sensor.tick()
    assert "needs no compaction until 2024-03-01T14:1" in sensor.skip
    slow = AssetMaterialization(FRESHNESS, metadata={BESIDES: MetadataValue.json([3 * 3600.0])})
    sensor.instance.report_runless_asset_event(slow)
    assert "by 2024-03-01T14:14" in asked(sensor).tags["hudi_assets/reason"]


def test_every_publication_keeps_what_runs_took(sensor: Sensor) -> None:
    instance: DagsterInstance = sensor.instance
    for seconds in (5.0, None, *range(20, 31)):
        told = told_metadata(instance, FRESHNESS, {}, seconds)
        instance.report_runless_asset_event(AssetMaterialization(FRESHNESS, metadata=told))
    assert told_metadata(instance, FRESHNESS, {})[BESIDES].value == [float(n) for n in range(21, 31)]


def test_of_many_runs_the_slowest_may_be_an_accident() -> None:
    assert publish_ms({}, HOUR) is None
    assert publish_ms({BESIDES: "?"}, HOUR) is None
    assert publish_ms({BESIDES: [20.0, 3000.0]}, HOUR) == 3_000_000
    assert publish_ms({BESIDES: [20.0, 7000.0, 30.0, 10.0, 10.0]}, HOUR) == 30_000


def test_of_few_runs_one_that_took_hours_leaves_time_to_wait() -> None:
    assert publish_ms({BESIDES: [40.0, 8 * 3600.0, 45.0]}, HOUR) == HOUR
    assert publish_ms({BESIDES: [8 * 3600.0] * 5}, HOUR) == 8 * HOUR  # that is the rule


def test_a_run_that_took_longer_than_the_slo_keeps_no_row_from_waiting(sensor: Sensor) -> None:
    sensor.platform.attributes = BY_SLO | {"freshness_slo": "15h"}
    sensor.platform.ingest(0)
    assert sensor.platform.compact(threshold=str(ms(0.5))).success
    sensor.platform.ingest(1)  # what is left begins at 01:15, and it is 06:00
    slow = AssetMaterialization(FRESHNESS, metadata={BESIDES: MetadataValue.json([20 * 3600.0])})
    sensor.instance.report_runless_asset_event(slow)
    sensor.tick()
    assert "needs no compaction until" in sensor.skip


# -- what the check says --------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [(0, 1), (0, 1, 2, 3, 4)])
def test_a_policy_that_fails_changes_nothing_about_the_check(
    sensor: Sensor, windows: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor.platform.ingest(*windows)
    sensor.platform.attributes = {"freshness_slo": "12h"}
    sensor.tick()
    before = sensor.evaluation(SLO)
    assert before is not None
    assert before.passed is (len(windows) == 2)
    sensor.platform.attributes = BY_SLO
    sensor.instance.wipe_assets([FRESHNESS])

    def broken(*_: object) -> None:
        raise ZeroDivisionError("no such number")

    monkeypatch.setattr(rewriting, "propose", broken)
    with pytest.raises(ZeroDivisionError):
        sensor.tick()
    after = sensor.evaluation(SLO)
    assert after is not None
    assert (after.passed, after.metadata) == (before.passed, before.metadata)
    said, with_policy = (str(one.description).partition("; ") for one in (before, after))
    assert said[0] == with_policy[0]
    if not after.passed:  # and why nobody asks for a run
        assert with_policy[2] == "the policy of the freshness SLO failed: ZeroDivisionError: no such number"


def test_a_policy_that_fails_keeps_no_pending_plan_from_its_end(
    sensor: Sensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor.platform.ingest(0)
    assert sensor.platform.run("compaction_plan").success
    monkeypatch.setattr(rewriting, "propose", None)
    assert "not finished" in asked(sensor).tags["hudi_assets/reason"]


def test_a_hung_writer_changes_nothing_about_the_check(quick: Platform) -> None:
    """It holds the freshness back, and both say by how much; nothing can be planned beside it."""
    live(quick)
    hang(quick.path, minutes_ago=90)
    found = []
    for by in ("compact_every", "freshness_slo"):
        quick.attributes = {**quick.attributes, "compact_by": by}
        sensor = Sensor(quick)
        sensor.tick()
        assert sensor.skip
        check = sensor.evaluation(SLO)
        assert check is not None
        found.append((check.passed, (check.description or "").partition(" behind")[0]))
    assert found == [(False, "1 h 35 min")] * 2


def test_another_strategy_has_no_slo(sensor: Sensor) -> None:
    sensor.platform.ingest(0)
    settings = {
        "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"
    }
    sensor.platform.attributes = BY_SLO | {"settings": settings}
    with pytest.raises(InvalidInput, match="A freshness SLO says nothing to"):
        sensor.tick()
    assert sensor.check(SLO) is False


def test_of_many_tables_each_has_its_own_slo(tmp_path: Path, quick: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was written an hour ago. The sensor of all asks for a run of those that need one, and the job takes it."""
    session = LocalSession()
    for number in range(4):
        made(tmp_path / f"t{number}", session)
    defaults = DEFAULTS | {"compact_by": "freshness_slo"}
    tables = block(tmp_path)["tables"]
    tables[3]["freshness_slo"] = "1d"
    ticks = Ticks(tmp_path, quick.instance, defaults=defaults, tables=tables)
    found: Any = ticks.tick()
    assert [request.tags["hudi_assets/table"] for request in found.run_requests] == ["t0", "t1", "t2"]
    for number, request in enumerate(found.run_requests):
        job = ticks.definitions.resolve_job_def("shop_compaction").get_subset(
            asset_selection=set(request.asset_selection)
        )
        validate_run_config(job, request.run_config)
        assert threshold_of(request, f"t{number}").endswith("Z")
    (waits,) = [event for event in found.asset_events if event.asset_key == AssetKey(["t3", "freshness"])][:1]
    assert waits.metadata["proposal"].value.startswith("wait until ")


# -- blocks ---------------------------------------------------------------------------------------

EXTERNAL: dict[str, Any] = {"name": "t", "path": "t", "external": True, "data_latency": "1h", "freshness_slo": "6h"}


def test_a_block_has_the_owners_words() -> None:
    bounds: Any = {"late_every": "1h", "least_gap": "30m", "bytes_per_hour": 10, "hours": "6-4"}
    block = HudiTableComponent(**EXTERNAL, compact_by="freshness_slo", bounds=bounds)
    assert block._table_assets().slo_terms == SloTerms(6 * HOUR, HOUR, HOUR // 2, 10, (6, 4))
    assert HudiTableComponent(**EXTERNAL)._table_assets().slo_terms is None
    of_all = {"compact_by": "freshness_slo", "bounds": {"least_gap": "30m"}}
    many = HudiTablesComponent(defaults=of_all, tables=[EXTERNAL | {"bounds": {"hours": "5-3"}}])
    (one,) = many.components()
    assert one._table_assets().slo_terms == SloTerms(6 * HOUR, None, HOUR // 2, None, (5, 3))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"compact_by": "slo"}, "compact_every"),
        ({"compact_by": "freshness_slo", "freshness_slo": None}, "there is no freshness_slo"),
        ({"bounds": {"least_gap": "1h"}}, "they go with compact_by: freshness_slo"),
        ({"compact_by": "freshness_slo", "bounds": {"least_gap": "soon"}}, "bounds.least_gap"),
        ({"compact_by": "freshness_slo", "bounds": {"bytes_per_hour": 0}}, "greater than or equal to 1"),
        ({"compact_by": "freshness_slo", "bounds": {"hours": "22"}}, "bounds.hours: '22' are no hours of the day"),
        ({"compact_by": "freshness_slo", "bounds": {"hours": "6-6"}}, "bounds.hours"),
        ({"compact_by": "freshness_slo", "bounds": {"hours": "24-0"}}, "bounds.hours: \\(24, 0\\) are no hours"),
        ({"compact_by": "freshness_slo", "bounds": {"gap": "1h"}}, "gap"),
        ({"sensor": {"look_every": "0s"}}, "sensor.look_every: '0s' is less than a second"),
        ({"sensor": {"minimum_interval_seconds": 0}}, "greater than or equal to 1"),
        (
            {"compact_by": "freshness_slo", "settings": {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS"}},
            "goes with no hoodie.compact.inline.trigger.strategy",
        ),
        ({"compact_by": "freshness_slo", "data_latency": "6h"}, "data_latency: 6h \\+ sensor.look_every: 1m, that is"),
        (
            {"compact_by": "freshness_slo", "bounds": {"least_gap": "5h"}},
            "table t: bounds: .* 6 h 1 min behind the clock",
        ),
        ({"compact_by": "freshness_slo", "bounds": {"hours": "22-6"}}, "16 h a day .* an SLO of more than 17 h 1 min"),
        (
            {"compact_by": "freshness_slo", "bounds": {"least_gap": "6h"}, "data_latency": "auto"},
            "starts are 6 h or more apart \\(least gap\\), with 1 min until the next look",
        ),
    ],
)
def test_a_block_that_contradicts_itself_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HudiTableComponent(**(EXTERNAL | wrong))


def test_an_slo_that_compact_every_would_break_can_be_kept() -> None:
    HudiTableComponent(**(EXTERNAL | {"compact_every": "6h", "compact_by": "freshness_slo"}))
    with pytest.raises(ValueError, match="can never be kept"):
        HudiTableComponent(**(EXTERNAL | {"compact_every": "6h"}))
