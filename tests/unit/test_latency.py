"""The learned latency: a quantile of the records' lateness, and its evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.latency import LogEvidence, ObservedLatency, observe
from hudi_assets.engine.table.settings.config import parse_config

REQUIRED = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}


def test_the_quantile_counts_records_and_not_log_files() -> None:
    evidence = [LogEvidence("1", 1000, 990, 98), LogEvidence("1", 1000, 700, 1), LogEvidence("2", 2000, 1000, 1)]
    assert observe(evidence, 0.98) == ObservedLatency(10, 0.98, 1000, 2, 3, 100, 0, "1", "2")
    found = observe(evidence, 0.99)
    assert found is not None
    assert found.latency_ms == 300
    found = observe(evidence, 1)
    assert found is not None
    assert found.latency_ms == found.max_ms == 1000


def test_no_evidence_is_none() -> None:
    assert observe([], 0.5) is None
    assert observe([LogEvidence("1", 1000, None, 5)], 0.5) is None


def test_log_files_without_event_time_are_counted_and_say_nothing() -> None:
    found = observe([LogEvidence("1", 1000, None, 5), LogEvidence("2", 1000, 900, 1)], 0.5)
    assert found == ObservedLatency(100, 0.5, 100, 1, 1, 1, 1, "2", "2")


def test_events_ahead_of_their_commit_came_in_time() -> None:
    found = observe([LogEvidence("1", 1000, 5000, 1)], 0.5)
    assert found is not None
    assert found.latency_ms == 0


EVIDENCE = st.builds(
    LogEvidence, st.sampled_from(["1", "2"]), st.integers(0, 100), st.one_of(st.none(), st.integers(0, 100)),
    st.integers(0, 5),
)  # fmt: skip


@given(st.lists(EVIDENCE, max_size=8), st.floats(0.01, 1))
def test_the_latency_covers_the_quantile_and_no_smaller_one_does(evidence: list[LogEvidence], quantile: float) -> None:
    found = observe(evidence, quantile)
    lateness = [
        max(0, one.commit_ms - one.min_event_time)
        for one in evidence
        if one.min_event_time is not None
        for _ in range(max(1, one.records))
    ]
    if found is None:
        assert not lateness
        return
    covered = sum(value <= found.latency_ms for value in lateness)
    below = sum(value < found.latency_ms for value in lateness)
    assert covered >= quantile * len(lateness)
    assert below < quantile * len(lateness)
    assert (found.records, found.max_ms) == (len(lateness), max(lateness))


def test_the_setting_is_a_duration_or_auto() -> None:
    said = parse_config({**REQUIRED, "hudi_assets.data.latency": "2h"}, "t")
    assert (said.data_latency_ms, said.data_latency_auto) == (7_200_000, False)
    learned = parse_config({**REQUIRED, "hudi_assets.data.latency": "Auto"}, "t")
    assert (learned.data_latency_ms, learned.data_latency_auto, learned.latency_quantile) == (None, True, 0.99)
    other = parse_config({**REQUIRED, "hudi_assets.data.latency.quantile": "0.5"}, "t")
    assert other.latency_quantile == 0.5


@pytest.mark.parametrize("text", ["0", "1.01", "-1", "all", "nan"])
def test_a_bad_quantile_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"hudi_assets\.data\.latency\.quantile"):
        parse_config({**REQUIRED, "hudi_assets.data.latency.quantile": text}, "t")
