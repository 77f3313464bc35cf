"""The simulator beside a real table: what both read, write and promise, after the same commits by the same policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.simulated_and_real import replayed, simulated
from hudi_assets.demo.flights import FlightStream
from hudi_assets.engine.slo.terms import terms_of
from tests.tables.local_session import LocalSession

SIX_HOURS = terms_of("6h")
STREAM = FlightStream(days=2, batch_hours=4)


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_both_do_the_same(version: int, session: LocalSession, tmp_path: Path) -> None:
    """`python -m benchmarks.simulated_and_real` has thirty days, and what a table's past says of another SLO."""
    real, feed = replayed(tmp_path / "t", STREAM, version, SIX_HOURS, session)
    found = simulated(feed, SIX_HOURS)
    assert found.compactions == real.compactions > 5
    assert found.behind == real.behind
    assert found.missed_min == pytest.approx(real.missed_min, abs=0.01)
    assert found.read == pytest.approx(real.read, rel=0.01)
    assert found.written == pytest.approx(real.written, rel=0.01)
