"""How long what was replaced stays for running queries, and what Hudi's cleaner has to retain for that."""

from __future__ import annotations

import pytest

from hudi_assets.engine.actions.cleaning.query_grace import query_grace_ms, query_time
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action, Instant, QueryTime, State
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


def left(line: Timeline, cut_minutes: float, **properties: str) -> QueryTime | None:
    return query_time(
        {key.replace("_", "."): value for key, value in properties.items()},
        line,
        at(NOW - round(cut_minutes * 60_000)),
        now_ms=NOW,
        timezone="UTC",
        where="t",
    )


def some(line: Timeline, cut_minutes: float, **properties: str) -> QueryTime:
    found = left(line, cut_minutes, **properties)
    assert found is not None
    return found


GRACE, LEAST = "hudi_assets.query.grace", "hudi_assets.query.grace.least"


def stated(line: Timeline, cut_minutes: float, properties: dict[str, str]) -> QueryTime | None:
    cut = at(NOW - round(cut_minutes * 60_000))
    return query_time(properties, line, cut, now_ms=NOW, timezone="UTC", where="t")


# -- commits --------------------------------------------------------------------------------------


def test_a_steady_table_has_as_many_commits_as_the_cleaner_still_waits_for() -> None:
    """A commit every ten minutes, the last now: of ten that are retained, three lie after the plan's instant."""
    line = timeline(*range(0, 300, 10))
    found = some(line, 25)
    assert found.minutes == pytest.approx(7 * 9, abs=0.1)
    assert (found.short, found.refused, found.warning) == (False, False, None)
    assert some(line, 65).minutes == pytest.approx(3 * 9, abs=0.1)
    assert some(line, 65).short
    assert some(line, 290).minutes == pytest.approx(9, abs=0.1)  # none is left: the next one's clean takes them
    assert some(line, 25, hoodie_cleaner_commits_retained="4").minutes == pytest.approx(7.5, abs=0.1)


def test_a_burst_is_not_projected() -> None:
    """Nine commits in nine seconds, after one an hour before and an hour of silence: ten in two hours."""
    line = timeline(120, *(60 + n / 60 for n in range(9)))
    found = some(line, 60.5)
    assert found.minutes == pytest.approx(1 * 12, abs=0.1)
    assert "at the pace of the last 10, which span 2 h" in found.words
    assert found.needed == 9 + 6 + 1


def test_a_pause_ago_does_not_slow_the_pace_down() -> None:
    """What happened before the last ten commits says nothing."""
    assert some(timeline(*range(0, 100, 10), 100_000), 15).minutes == some(timeline(*range(0, 100, 10)), 15).minutes


def test_few_commits_span_the_time_since_the_first() -> None:
    assert some(timeline(30), 31).minutes == pytest.approx(9 * 30, abs=1)
    assert some(timeline(40, 20), 30).minutes == pytest.approx(9 * 20, abs=1)
    assert left(timeline(), 30) is None


def test_commits_at_this_very_moment_leave_no_time() -> None:
    line = timeline(*[1 / 60] * 3)
    assert some(line, 1).minutes < 0.01
    assert not some(line, 1).refused


def test_an_unfinished_compaction_counts_as_a_write_to_come() -> None:
    line = timeline(*range(0, 300, 10))
    pending = Instant(at(NOW - 5_000), Action.COMPACTION, State.REQUESTED, "")
    more = Timeline((*line.instants, pending))
    assert some(more, 25).minutes == pytest.approx(6 * 9, abs=0.1)


# -- other policies -------------------------------------------------------------------------------


def test_hours() -> None:
    policy = {"hoodie_cleaner_policy": "KEEP_LATEST_BY_HOURS"}
    assert some(timeline(10), 30, **policy).minutes == 24 * 60 - 30
    late = some(timeline(10), 23.5 * 60, **policy)
    assert (late.minutes, late.key, late.needed) == (30, "hoodie.cleaner.hours.retained", 25)
    assert some(timeline(10), 48 * 60, **policy).minutes == pytest.approx(10, abs=0.1)  # with the next commit


def test_file_versions() -> None:
    """The one that this compaction replaces goes with the second one after it, of three that are retained."""
    policy = {"hoodie_cleaner_policy": "KEEP_LATEST_FILE_VERSIONS"}
    assert left(timeline(10, 200), 30, **policy) is None  # no compaction is in sight
    line = timeline(10, 200, compactions=(20, 40))
    found = some(line, 30, **policy)
    assert found.minutes == pytest.approx(2 * 20, abs=0.1)
    assert (found.key, found.needed) == ("hoodie.cleaner.fileversions.retained", 2 + 4)
    # Only the newest version stays: the next clean takes it.
    one = some(timeline(0, 10, 20, 30), 30, **policy, hoodie_cleaner_fileversions_retained="1")
    assert one.minutes == pytest.approx(0, abs=0.1)


# -- who says what --------------------------------------------------------------------------------

BURST = timeline(*(n / 60 for n in range(1, 31)))  # thirty commits in half a minute


def test_by_default_a_plan_is_warned_of_and_never_refused() -> None:
    found = stated(BURST, 0.4, {})
    assert found is not None
    assert (found.short, found.refused) == (True, False)
    assert found.warning == found.words


@pytest.mark.parametrize(
    ("properties", "short", "refused"),
    [
        ({GRACE: "1h"}, True, True),  # whoever states a grace says how long queries take
        ({GRACE: "1h", LEAST: "0s"}, True, False),
        ({GRACE: "1h", LEAST: "0.5s"}, True, False),
        ({LEAST: "2m"}, True, True),
        ({GRACE: "0s", LEAST: "2m"}, False, True),
    ],
)
def test_the_least_that_queries_must_have(properties: dict[str, str], short: bool, refused: bool) -> None:
    found = stated(BURST, 0.4, properties)
    assert found is not None
    assert (found.short, found.refused, found.warning) == (short, refused, found.words)


def test_a_least_that_is_no_duration() -> None:
    with pytest.raises(InvalidInput, match=r"query\.grace\.least is 'soon'"):
        stated(BURST, 0.4, {LEAST: "soon"})


def test_nobody_cleans() -> None:
    assert stated(BURST, 0.4, {"hoodie.clean.automatic": "false"}) is None
    assert stated(BURST, 0.4, {GRACE: "0s"}) is None


def test_what_is_needed_leaves_the_grace() -> None:
    """With as many commits retained as it says, the warning is gone; with one less it is not."""
    line = timeline(*range(0, 300, 10))
    needed = some(line, 65).needed
    key = "hoodie.cleaner.commits.retained"
    for retained, short in ((needed, False), (needed - 2, True)):
        found = stated(line, 65, {key: str(retained)})
        assert found is not None
        assert found.short == short


def test_no_number_of_commits_is_asked_for_on_the_strength_of_a_burst() -> None:
    found = stated(BURST, 0.4, {})
    assert found is not None
    assert (found.key, found.needed) == ("hoodie.cleaner.hours.retained", 2)
    assert found.words.endswith(
        "hoodie.cleaner.policy=KEEP_LATEST_BY_HOURS with hoodie.cleaner.hours.retained=2 or more."
    )


def test_the_words() -> None:
    line = timeline(*range(0, 300, 10))
    assert some(line, 65).words == (
        "Queries that still read what this compaction replaces have about 27 min before Hudi's cleaner "
        "(KEEP_LATEST_COMMITS) deletes it: that comes with 3 more commits, at the pace of the last 10, which span "
        "1 h 30 min; 7 lie after the plan's instant already. Such a query fails and has to be repeated; no row is "
        "lost. "
        "To leave it 1 h, on every writer and here: hoodie.cleaner.commits.retained=15 or more; it is 10."
    )
