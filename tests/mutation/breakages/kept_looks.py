"""Breakages of what a look keeps of a table's files for the next one."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_KEPT = "hudi_assets/engine/table/slices/kept.py"
_FOLDERS = "hudi_assets/engine/storage/folders.py"
_RANGES = "hudi_assets/engine/event_time/ranges.py"
LOOKS = "tests/unit/test_kept_looks.py"
_COLUMNS = "tests/unit/test_columns.py"
_PARTS = "tests/unit/test_part_columns.py"


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
        "        sizes = now - last.whole_at >= BELIEVED_S",
        "        sizes = False",
        (f"{LOOKS}::test_a_file_that_is_cut_short_in_its_place_is_seen_in_time",),
    ),
    Breakage(
        "what was listed with sizes stays believed for as long as at first, though the clock goes on",
        _KEPT,
        "now if sizes else last.whole_at",
        "last.whole_at",
        (f"{LOOKS}::test_what_is_the_same_after_a_while_is_not_told_again",),
    ),
    Breakage(
        "of a partition with undated log files the oldest dated one alone counts",
        _RANGES,
        "    if len(lows) < len(logs):\n        return None\n",
        "",
        (f"{LOOKS}::test_rows_without_event_time_count_in_whatever_partition",),
    ),
    Breakage(
        "a partition with undated log files is passed over where the dated ones are not due",
        _RANGES,
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
    Breakage(
        "a column takes true for one",
        "hudi_assets/engine/columns.py",
        "    if len(kinds) == 1 and values.count(first) == rows:",
        "    if values.count(first) == rows:",
        (f"{_COLUMNS}::test_one_is_not_true",),
    ),
    Breakage(
        "the write stats of some partitions are those of others too",
        "hudi_assets/engine/timeline/stat_columns.py",
        "                yield from (stat for stat in block if _folder(stat.path) in wanted)",
        "                yield from block",
        (f"{_COLUMNS}::test_write_stats_as_columns_are_the_same",),
    ),
    Breakage(
        "a partition of very many files is made again each time that something is asked of it",
        "hudi_assets/engine/loaded.py",
        "self._objects > self.most and len(self._loaded) > 1:",
        "self._objects > self.most:",
        (f"{_COLUMNS}::test_the_last_one_stays_however_large_it_is",),
    ),
    Breakage(
        "objects that are gone leave others no room",
        "hudi_assets/engine/loaded.py",
        "                self._objects -= found[1]\n",
        "",
        (f"{_COLUMNS}::test_what_is_gone_does_not_count",),
    ),
    Breakage(
        "what is asked for again counts as long ago",
        "hudi_assets/engine/loaded.py",
        "            _, before = self._loaded.pop(id(one), (None, 0))",
        "            _, before = self._loaded.get(id(one), (None, 0))",
        (f"{_COLUMNS}::test_those_that_were_loaded_first_give_their_objects_up",),
    ),
    Breakage(
        "a log file that is a link, or has another name than ours, comes back from its columns as a plain one",
        "hudi_assets/engine/table/slices/slice_columns.py",
        "        return made if same else None",
        "        return made",
        (f"{_PARTS}::test_a_partition_as_columns_is_the_same",),
    ),
    Breakage(
        "what was scanned of a log file comes back from its columns as if a commit had stated it",
        _RANGES,
        "                values.count(usual) < len(values) for",
        "                False for",
        (f"{_PARTS}::test_what_is_known_of_log_files_is_the_same_as_columns",),
    ),
    Breakage(
        "what is known of hidden files goes with a partition's objects",
        _RANGES,
        "            found.update(self._more)\n",
        "",
        (f"{_PARTS}::test_what_is_known_of_log_files_is_the_same_as_columns",),
    ),
)
