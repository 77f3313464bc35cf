"""Breakages of event times: units, bounds, lateness, freshness."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
LINKS = ("tests/unit/test_links.py",)
LIVES = ("tests/machine",)
BOUNDS = ("tests/unit/test_commit_bound.py",)
ZONES = ("tests/unit/test_time_zones.py",)
UNITS = ("tests/unit/test_event_time_units.py", "tests/property/test_event_time_units.py")
SERIES = ("tests/cli/test_series.py",)
FIRST_CONTACT = ("tests/cli/test_first_contact.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "integers whose unit nobody stated are milliseconds",
        f"{_ENGINE}/event_time/column_unit.py",
        "    if config.created_here:",
        "    if True:",
        UNITS,
    ),
    Breakage(
        "event times from 1970 on are plausible",
        f"{_ENGINE}/model/column_unit.py",
        "EARLIEST_MS: Final = 315_532_800_000",
        "EARLIEST_MS: Final = 0",
        UNITS,
    ),
    Breakage(
        "event times long after their commit are plausible",
        f"{_ENGINE}/model/column_unit.py",
        "(counts.committed_ms + LEEWAY_MS) * 1_000_000",
        "(counts.committed_ms + 100_000 * LEEWAY_MS) * 1_000_000",
        UNITS,
    ),
    Breakage(
        "of files that count in two units the first decides",
        f"{_ENGINE}/model/column_unit.py",
        "    if len(by_unit) > 1:",
        "    if False:",
        UNITS,
    ),
    Breakage(
        "a file whose values fit no unit is passed over",
        f"{_ENGINE}/model/column_unit.py",
        "            return _unknown(column, _implausible(column, one), _likely(one))",
        "            continue",
        UNITS,
    ),
    Breakage(
        "a stated unit is believed whatever the values say",
        f"{_ENGINE}/model/column_unit.py",
        "possible and stated.unit not in possible:",
        "possible and stated.unit is possible[0]:",
        UNITS,
    ),
    Breakage(
        "a stated unit is doubted where the values fit no other",
        f"{_ENGINE}/model/column_unit.py",
        "        if stated.unit is not None and possible and stated.unit not in possible:",
        "        if stated.unit not in possible:",
        UNITS,
    ),
    Breakage(
        "a plan goes by event times in a unit that the values contradict",
        f"{_ENGINE}/event_time/table_times.py",
        "times.unit if times.unit.unit is None else column_unit.doubt(state, times.unit, times.ranges)",
        "times.unit if times.unit.unit is None else None",
        UNITS,
    ),
    Breakage(
        "a latency is learned from commits in a wrong unit",
        f"{_ENGINE}/event_time/lateness.py",
        "stat.min_event_time if own and not _is_doubtful(state, stat) else None",
        "stat.min_event_time if own else None",
        UNITS,
    ),
    Breakage(
        "the greatest of a file's microseconds is floored",
        f"{_ENGINE}/model/units.py",
        "    return -(-micros // 1000) if ceiled else micros // 1000",
        "    return micros // 1000",
        UNITS,
    ),
    Breakage(
        "text of digits is a time",
        f"{_ENGINE}/model/units.py",
        '"" if text.isdigit() and len(text) != _COMPACT_DATE else text',
        "text",
        UNITS,
    ),
    Breakage(
        "the data latency is not taken off a commit",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return Bound(at - self.latency_ms,",
        "return Bound(at,",
        BOUNDS,
    ),
    Breakage(
        "a bound hides the event times beside it",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return lowest if undated.low is None else lowest._replace",
        "return lowest if True else lowest._replace",
        BOUNDS,
    ),
    Breakage(
        "rows without event time count at their commit too",
        f"{_ENGINE}/event_time/commit_bound.py",
        "found.append(self._less_latency(undated.rows))",
        "found.append(self._at_commit(undated.rows))",
        BOUNDS,
    ),
    Breakage(
        "the first original is forgotten with the commit",
        f"{_ENGINE}/event_time/table_times.py",
        "            found.setdefault(log.base_instant, {})[log.path] = origin",
        "            pass",
        LINKS,
    ),
    Breakage(
        "freshness is the minimum itself",
        f"{_ENGINE}/event_time/freshness.py",
        "*(low - 1 for low in lows if",
        "*(low for low in lows if",
        LIVES,
    ),
    Breakage(
        "a latency is learned in any zone",
        f"{_ENGINE}/event_time/lateness.py",
        "    if not _tells_time(state):\n        return\n",
        "",
        ZONES,
    ),
    Breakage(
        "a commit bounds its records in any zone",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return None if self.state.zone_problem else requested_ms",
        "return requested_ms",
        ZONES,
    ),
    Breakage(
        "a plan passes for all that was asked for",
        f"{_ENGINE}/model/plans.py",
        "return self.asked_for is not None and self.asked_for != self.claims",
        "return False",
        SERIES,
    ),
    Breakage(
        "a column that nobody named is taken for a compaction that is missing",
        f"{_ENGINE}/event_time/freshness.py",
        "    if column is None:\n        return f",
        "    if False:\n        return f",
        FIRST_CONTACT,
    ),
    Breakage(
        "who names no event-time column is not told which one it often is",
        f"{_ENGINE}/event_time/column_unit.py",
        'if ordering else ""',
        'if not ordering else ""',
        FIRST_CONTACT,
    ),
)
