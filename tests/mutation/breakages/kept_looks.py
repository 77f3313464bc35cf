"""Breakages of what a look keeps of a table's files for the next one."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_KEPT = "hudi_assets/engine/table/slices/kept.py"
_FOLDERS = "hudi_assets/engine/storage/folders.py"
_TIMES = "hudi_assets/engine/event_time/table_times.py"
LOOKS = "tests/unit/test_kept_looks.py"


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a look does not ask anew for files that a new commit tells another size of",
        _KEPT,
        "        if any(there.get(path) != size for path, size in sizes.items()):",
        "        if any(path not in there for path, size in sizes.items()):",
        (f"{LOOKS}::test_a_file_that_grows_before_its_commit_has_its_whole_size",),
    ),
    Breakage(
        "a look goes on from the last one although a rollback came in between",
        _KEPT,
        "        if key not in before and instant.action not in _PLAIN:",
        "        if key not in before and instant.action not in {*_PLAIN, Action.ROLLBACK}:",
        (f"{LOOKS}::test_what_does_more_than_add_files_has_all_listed_again",),
    ),
    Breakage(
        "a look goes on from the last one although an instant vanished",
        _KEPT,
        "            if not _is_archived(instant, seen.timeline):",
        "            if False:",
        (f"{LOOKS}::test_what_vanished_has_all_listed_again",),
    ),
    Breakage(
        "a folder that changed a moment ago is believed not to change within the same tick",
        _FOLDERS,
        "max(stamp.modified_ns, stamp.changed_ns) < begun_ns - TICK_NS)",
        "True)",
        (f"{LOOKS}::test_what_changes_right_after_it_was_listed_is_seen",),
    ),
    Breakage(
        "a folder with symbolic links is believed as long as it stays the same",
        _FOLDERS,
        "        if stamp is None or links:",
        "        if stamp is None:",
        (f"{LOOKS}::test_a_link_whose_target_goes_is_seen_at_once",),
    ),
    Breakage(
        "what was kept is believed for good",
        _KEPT,
        "    if time.monotonic() - last.whole_at >= BELIEVED_S:",
        "    if False:",
        (f"{LOOKS}::test_a_file_that_is_cut_short_in_its_place_is_seen_in_time",),
    ),
    Breakage(
        "of a partition with undated log files the oldest dated one alone counts",
        _TIMES,
        "[min(lows)[1]] if lows and len(lows) == len(part.remaining_logs) else",
        "[min(lows)[1]] if lows else",
        (f"{LOOKS}::test_rows_without_event_time_count_in_whatever_partition",),
    ),
    Breakage(
        "a partition with undated log files is passed over where the dated ones are not due",
        _TIMES,
        "if known and len(known) == len(lows) else None",
        "if known else None",
        (f"{LOOKS}::test_rows_without_event_time_count_in_whatever_partition",),
    ),
    Breakage(
        "a file that goes is not missed where it was there at the last look",
        "hudi_assets/engine/table/slices/parts.py",
        "            set() if lost else {name",
        "            {name",
        (f"{LOOKS}::test_a_file_that_goes_is_missed_at_once",),
    ),
    Breakage(
        "a partition is not looked into again when a commit names it",
        _KEPT,
        "                and partition not in touched\n",
        "",
        (f"{LOOKS}::test_a_write_that_ends_after_a_look_is_known_by_its_commit",),
    ),
    Breakage(
        "a look leaves a batch for later that an archiver may take meanwhile",
        "hudi_assets/engine/event_time/remembering.py",
        "    return state.config.merging.ours or not any(",
        "    return True or not any(",
        (f"{LOOKS}::test_what_outlives_archiving_is_kept_by_looks_now_and_then",),
    ),
    Breakage(
        "a file that a backup puts in the place of another has the other's size",
        _FOLDERS,
        "if there.get(file.path) == file.inode]",
        "if there.get(file.path) is not None]",
        (f"{LOOKS}::test_a_file_that_takes_anothers_place_is_asked_for_its_size",),
    ),
    Breakage(
        "a file that has the name of a folder that was there is taken for a folder",
        _FOLDERS,
        "sorted(path for path, inode in there.items() if inode is None)",
        "sorted(path for path in there if path in last.folders or there[path] is None)",
        (f"{LOOKS}::test_a_file_with_the_name_of_a_folder_is_a_file",),
    ),
)
