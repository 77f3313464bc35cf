"""Bounds that no policy can keep an SLO with are refused when they are stated. The simulator says which those are."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from hudi_assets.cli.commands import app
from hudi_assets.engine import InvalidInput, SloTerms, feed_of, terms_of
from hudi_assets.engine.slo.bounds import apart, check_bounds
from hudi_assets.engine.slo.simulation.feeds import Scale
from hudi_assets.engine.slo.simulation.policies import Ours
from hudi_assets.engine.slo.simulation.run import simulate

HOUR = 3_600_000
STEADY = feed_of("steady", Scale(days=9, groups=2, sample=48))


def terms(slo_h: float, gap_h: float = 0, hours: tuple[int, int] | None = None) -> SloTerms:
    return SloTerms(int(slo_h * HOUR), least_gap_ms=int(gap_h * HOUR), hours=hours)


@pytest.mark.parametrize(
    ("stated", "hours_apart"),
    [
        (terms(6), 0),
        (terms(6, 5), 5),
        (terms(6, 0, (8, 14)), 18),
        (terms(6, 0, (22, 6)), 16),
        (terms(6, 0, (0, 24)), 0),
        (terms(6, 5, (22, 6)), 16),
        (terms(6, 17, (22, 6)), 24),  # two do not fit into one night
        (terms(6, 8, (22, 6)), 24),  # the last hour ends when the gap does
        (terms(6, 7.9, (22, 6)), 16),
        (terms(6, 17, (6, 2)), 17),
        (terms(6, 30, (22, 6)), 40),  # after two evenings, and then after one more: 32 h, and 40 h
        (terms(6, 32, (22, 6)), 48),
        (terms(6, 24, (22, 6)), 24),
        (terms(6, 30), 30),
    ],
)
def test_how_far_starts_lie_apart(stated: SloTerms, hours_apart: int) -> None:
    assert apart(stated).ms == hours_apart * HOUR


@pytest.mark.parametrize(
    ("bounds", "least_h"),
    [({"gap_h": 6}, 6), ({"hours": (8, 14)}, 18), ({"hours": (22, 6)}, 16), ({"gap_h": 8, "hours": (8, 14)}, 24)],
)
def test_what_is_refused_cannot_be_kept_and_a_little_more_can(bounds: dict[str, Any], least_h: float) -> None:
    latency_ms = STEADY.latency_ms
    least_h += latency_ms / HOUR
    refused, kept = terms(least_h - (least_h > 24), **bounds), terms(least_h + 0.5, **bounds)
    with pytest.raises(InvalidInput):
        check_bounds(terms(least_h, **bounds), latency_ms)
    assert simulate(STEADY, Ours(refused), refused.slo_ms).avoidable_min > 0
    check_bounds(kept, latency_ms)
    assert simulate(STEADY, Ours(kept), kept.slo_ms).avoidable_min == 0


def test_the_reason_and_the_cure_are_in_words() -> None:
    with pytest.raises(InvalidInput) as refused:
        terms_of("6h", least_gap="5h", data_latency="55m", look_every="5m")
    assert refused.value.what == (
        "No compaction keeps an SLO of 6 h: starts are 5 h or more apart (least gap), with 55 min of data latency, "
        "with 5 min until the next look. So the freshness comes to lie 6 h behind the clock before one starts, which "
        "takes time too."
    )
    assert refused.value.hint == "Give an SLO of more than 6 h, or a shorter least gap."
    terms_of("6h", least_gap="5h", data_latency="54m", look_every="5m")
    terms_of("6h", bytes_per_hour=1)
    terms_of("6h", late_every="7h")  # says how long rows wait for which the SLO is broken already


@pytest.mark.parametrize("command", [["plan", "nowhere"], ["simulate", "--distribution", "steady"]])
def test_a_command_ends_before_it_begins(command: list[str]) -> None:
    answer = CliRunner().invoke(app, [*command, "--slo", "6h", "--hours", "22-6"])
    assert isinstance(answer.exception, InvalidInput)
    assert "no hour of 16 h a day allows a start" in str(answer.exception)


def test_a_data_latency_that_is_given_counts() -> None:
    stated = ["plan", "nowhere", "--slo", "6h", "--least-gap", "5h", "--data-latency"]
    assert "lie 6 h behind" in str(CliRunner().invoke(app, [*stated, "1h"]).exception)
    assert "lie 6 h behind" not in str(CliRunner().invoke(app, [*stated, "auto"]).exception)
