"""Base files that the newest one was not made of: what hides them, what is told of them, and what is refused."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
_GROWN = f"{_ENGINE}/table/files/grown.py"
BASE_FILES = ("tests/unit/hidden_rows/test_base_files.py", "tests/unit/hidden_rows/test_two_writers.py")

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "in a sound life, base files that grew count as hidden",
        _GROWN,
        "if made_of > instant.timestamp and made_of in writes:",
        "if made_of in writes:",
        ("tests/property/test_lookup.py",),
    ),
    Breakage(
        "a base file that was made of a later one is not noticed",
        f"{_ENGINE}/table/files/hidden.py",
        "*_remembered(state), *_unseen(state)]",
        "*_remembered(state)]",
        BASE_FILES,
    ),
    Breakage(
        "every base file that another one took the place of is said to be hidden",
        _GROWN,
        "if made_of > instant.timestamp and made_of in writes:",
        "if made_of in writes:",
        BASE_FILES,
    ),
    Breakage(
        "a base file of a compaction at a past instant is said to be hidden",
        _GROWN,
        "for instant in state.timeline.completed(Action.DELTA_COMMIT):",
        "for instant in state.timeline.completed(*WRITES):",
        BASE_FILES,
    ),
    Breakage(
        "overwritten rows of base files are missed",
        f"{_ENGINE}/table/files/hidden.py",
        "if not _is_overwritten(state, (stat.partition, stat.file_id)):",
        "if True:",
        BASE_FILES,
    ),
    Breakage(
        "a base file that nobody sees makes nobody's log files unknown",
        f"{_ENGINE}/table/files/hidden.py",
        "        for base in unseen:\n",
        "        for base in ():\n",
        BASE_FILES,
    ),
    Breakage(
        "a base file of an archived commit is taken for a log file",
        f"{_ENGINE}/table/files/hidden.py",
        "kept.size, log_version=version)",
        "kept.size, log_version=1)",
        BASE_FILES,
    ),
    Breakage(
        "the archive of version 6 has no completed writes",
        f"{_ENGINE}/timeline/archive/v6.py",
        'r.get("actionState") == State.COMPLETED.upper() and',
        "False and",
        BASE_FILES,
    ),
    Breakage(
        "the write stats of hidden base files are not looked for",
        f"{_ENGINE}/event_time/table_times.py",
        "if stat.log_version is not None or stat.path in unseen]",
        "if stat.log_version is not None]",
        BASE_FILES,
    ),
    Breakage(
        "the event times of hidden base files are forgotten with their commit",
        f"{_ENGINE}/timeline/archived_facts.py",
        "if stat.path in paths and low is not None",
        "if stat.path in paths and stat.log_version is not None and low is not None",
        BASE_FILES,
    ),
    Breakage(
        "a rollback is advised for the sake of a base file, which would keep rows of what is rolled back",
        f"{_ENGINE}/validate.py",
        "if files[0].is_base or any(",
        "if any(",
        BASE_FILES,
    ),
    Breakage(
        "a base file that the newest one was not made of is not noticed",
        _GROWN,
        "    if crossed:\n",
        "    if False:\n",
        BASE_FILES,
    ),
    Breakage(
        "what the newest base file was made of is said to be left out",
        _GROWN,
        "        place = made_of\n",
        "        place = max((one for one in bases if one < place), default='')\n",
        BASE_FILES,
    ),
    Breakage(
        "only the newest base file tells what it left out",
        _GROWN,
        "        place = made_of\n",
        "        return\n",
        BASE_FILES,
    ),
    Breakage(
        "what the newest base file was made of is guessed from an older one",
        _GROWN,
        '        if newest.get(key, "") <= max(bases):',
        "        if True:",
        BASE_FILES,
    ),
    Breakage(
        "past a clustering the older base files are taken for what it was made of",
        _GROWN,
        "if upper.action is Action.REPLACE_COMMIT or not made_of",
        "if not made_of",
        BASE_FILES,
    ),
    Breakage(
        "a compaction of the past counts as left out",
        _GROWN,
        "if between and one.prev_commit.isdigit() and instant.action is Action.DELTA_COMMIT:",
        "if between and one.prev_commit.isdigit():",
        BASE_FILES,
    ),
    Breakage(
        "a base file that was made of a later one is told of twice",
        _GROWN,
        "between = made_of < instant.timestamp < place and one.prev_commit < instant.timestamp",
        "between = made_of < instant.timestamp < place",
        BASE_FILES,
    ),
    Breakage(
        "what an archived base file was made of is forgotten",
        f"{_ENGINE}/event_time/table_times.py",
        "            file.stat.prev_commit,\n",
        "",
        BASE_FILES,
    ),
    Breakage(
        "a write is not rolled back though the base file beside its own lacks its rows",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.behind == target:",
        "if one.is_base and one.behind == target:",
        BASE_FILES,
    ),
    Breakage(
        "a savepoint is not restored though the base file beside a later one lacks its rows",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if one.is_base and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        BASE_FILES,
    ),
    Breakage(
        "a savepoint is restored though a hidden base file would show what came later",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if False:",
        BASE_FILES,
    ),
    Breakage(
        "a savepoint of before both is not restored",
        f"{_ENGINE}/actions/undo.py",
        "if one.holds_behind and one.delta_commit.timestamp <= savepoint < one.behind.timestamp:",
        "if one.holds_behind and savepoint < one.behind.timestamp:",
        BASE_FILES,
    ),
    Breakage(
        "a write is rolled back though a hidden base file holds its rows",
        f"{_ENGINE}/actions/undo.py",
        "        self._check_unseen(state, target)\n",
        "",
        BASE_FILES,
    ),
    Breakage(
        "the old name of the number of hidden files is gone from --json",
        "hudi_assets/cli/output.py",
        '"log_files": rows.files, ',
        "",
        BASE_FILES,
    ),
    Breakage(
        "hidden base files count though they were not written yet",
        f"{_ENGINE}/past/freshness.py",
        "        remaining.remove(stat.path)  #",
        "        if stat.log_version is not None:\n            remaining.remove(stat.path)  #",
        BASE_FILES,
    ),
)
