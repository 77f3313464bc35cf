"""Breakages of the timeline, commits and locks."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
VIEW = ("tests/unit/test_file_view.py", "tests/property/test_queries.py")


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "instants before the timeline's start do not count",
        f"{_ENGINE}/timeline/instants.py",
        "return self.start is not None and timestamp < self.start",
        "return False",
        VIEW,
    ),
    Breakage(
        "all attempts of a task write one file",
        f"{_ENGINE}/timeline/attempts.py",
        'return Staged(f"{FOLDER}/{instant}/{uuid.uuid4().hex}", path, marker)',
        'return Staged(f"{FOLDER}/{instant}/{path}", path, marker)',
        ("tests/unit/test_attempts.py::test_each_attempt_has_a_place_of_its_own",),
    ),
    Breakage(
        "files of a store are named one after another",
        f"{_ENGINE}/timeline/attempts.py",
        "    each(storage, name, files)\n",
        "    for file in files:\n        name(file)\n",
        ("tests/unit/test_store_at_once.py::test_files_are_marked_and_named_at_once",),
    ),
    Breakage(
        "markers of a store are made one after another",
        f"{_ENGINE}/timeline/attempts.py",
        "    each(storage, storage.touch, markers)\n",
        "    for marker in markers:\n        storage.touch(marker)\n",
        ("tests/unit/test_store_at_once.py::test_files_are_marked_and_named_at_once",),
    ),
    Breakage(
        "one commit of writers whose clock was put back is overlooked",
        f"{_ENGINE}/timeline/writers_zone/evidence.py",
        "if agreeing and not any(shifts[:first_agreeing]):",
        "if agreeing:",
        ("tests/unit/test_time_zones.py::test_writers_that_moved_count_from_then_on",),
    ),
    Breakage(
        "a file that is older than its instant proves nothing",
        f"{_ENGINE}/timeline/writers_zone/evidence.py",
        "if -_MOST_QUARTERS * QUARTER_MS <= lag < -QUARTER_MS // 2:",
        "if False:",
        ("tests/unit/test_time_zones.py::test_one_file_before_its_instant_is_enough",),
    ),
    Breakage(
        "the times of a copy's files are taken for its writers'",
        f"{_ENGINE}/timeline/writers_zone/evidence.py",
        "return spread >= _FOLLOWS_MS and max(lags) - min(lags) <= spread // 2",
        "return True",
        ("tests/unit/test_time_zones.py::test_a_copy_says_nothing",),
    ),
    Breakage(
        "instants are begun in an hour that comes again",
        f"{_ENGINE}/timeline/clock.py",
        "            _refuse_first_pass(now, timezone, where)\n",
        "            pass\n",
        ("tests/unit/test_time_zones.py::test_no_instant_is_begun_in_an_hour_that_comes_again",),
    ),
    Breakage(
        "what was replaced is old enough by a clock that was put back",
        f"{_ENGINE}/timeline/instants.py",
        "return min(by_the_clock, moved_instant(format_instant(now_ms, timezone), -ago_ms))",
        "return by_the_clock",
        ("tests/unit/test_time_zones.py::test_what_is_minutes_old_is_younger_than_an_hour_when_the_clock_is_put_back",),
    ),
    Breakage(
        "a place above an instant is sought by the clock, which may have been put back",
        f"{_ENGINE}/timeline/instants.py",
        "return format_instant(instant_ms(timestamp, UTC) + by_ms, UTC)",
        'return format_instant(instant_ms(timestamp, "America/Los_Angeles") + by_ms, "America/Los_Angeles")',
        ("tests/unit/test_time_zones.py::test_a_plan_is_placed_above_what_it_takes_when_the_clock_is_put_back",),
    ),
    Breakage(
        "a store's word for another content is passed over",
        f"{_ENGINE}/timeline/decode_cache.py",
        "file.inode, file.version, ",
        "file.inode, ",
        ("tests/unit/test_kept.py::test_another_file_under_the_name_is_another_file",),
    ),
)
