"""What a block cannot mean is refused when it loads, in words that name the fields."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dagster import AssetKey, FreshnessPolicy
from pydantic import ValidationError

from tests.dagster.conftest import Platform


def test_an_slo_that_can_never_be_kept_is_refused(quick: Platform) -> None:
    quick.attributes = {"data_latency": "2h", "compact_every": "10h", "freshness_slo": "1h"}
    with pytest.raises(ValidationError) as error:
        quick.component()
    words = str(error.value)
    for field in ("freshness_slo: 1h", "data_latency: 2h", "compact_every: 10h", "sensor.look_every: 1m"):
        assert field in words
    assert "12 h 1 min" in words
    quick.attributes = {**quick.attributes, "freshness_slo": "12h"}
    with pytest.raises(ValidationError):  # it forgets the tick
        quick.component()
    quick.attributes = {**quick.attributes, "freshness_slo": "721m"}
    quick.component()


@pytest.mark.parametrize("latency", ["auto", None])
def test_a_latency_that_is_not_known_counts_for_nothing(quick: Platform, latency: str | None) -> None:
    quick.attributes = {"data_latency": latency, "compact_every": "1h", "freshness_slo": "1h"}
    with pytest.raises(
        ValidationError, match=r"lie compact_every: 1h \+ sensor.look_every: 1m, that is 1 h 1 min, behind"
    ):
        quick.component()
    quick.attributes = {**quick.attributes, "freshness_slo": "61m"}
    quick.component()


def test_the_trigger_may_be_stated(quick: Platform) -> None:
    settings = {"hoodie.compact.inline.trigger.strategy": "EVENT_TIME_TRIGGER"}
    quick.attributes = {"compact_every": "10h", "freshness_slo": "1h", "settings": settings}
    with pytest.raises(ValidationError, match="can never be kept"):
        quick.component()


@pytest.mark.parametrize(
    "given",
    [
        {"settings": {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS"}},
        {"settings": {"hoodie.compaction.strategy": "LogFileSizeBasedCompactionStrategy"}},
        {"freshness_slo": None},
    ],
)
def test_what_cannot_be_judged_is_not(quick: Platform, given: dict[str, Any]) -> None:
    quick.attributes = {"data_latency": "30m", "compact_every": "10h", "freshness_slo": "1h", **given}
    quick.component()


def test_the_pace_of_reports_is_a_duration(quick: Platform) -> None:
    quick.attributes = {"sensor": {"report_every": "often"}}
    with pytest.raises(ValidationError, match=r"sensor\.report_every: .*often"):
        quick.component()


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"clock": "system"}, timedelta(hours=12)),
        ({"clock": "commit"}, None),
        ({"clock": "system", "freshness_slo": None}, None),
    ],
)
def test_the_freshness_goes_stale_by_dagsters_own_word(
    quick: Platform, given: dict[str, Any], window: timedelta | None
) -> None:
    quick.attributes = given
    policies = {
        spec.key: spec.freshness_policy
        for spec in quick.definitions().resolve_all_asset_specs()
        if spec.freshness_policy
    }
    expected = {AssetKey(["events", "freshness"]): FreshnessPolicy.time_window(window)} if window else {}
    assert policies == expected
