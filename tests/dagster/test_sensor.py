"""The sensor: its decision as a pure function, and its ticks on a real table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dagster import AssetKey, AssetMaterialization, RunRequest, SkipReason

from hudi_assets.dagster.decisions import (
    Compact,
    PublishFreshness,
    Recover,
    Wait,
    decide,
    is_held_by_hidden_rows,
    or_recover,
)
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import NO_THRESHOLD, Freshness, HiddenRows, NoPlan, Plan, QueryTime
from hudi_assets.engine.table.settings.compaction import TriggerName
from hudi_assets.resources.catalog import Catalog
from tests.dagster.conftest import Platform
from tests.dagster.small_source import ms
from tests.tables.local_session import LocalSession
from tests.tables.others import others

_H = 3_600_000


def _plan(threshold: int) -> Plan:
    return Plan("20240301000000000", threshold, (), "strategy", {})


def _decide(**changes: Any) -> object:
    """A table whose threshold would move from 5 h to 8 h; compactions are wanted every 6 h."""
    given: dict[str, Any] = {
        "pending": None,
        "due": _plan(8 * _H),
        "last_threshold": 5 * _H,
        "freshness": 5 * _H,
        "published": 5 * _H,
        "now": 9 * _H,
        "compact_every": 6 * _H,
        "slo": 10 * _H,
    }
    return decide(**(given | changes))


def test_waits_until_event_time_has_moved_far_enough() -> None:
    found = _decide()
    assert isinstance(found, Wait)
    assert "3 h" in found.why
    assert "6 h" in found.why
    assert isinstance(_decide(due=_plan(11 * _H)), Compact)


def test_the_first_compaction_waits_for_nothing() -> None:
    assert isinstance(_decide(last_threshold=None, published=None), Compact)


def test_the_engines_reason_is_passed_on() -> None:
    assert _decide(due=NoPlan("compaction 2024 is pending")) == Wait("compaction 2024 is pending")


def test_a_plan_that_was_not_finished_comes_first() -> None:
    found = _decide(pending=_plan(8 * _H), due=NoPlan("compaction 20240301000000000 is pending"))
    assert isinstance(found, Compact)
    assert "20240301000000000" in found.why


def test_a_fallen_back_freshness_is_published() -> None:
    found = _decide(freshness=2 * _H)
    assert isinstance(found, PublishFreshness)
    assert "1970-01-01T02:00:00Z" in found.why
    assert isinstance(_decide(freshness=2 * _H, due=NoPlan("x")), PublishFreshness)
    assert isinstance(_decide(freshness=None), Compact)  # unknown breaks every SLO


def test_a_broken_slo_is_repaired_at_once() -> None:
    assert isinstance(_decide(freshness=2 * _H, slo=6 * _H), Compact)
    assert isinstance(_decide(freshness=2 * _H, slo=None), PublishFreshness)


def test_a_counting_trigger_needs_no_move_of_event_time() -> None:
    assert isinstance(_decide(trigger=TriggerName.NUM_COMMITS), Compact)
    found = _decide(due=_plan(NO_THRESHOLD), trigger=TriggerName.TIME_ELAPSED, last_threshold=None)
    assert isinstance(found, Compact)
    assert "TIME_ELAPSED" in found.why


def test_bounded_plans_go_on_as_long_as_event_time_is_far_ahead() -> None:
    """A bound lets one plan do little: its own move may never be worth a compaction."""
    assert isinstance(_decide(due=_plan(5 * _H + 1)), Wait)
    assert isinstance(_decide(due=_plan(5 * _H + 1), reach=11 * _H), Compact)
    assert isinstance(_decide(due=_plan(5 * _H + 1), reach=7 * _H), Wait)


def test_too_little_time_for_running_queries_is_said_with_the_run() -> None:
    time = QueryTime(4.0, "about 4 min", True, False, "hoodie.cleaner.commits.retained", 20)
    warned = _decide(due=replace(_plan(11 * _H), query_time=time))
    assert isinstance(warned, Compact)
    assert warned.warning == "about 4 min"
    enough = _decide(due=replace(_plan(11 * _H), query_time=replace(time, short=False)))
    assert isinstance(enough, Compact)
    assert enough.warning is None


def test_leftovers_get_a_run_of_their_own_only_when_nothing_else_is_due() -> None:
    found = or_recover(Wait("all is well"), ("2 files", "3 files"))
    assert found == Recover("2 files (and 1 more): a dead process left it")
    assert or_recover(Wait("all is well"), ()) == Wait("all is well")


def test_a_freshness_that_moved_on_by_itself_is_no_alarm() -> None:
    assert isinstance(_decide(freshness=7 * _H), Wait)


def test_a_table_whose_unit_nobody_can_tell_has_its_promise_taken_back(quick: Platform) -> None:
    second = 1_700_000_000
    others(quick.path, LocalSession(), [second * 1_000_000], [second * 1000])
    quick.attributes = {
        "source": None,
        "external": True,
        "event_time_field": "ts",
        "writers": "stopped",
        "data_latency": "1h",
    }
    found = quick.tick()
    assert isinstance(found, SkipReason)
    assert "look like" in str(found.skip_message)
    assert "State hudi_assets.event.time.unit" in str(found.skip_message)
    quick.attributes = {**quick.attributes, "event_time_unit": "us"}
    found = quick.tick()
    assert isinstance(found, SkipReason)
    assert "look like milliseconds" in str(found.skip_message)
    key = AssetKey(["events", "freshness"])
    promised = AssetMaterialization(key, metadata={"freshness_ms": second * 1000})
    quick.instance.report_runless_asset_event(promised)
    request = quick.tick()
    assert isinstance(request, RunRequest)
    assert request.asset_selection == [key]


def test_no_compaction_is_asked_for_what_rows_in_no_view_hold_down() -> None:
    """The freshness stays broken for good: a run at every tick would help nobody."""
    fallen = {"freshness": 2 * _H, "published": 2 * _H, "promised": 7 * _H, "slo": 3 * _H}
    assert isinstance(_decide(**fallen), Compact)
    assert isinstance(_decide(**fallen, held=True), Wait)
    assert isinstance(_decide(**(fallen | {"published": 5 * _H}), held=True), PublishFreshness)
    assert isinstance(_decide(**fallen, held=True, due=_plan(11 * _H)), Compact)


@pytest.mark.parametrize(
    ("freshness", "lows", "held"),
    [
        (5, (), False),
        (8_999, (9_000,), True),
        (8_999, (9_000, 9_500), True),
        (8_000, (9_000,), False),  # a log file that remains is lower
        (None, (9_000,), False),  # one that remains is unknown
        (None, (9_000, None), True),
    ],
)
def test_what_holds_the_freshness_down(freshness: int | None, lows: tuple[int | None, ...], held: bool) -> None:
    hidden = tuple(HiddenRows("20240301000000000", "20240301000000001", 1, low) for low in lows)
    promise = Freshness(freshness, None, 20_000, None, None, None, computed_at=20_000, hidden=hidden)
    assert is_held_by_hidden_rows(promise) is held


@pytest.mark.spark
def test_no_table_yet(platform: Platform) -> None:
    found = platform.tick()
    assert isinstance(found, SkipReason)
    assert "no table events yet" in str(found.skip_message)


@pytest.mark.spark
def test_ticks_ask_for_a_run_and_then_say_why_not(platform: Platform) -> None:
    platform.ingest(0, 1)
    request = platform.tick()
    assert isinstance(request, RunRequest)
    assert request.asset_selection is None
    assert request.tags["hudi_assets/table"] == "events"
    platform.compact()
    found = platform.tick()
    assert isinstance(found, SkipReason)
    assert found.skip_message


@pytest.mark.spark
def test_a_failed_run_is_tried_again_under_another_run_key(platform: Platform) -> None:
    platform.ingest(0, 1)
    first = platform.tick()
    assert isinstance(first, RunRequest)
    platform.catalog = Catalog(database="no_such_database")
    failed = platform.run("compaction_plan", "ro_snapshot", "freshness", tags=first.tags)
    assert not failed.success
    platform.ingest(2, 3)
    again = platform.tick()
    assert isinstance(again, RunRequest)
    assert again.run_key != first.run_key


@pytest.mark.spark
def test_a_run_that_died_between_plan_and_execution_is_finished(platform: Platform) -> None:
    platform.ingest(0, 1)
    first = platform.tick()
    assert isinstance(first, RunRequest)
    planned = platform.run("compaction_plan", tags=first.tags)
    assert planned.success
    assert platform.table().pending_plan() is not None
    again = platform.tick()
    assert isinstance(again, RunRequest)
    assert again.run_key != first.run_key
    assert "not finished" in again.tags["hudi_assets/reason"]
    assert platform.compact().success
    assert platform.table().pending_plan() is None


@pytest.mark.spark
def test_late_data_that_breaks_the_promise_is_published_then_repaired(platform: Platform) -> None:
    platform.attributes = {"freshness_slo": "30h"}
    platform.ingest(0, 1, 2, 3, 4)
    platform.compact()
    platform.ingest(5)
    assert platform.table().freshness().freshness == ms(2) - 1
    request = platform.tick()
    assert isinstance(request, RunRequest)
    assert request.asset_selection == [AssetKey(["events", "freshness"])]
    assert platform.run("freshness", tags=request.tags).success
    assert platform.published()["hudi_assets.freshness_ms"] == str(ms(2) - 1)
    assert isinstance(platform.tick(), SkipReason)
    platform.attributes = {"freshness_slo": "12h"}
    platform.compact()
    assert platform.published()["hudi_assets.freshness_ms"] == str(ms(17))


@pytest.mark.spark
def test_an_error_of_the_engine_fails_the_tick(platform: Platform) -> None:
    platform.ingest(0)
    (platform.path / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=events\n")
    with pytest.raises(HudiAssetsError):
        platform.tick()
