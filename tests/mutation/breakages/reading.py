"""Breakages of queries, looks, profiles and the past."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "log files of a store are looked through one after another",
        f"{_ENGINE}/table/log_files/reader.py",
        "zip(files, each(storage, headers, files), strict=True)",
        "zip(files, map(headers, files), strict=True)",
        ("tests/unit/test_store_at_once.py::test_log_files_are_looked_through_at_once_and_stay_in_order",),
    ),
    Breakage(
        "older rows of which nothing is known are thought to lose",
        f"{_ENGINE}/queries/in_range.py",
        "bounds is not None and (bounds.high is None or bounds.high <= least)",
        "bounds is None or bounds.high is None or bounds.high <= least",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "a row without an ordering value is thought to win against older ones",
        f"{_ENGINE}/queries/in_range.py",
        "if any(column.null_count for column in columns):",
        "if False:",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "a delete in commit order before a range, in a delete block, is thought to decide without the rows after it",
        f"{_ENGINE}/queries/in_range.py",
        "if reader.mode is not MergeMode.EVENT_TIME_ORDERING or not any(",
        "if True or not any(",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "a deleted row before a range is thought to decide nothing",
        f"{_ENGINE}/queries/in_range.py",
        "told = footer is not None and not _may_delete(reader, footer)",
        "told = footer is not None",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "delete blocks before a range are left out",
        f"{_ENGINE}/queries/in_range.py",
        "return _merged(reader, None, [*deletes, *newer])",
        "return _merged(reader, None, newer)",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "base rows are never of a range",
        f"{_ENGINE}/queries/in_range.py",
        "return times is None or (times.high is not None and times.high > commits.begin)",
        "return False",
        ("tests/property/test_pruned_queries.py::test_a_range_is_the_whole_filtered",),
    ),
    Breakage(
        "a bound goes by the table's latency, not the call's",
        f"{_ENGINE}/status.py",
        "summaries = bounded_summaries(state, latency)",
        "summaries = bounded_summaries(state)",
        ("tests/unit/test_commit_bound.py::test_the_latency_of_the_call_bounds_what_the_call_promises",),
    ),
    Breakage(
        "the check of carried-over log files lists those that are shown",
        f"{_ENGINE}/status.py",
        "if log is not None and current.get(",
        "if log is not None and link in state.sizes and current.get(",
        ("tests/unit/test_links.py::test_the_link_itself_goes",),
    ),
    Breakage(
        "as of an instant before the newest slices nothing is missing",
        f"{_ENGINE}/queries/query.py",
        "    refuse_missing(state)\n    view, replaced = state.view_with_replaced, state.replaced",
        "    view, replaced = state.view_with_replaced, state.replaced",
        ("tests/unit/test_links.py::test_a_link_that_leads_nowhere_is_refused_by_name",),
    ),
    Breakage(
        "an unfinished write's begin is read in any zone",
        f"{_ENGINE}/status.py",
        "missing=missing or _unknown_times(state, summaries, rests_on)",
        "missing=missing",
        ("tests/unit/test_time_zones.py::test_freshness_waits_for_the_zone",),
    ),
    Breakage(
        "a time with a zone is an instant in any zone",
        f"{_ENGINE}/queries/query.py",
        "    if any(states_zone(moment) for moment in moments):\n",
        "    if False:\n",
        ("tests/unit/test_time_zones.py::test_a_time_with_a_zone_is_no_instant_in_another_zone",),
    ),
    Breakage(
        "a partition's path is read in another style than it has",
        f"{_ENGINE}/queries/partition_filter.py",
        "if styled != config.hive_style:",
        "if False:",
        ("tests/unit/test_places.py::test_a_path_of_another_style_says_nothing",),
    ),
    Breakage(
        "an encoded path is taken for a value",
        f"{_ENGINE}/queries/partition_filter.py",
        "elif _ESCAPE.search(text):",
        "elif False:",
        ("tests/unit/test_places.py::test_a_path_of_another_style_says_nothing",),
    ),
    Breakage(
        "partitions are left out where an index may have left rows in them",
        f"{_ENGINE}/queries/query.py",
        "by_partition = state.config.partitioned and leaves_no_row_behind(state)",
        "by_partition = True",
        ("tests/spark/test_queries.py::test_an_index_over_all_partitions_may_leave_rows_in_another",),
    ),
    Breakage(
        "the ordering field is taken though another column's name speaks of events",
        f"{_ENGINE}/profile/columns.py",
        "    return ordering if ordering in events or not events else None\n",
        "    return ordering\n",
        ("tests/unit/test_profile.py::test_the_ordering_field_is_taken_unless_another_name_speaks_of_events",),
    ),
    Breakage(
        "a birthday is an event time",
        f"{_ENGINE}/profile/columns.py",
        "    return low >= EARLIEST_MS and high",
        "    return high",
        ("tests/unit/test_profile.py::test_a_birthday_and_an_expiry_are_no_event_times",),
    ),
    Breakage(
        "a sample of rows is a whole table",
        f"{_ENGINE}/profile/sample.py",
        "        if len(found) == _FILES or left <= 0:",
        "        if False:",
        ("tests/unit/test_profile.py::test_the_sample_is_bounded",),
    ),
    Breakage(
        "a compaction gives nothing back to what remained before it",
        f"{_ENGINE}/past/freshness.py",
        "        remaining.add(root, past.stated.get(root) or past.stated.get(path) or _Log(None, 0))\n",
        "        pass\n",
        ("tests/unit/test_past_freshness.py::test_it_is_what_the_engine_said_then",),
    ),
    Breakage(
        "an event time that nobody states counts as none",
        f"{_ENGINE}/past/freshness.py",
        "        if mark is None or self._unknown:\n",
        "        if mark is None:\n",
        ("tests/unit/test_past_freshness.py::test_where_a_merged_log_file_states_no_event_times_nothing_is_known",),
    ),
    Breakage(
        "bytes of merged log files are what Hudi's write stats say",
        f"{_ENGINE}/past/compactions.py",
        "log_bytes=stated if (merged := _logs_read(state, plan)) is None else merged,",
        "log_bytes=stated,",
        ("tests/unit/test_past_compactions.py::test_bytes_of_log_files_are_those_of_the_files",),
    ),
    Breakage(
        "a slice without a base file counts as one whose size is forgotten",
        f"{_ENGINE}/past/compactions.py",
        "{_name(op.base_file) for op in plan.operations if op.base_file}",
        "{_name(op.base_file or op.file_id) for op in plan.operations}",
        ("tests/unit/test_past_compactions.py::test_a_compaction_is_told_with_what_it_read_and_wrote",),
    ),
    Breakage(
        "an archived bulk insert is in a range that ended before it was completed",
        "hudi_assets/engine/queries/query.py",
        "known = state.archived_bringing_rows.get(instant)",
        "known = instant",
        ("tests/unit/test_archived_past.py::test_archiving_changes_no_range",),
    ),
)
