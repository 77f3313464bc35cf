"""Base files that the newest one was not made of: what hides them, what is told of them, and what is refused."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
_GROWN = f"{_ENGINE}/table/files/grown.py"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "in a sound life, base files that grew count as hidden",
        _GROWN,
        "if made_of > instant.timestamp and made_of in writes:",
        "if made_of in writes:",
        ("tests/property/test_lookup.py::test_a_life_is_a_dictionarys",),
    ),
    Breakage(
        "a base file that was made of a later one is not noticed",
        f"{_ENGINE}/table/files/hidden.py",
        "*_remembered(state), *_unseen(state)]",
        "*_remembered(state)]",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_base_file_that_was_made_of_a_later_one_is_found",),
    ),
    Breakage(
        "every base file that another one took the place of is said to be hidden",
        _GROWN,
        "if made_of > instant.timestamp and made_of in writes:",
        "if made_of in writes:",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_base_file_that_was_made_of_a_later_one_is_found",),
    ),
    Breakage(
        "a base file of a compaction at a past instant is said to be hidden",
        _GROWN,
        "for instant in state.timeline.completed(Action.DELTA_COMMIT):",
        "for instant in state.timeline.completed(*WRITES):",
        ("tests/unit/hidden_rows/test_base_files.py::test_neither_compactions_nor_clusterings_hide_themselves",),
    ),
    Breakage(
        "overwritten rows of base files are missed",
        f"{_ENGINE}/table/files/hidden.py",
        "if not _is_overwritten(state, (stat.partition, stat.file_id)):",
        "if True:",
        ("tests/unit/hidden_rows/test_base_files.py::test_overwritten_rows_of_base_files_are_not_missed",),
    ),
    Breakage(
        "a base file that nobody sees makes nobody's log files unknown",
        f"{_ENGINE}/table/files/hidden.py",
        "        for base in unseen:\n",
        "        for base in ():\n",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_log_file_lies_behind_the_base_file_that_is_seen",),
    ),
    Breakage(
        "a base file of an archived commit is taken for a log file",
        f"{_ENGINE}/table/files/hidden.py",
        "kept.size, log_version=version)",
        "kept.size, log_version=1)",
        ("tests/unit/hidden_rows/test_base_files.py::test_hidden_base_files_outlive_the_archiving_of_their_commit",),
    ),
    Breakage(
        "the archive of version 6 is sought in the default folder, whatever the settings name",
        f"{_ENGINE}/timeline/archive/v6.py",
        "return cls(properties.get(_FOLDER) or _DEFAULT_FOLDER)",
        "return cls(_DEFAULT_FOLDER)",
        (
            "tests/unit/hidden_rows/test_base_files.py::test_the_archive_that_proves_it_may_have_another_folder",
            "tests/unit/test_housekeeping.py::test_the_archive_holds_every_file_of_the_instants",
        ),
    ),
    Breakage(
        "the archive of version 6 has no completed writes",
        f"{_ENGINE}/timeline/archive/v6.py",
        'r.get("actionState") == State.COMPLETED.upper() and',
        "False and",
        ("tests/unit/hidden_rows/test_base_files.py::test_hidden_base_files_outlive_the_archiving_of_their_commit",),
    ),
    Breakage(
        "the write stats of hidden base files are not looked for",
        f"{_ENGINE}/event_time/table_times.py",
        "if stat.log_version is not None or stat.path in unseen)",
        "if stat.log_version is not None)",
        ("tests/unit/hidden_rows/test_base_files.py::test_the_promise_stops_below_a_hidden_base_file",),
    ),
    Breakage(
        "the event times of hidden base files are forgotten with their commit",
        f"{_ENGINE}/timeline/archived_facts.py",
        "if stat.path in paths and low is not None",
        "if stat.path in paths and stat.log_version is not None and low is not None",
        ("tests/unit/hidden_rows/test_base_files.py::test_hidden_base_files_outlive_the_archiving_of_their_commit",),
    ),
    Breakage(
        "a rollback is advised for the sake of a base file, which would keep rows of what is rolled back",
        f"{_ENGINE}/validate.py",
        "if files[0].is_base or any(",
        "if any(",
        (
            "tests/unit/hidden_rows/test_base_files.py::test_a_compaction_that_a_base_file_was_made_of_is_not_to_be_rolled_back",
        ),
    ),
    Breakage(
        "a base file that the newest one was not made of is not noticed",
        _GROWN,
        "    if crossed:\n",
        "    if False:\n",
        ("tests/unit/hidden_rows/test_two_writers.py::test_the_earlier_of_two_writers_of_one_look_is_found",),
    ),
    Breakage(
        "what the newest base file was made of is said to be left out",
        _GROWN,
        "        place = made_of\n",
        "        place = max((one for one in bases if one < place), default='')\n",
        ("tests/unit/hidden_rows/test_two_writers.py::test_what_the_newest_base_file_was_made_of_is_not_hidden",),
    ),
    Breakage(
        "only the newest base file tells what it left out",
        _GROWN,
        "        place = made_of\n",
        "        return\n",
        ("tests/unit/hidden_rows/test_two_writers.py::test_it_stays_so_below_what_is_written_on_top",),
    ),
    Breakage(
        "what the newest base file was made of is guessed from an older one",
        _GROWN,
        '        if newest.get(key, "") <= max(bases):',
        "        if True:",
        ("tests/unit/hidden_rows/test_two_writers.py::test_where_the_newest_base_file_is_not_told_of_nothing_is_said",),
    ),
    Breakage(
        "past a clustering the older base files are taken for what it was made of",
        _GROWN,
        "if upper.action is Action.REPLACE_COMMIT or not made_of",
        "if not made_of",
        ("tests/unit/hidden_rows/test_two_writers.py::test_past_a_compaction_but_not_past_a_clustering",),
    ),
    Breakage(
        "a compaction of the past counts as left out",
        _GROWN,
        "if between and one.prev_commit.isdigit() and instant.action is Action.DELTA_COMMIT:",
        "if between and one.prev_commit.isdigit():",
        ("tests/unit/hidden_rows/test_two_writers.py::test_compactions_and_clusterings_are_not_left_out",),
    ),
    Breakage(
        "a base file that was made of a later one is told of twice",
        _GROWN,
        "between = made_of < instant.timestamp < place and one.prev_commit < instant.timestamp",
        "between = made_of < instant.timestamp < place",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_base_file_that_was_made_of_a_later_one_is_found",),
    ),
    Breakage(
        "what an archived base file was made of is forgotten",
        f"{_ENGINE}/event_time/remembering.py",
        "            file.stat.prev_commit,\n",
        "",
        ("tests/unit/hidden_rows/test_base_files.py::test_hidden_base_files_outlive_the_archiving_of_their_commit",),
    ),
    Breakage(
        "a write is not rolled back though the base file beside its own lacks its rows",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.behind == target:",
        "if one.is_base and one.behind == target:",
        ("tests/unit/hidden_rows/test_two_writers.py::test_without_the_later_one_it_is_in_the_view",),
    ),
    Breakage(
        "a savepoint is not restored though the base file beside a later one lacks its rows",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if one.is_base and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        ("tests/unit/hidden_rows/test_two_writers.py::test_a_savepoint_of_before_the_later_one_is_restored",),
    ),
    Breakage(
        "a savepoint is restored though a hidden base file would show what came later",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if False:",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_savepoint_between_them_is_not_restored",),
    ),
    Breakage(
        "a savepoint of before both is not restored",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if one.holds_behind and savepoint < one.behind.timestamp:",
        ("tests/unit/hidden_rows/test_base_files.py::test_a_savepoint_between_them_is_not_restored",),
    ),
    Breakage(
        "a write is rolled back though a hidden base file holds its rows",
        f"{_ENGINE}/actions/undo.py",
        "        self._check_unseen(state, target)\n",
        "",
        (
            "tests/unit/hidden_rows/test_base_files.py::test_a_compaction_that_a_base_file_was_made_of_is_not_to_be_rolled_back",
        ),
    ),
    Breakage(
        "the old name of the number of hidden files is gone from --json",
        "hudi_assets/cli/output.py",
        '"log_files": rows.files, ',
        "",
        ("tests/unit/hidden_rows/test_base_files.py::test_the_old_name_of_the_number_of_files",),
    ),
    Breakage(
        "hidden base files count though they were not written yet",
        f"{_ENGINE}/past/freshness.py",
        "        remaining.remove(stat.path)  #",
        "        if stat.log_version is not None:\n            remaining.remove(stat.path)  #",
        (
            "tests/unit/hidden_rows/test_base_files.py::test_before_a_hidden_base_file_was_written_nothing_was_in_no_view",
        ),
    ),
)
