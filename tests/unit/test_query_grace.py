"""How long what was replaced stays for running queries, and what Hudi's cleaner has to retain for that."""

from __future__ import annotations

import pytest

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.housekeeping.query_grace import cleaner_shortfall, query_grace_ms
from hudi_assets.engine.model import Action, Instant, State
from hudi_assets.engine.timeline.instants import Timeline, format_instant

HOUR = 3_600_000


@pytest.mark.parametrize("value", ["soon", "-1h", "7"])
def test_a_grace_that_is_no_duration(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"query\.grace"):
        query_grace_ms({"hudi_assets.query.grace": value}, "t", back_dated=True)


def test_version_6_goes_by_hudis_retention_alone() -> None:
    assert query_grace_ms({}, "t", back_dated=False) == 0
    assert query_grace_ms({"hudi_assets.query.grace": "30m"}, "t", back_dated=False) == HOUR // 2


NOW = 1_700_000_000_000


def timeline(*minutes: float, compactions: tuple[float, ...] = ()) -> Timeline:
    """Delta commits so many minutes ago, each done in a second; compactions among them."""
    instants = []
    for action, ago in [(Action.DELTA_COMMIT, m) for m in minutes] + [(Action.COMMIT, m) for m in compactions]:
        ms = NOW - round(ago * 60_000)
        instants.append(Instant(at(ms), action, State.COMPLETED, "", at(ms + 1_000)))
    return Timeline(tuple(sorted(instants, key=lambda i: i.timestamp)))


def at(ms: int) -> str:
    return format_instant(ms, "UTC")


def needed(line: Timeline, cut_minutes: float, grace_ms: int = HOUR, **properties: str) -> tuple[str, int] | None:
    found = cleaner_shortfall(
        {key.replace("_", "."): value for key, value in properties.items()},
        line,
        at(NOW - round(cut_minutes * 60_000)),
        grace_ms=grace_ms,
        now_ms=NOW,
        timezone="UTC",
        where="t",
    )
    return None if found is None else (found.key, found.needed)


def test_commits_to_retain() -> None:
    """A commit every ten minutes: those since the cut, those of the next hour, and one."""
    line = timeline(*range(5, 300, 10))
    assert needed(line, 30) is None
    assert needed(line, 30, hoodie_cleaner_commits_retained="9") == ("hoodie.cleaner.commits.retained", 10)
    assert needed(line, 30, hoodie_cleaner_commits_retained="10") is None
    assert needed(line, 30, grace_ms=10 * 60_000) is None
    assert needed(line, 100) == ("hoodie.cleaner.commits.retained", 10 + 6 + 1)


def test_a_short_timeline_is_projected() -> None:
    """Ten commits in ten minutes are sixty in an hour."""
    assert needed(timeline(*range(1, 11)), 0.5) == ("hoodie.cleaner.commits.retained", 0 + 61 + 1)


def test_hours_to_retain() -> None:
    policy = {"hoodie_cleaner_policy": "KEEP_LATEST_BY_HOURS"}
    assert needed(timeline(10), 30, **policy) is None
    assert needed(timeline(10), 24 * 60, **policy) == ("hoodie.cleaner.hours.retained", 25)


def test_versions_to_retain() -> None:
    policy = {"hoodie_cleaner_policy": "KEEP_LATEST_FILE_VERSIONS"}
    assert needed(timeline(10, 200), 30, **policy) is None
    line = timeline(10, 200, compactions=(20, 40))
    assert needed(line, 30, **policy) == ("hoodie.cleaner.fileversions.retained", 4)
    assert needed(line, 30, **policy, hoodie_cleaner_fileversions_retained="4") is None


def test_nobody_cleans() -> None:
    line = timeline(*range(1, 60))
    assert needed(line, 30) is not None
    assert needed(line, 30, hoodie_clean_automatic="false") is None
    assert needed(line, 30, grace_ms=0) is None


def test_the_reason_names_key_and_number() -> None:
    line = timeline(*range(5, 300, 10))
    properties = {"hoodie.cleaner.commits.retained": "4"}
    cut = at(NOW - 1_800_000)
    found = cleaner_shortfall(properties, line, cut, grace_ms=HOUR, now_ms=NOW, timezone="UTC", where="t")
    assert str(found) == (
        "Hudi's cleaner (KEEP_LATEST_COMMITS) would delete the files that this compaction replaces within the query "
        "grace of 1 h: hoodie.cleaner.commits.retained is 4, and has to be 10 or more on every writer"
    )
