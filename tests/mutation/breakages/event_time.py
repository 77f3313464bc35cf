"""Breakages of event times: units, bounds, lateness, freshness."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "integers whose unit nobody stated are milliseconds",
        f"{_ENGINE}/event_time/column_unit.py",
        "    if config.created_here:",
        "    if True:",
        ("tests/unit/test_event_time_units.py::test_the_values_tell_the_unit",),
    ),
    Breakage(
        "event times from 1970 on are plausible",
        f"{_ENGINE}/model/column_unit.py",
        "EARLIEST_MS: Final = 315_532_800_000",
        "EARLIEST_MS: Final = 0",
        ("tests/unit/test_event_time_units.py::test_the_values_tell_the_unit",),
    ),
    Breakage(
        "event times long after their commit are plausible",
        f"{_ENGINE}/model/column_unit.py",
        "(counts.committed_ms + LEEWAY_MS) * 1_000_000",
        "(counts.committed_ms + 100_000 * LEEWAY_MS) * 1_000_000",
        ("tests/unit/test_event_time_units.py::test_what_nobody_can_tell_is_no_promise",),
    ),
    Breakage(
        "of files that count in two units the first decides",
        f"{_ENGINE}/model/column_unit.py",
        "    if len(by_unit) > 1:",
        "    if False:",
        ("tests/unit/test_event_time_units.py::test_what_nobody_can_tell_is_no_promise",),
    ),
    Breakage(
        "a file whose values fit no unit is passed over",
        f"{_ENGINE}/model/column_unit.py",
        "            return _unknown(column, _implausible(column, one), _likely(one))",
        "            continue",
        ("tests/unit/test_event_time_units.py::test_what_nobody_can_tell_is_no_promise",),
    ),
    Breakage(
        "a stated unit is believed whatever the values say",
        f"{_ENGINE}/model/column_unit.py",
        "possible and stated.unit not in possible:",
        "possible and stated.unit is possible[0]:",
        ("tests/unit/test_event_time_units.py::test_a_word_that_the_values_contradict_is_not_believed",),
    ),
    Breakage(
        "a stated unit is doubted where the values fit no other",
        f"{_ENGINE}/model/column_unit.py",
        "        if stated.unit is not None and possible and stated.unit not in possible:",
        "        if stated.unit not in possible:",
        ("tests/unit/test_event_time_units.py::test_the_values_tell_the_unit",),
    ),
    Breakage(
        "a plan goes by event times in a unit that the values contradict",
        f"{_ENGINE}/event_time/table_times.py",
        "times.unit if times.unit.unit is None else column_unit.doubt(state, times.unit, _odd_ranges(state))",
        "times.unit if times.unit.unit is None else None",
        ("tests/unit/test_event_time_units.py::test_a_word_that_the_values_contradict_is_not_believed",),
    ),
    Breakage(
        "a latency is learned from commits in a wrong unit",
        f"{_ENGINE}/event_time/lateness.py",
        "stat.min_event_time if own and not _is_doubtful(state, stat) else None",
        "stat.min_event_time if own else None",
        ("tests/unit/test_event_time_units.py::test_a_latency_is_not_learned_from_a_wrong_unit",),
    ),
    Breakage(
        "the greatest of a file's microseconds is floored",
        f"{_ENGINE}/model/units.py",
        "    return -(-micros // 1000) if ceiled else micros // 1000",
        "    return micros // 1000",
        ("tests/unit/test_event_time_units.py::test_a_maximum_is_ceiled",),
    ),
    Breakage(
        "text of digits is a time",
        f"{_ENGINE}/model/units.py",
        '"" if text.isdigit() and len(text) != _COMPACT_DATE else text',
        "text",
        ("tests/unit/test_event_time_units.py::test_text_of_digits_is_no_time",),
    ),
    Breakage(
        "the data latency is not taken off a commit",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return Bound(at - self.latency_ms,",
        "return Bound(at,",
        (
            "tests/unit/test_commit_bound.py::test_a_delete_without_ordering_value_counts_from_its_commit_less_the_latency",
        ),
    ),
    Breakage(
        "a bound hides the event times beside it",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return lowest if undated.low is None else lowest._replace",
        "return lowest if True else lowest._replace",
        ("tests/unit/test_commit_bound.py::test_a_log_files_own_event_times_count_beside_the_bound",),
    ),
    Breakage(
        "rows without event time count at their commit too",
        f"{_ENGINE}/event_time/commit_bound.py",
        "found.append(self._less_latency(undated.rows))",
        "found.append(self._at_commit(undated.rows))",
        ("tests/unit/test_commit_bound.py::test_rows_without_event_time_are_bounded_by_the_latency_alone",),
    ),
    Breakage(
        "the first original is forgotten with the commit",
        f"{_ENGINE}/event_time/remembering.py",
        "            found.setdefault(log.base_instant, {})[log.path] = origin",
        "            pass",
        ("tests/unit/test_links.py::test_the_trace_outlives_the_archiving_of_its_commit",),
    ),
    Breakage(
        "freshness is the minimum itself",
        f"{_ENGINE}/event_time/freshness.py",
        "*(low - 1 for low in lows if",
        "*(low for low in lows if",
        ("tests/machine/test_machine.py::test_lives",),
    ),
    Breakage(
        "a latency is learned in any zone",
        f"{_ENGINE}/event_time/lateness.py",
        "    if not _tells_time(state):\n        return\n",
        "",
        ("tests/unit/test_time_zones.py::test_nothing_is_learned_in_another_zone",),
    ),
    Breakage(
        "a commit bounds its records in any zone",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return None if self.state.zone_problem else requested_ms",
        "return requested_ms",
        ("tests/unit/test_time_zones.py::test_a_commit_bounds_nothing_in_another_zone",),
    ),
    Breakage(
        "a plan passes for all that was asked for",
        f"{_ENGINE}/model/plans.py",
        "return self.asked_for is not None and self.asked_for != self.claims",
        "return False",
        ("tests/cli/test_series.py::test_a_plan_says_that_the_threshold_takes_more",),
    ),
    Breakage(
        "a column that nobody named is taken for a compaction that is missing",
        f"{_ENGINE}/event_time/freshness.py",
        "    if column is None:\n        return f",
        "    if False:\n        return f",
        ("tests/cli/test_first_contact.py::test_a_compacted_table_whose_event_time_column_is_not_known",),
    ),
    Breakage(
        "who names no event-time column is not told which one it often is",
        f"{_ENGINE}/event_time/column_unit.py",
        'if ordering else ""',
        'if not ordering else ""',
        ("tests/cli/test_first_contact.py::test_a_table_with_log_files_whose_event_time_column_is_not_known",),
    ),
)
