"""What the layouts answer by a method: one test for each question, with each version's answer."""

from __future__ import annotations

import pytest

from hudi_assets.engine.model import Action, Instant, LogFile, State
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.layout.placement import NewInstant, PastInstant
from hudi_assets.engine.timeline.instants import Timeline

OLD, MID, NEW = "20260101000000001", "20260101000000002", "20260101000000003"
LATER = [8, 9]


def completed(timestamp: str) -> Instant:
    return Instant(timestamp, Action.DELTA_COMMIT, State.COMPLETED, f"{timestamp}.deltacommit", timestamp)


def _completes_never(timestamp: str) -> str | None:
    return None


def test_a_plan_of_version_6_stands_at_the_new_instant() -> None:
    timeline = Timeline((completed(OLD),))
    assert layout_of(6, "").placement(NEW, timeline, _completes_never) == NewInstant(NEW)


@pytest.mark.parametrize("version", LATER)
def test_a_plan_stands_at_a_past_instant(version: int) -> None:
    found = layout_of(version, "").placement(NEW, Timeline((completed(OLD),)), {OLD: OLD}.get)
    assert isinstance(found, PastInstant)
    assert (found.floor, found.ceiling, found.taken) == (OLD, None, frozenset({OLD}))


@pytest.mark.parametrize(("version", "stated"), [(6, False), (8, True), (9, True)])
def test_who_says_how_records_merge(version: int, stated: bool) -> None:
    assert layout_of(version, "").states_merge_mode is stated


@pytest.mark.parametrize(("version", "told"), [(6, None), (8, MID), (9, MID)])
def test_the_delta_commit_in_a_log_files_name(version: int, told: str | None) -> None:
    log = LogFile(f"p/.f_{MID}.log.1_0-0-0", "p", "f", MID, 1, "0-0-0", 1, "")
    assert layout_of(version, "").delta_commit_of(log) == told


@pytest.mark.parametrize(("version", "instant"), [(6, f"{MID}004"), (8, MID), (9, MID)])
def test_what_counts_at_once_in_the_metadata_table(version: int, instant: str) -> None:
    assert layout_of(version, "").metadata_at_once(MID) == instant


@pytest.mark.parametrize(("version", "instant"), [(6, f"{MID}001"), (8, NEW), (9, NEW)])
def test_the_instant_of_the_metadata_tables_compaction(version: int, instant: str) -> None:
    assert layout_of(version, "").metadata_compaction(MID, lambda: NEW) == instant


@pytest.mark.parametrize(
    ("pending", "on_6", "later"),
    [
        ((), True, True),
        ((OLD,), False, True),  # the compaction is named after what is folded, and would stand above it
        ((MID,), False, False),
        ((NEW,), True, True),
    ],
)
def test_what_may_be_pending_beside_the_metadata_tables_compaction(
    pending: tuple[str, ...], on_6: bool, later: bool
) -> None:
    assert layout_of(6, "").metadata_compacts_beside({MID}, {*pending}) is on_6
    for version in LATER:
        assert layout_of(version, "").metadata_compacts_beside({MID}, {*pending}) is later
