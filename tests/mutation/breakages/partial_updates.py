"""Breakages of the merge of partial updates."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_PARTIAL = "hudi_assets/engine/merging/partial.py"
_PASSES = "hudi_assets/engine/merging/passes.py"
_SUMMARIES = "hudi_assets/engine/table/log_files/summaries.py"
_READER = "hudi_assets/engine/table/log_files/reader.py"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "what loses gives no columns",
        _PARTIAL,
        "np.where(before == _LACKING, mine, before))\n",
        "before)\n",
        ("tests/property/test_partial_updates.py::test_partial_updates_agree_with_the_loop",),
    ),
    Breakage(
        "a column that was filled is filled again",
        _PARTIAL,
        "np.where(before == _LACKING, mine, before))\n",
        "np.where(has, at, before))\n",
        ("tests/property/test_partial_updates.py::test_partial_updates_agree_with_the_loop",),
    ),
    Breakage(
        "a row is filled from a deleted one",
        _PARTIAL,
        "    fills = there & ~state.deleted[keys] & ~records.deleted[now]\n",
        "    fills = there\n",
        ("tests/property/test_partial_updates.py::test_partial_updates_agree_with_the_loop",),
    ),
    Breakage(
        "in commit order a row is filled from a delete block's delete",
        _PARTIAL,
        "    fills = state.there[keys] & state.from_rows[keys] & ~records.deleted[now]\n",
        "    fills = state.there[keys] & ~records.deleted[now]\n",
        ("tests/property/test_partial_updates.py::test_partial_updates_agree_with_the_loop",),
    ),
    Breakage(
        "partial updates are not filled from base rows",
        _PARTIAL,
        "    if (filling.sources < 0).any():\n",
        "    if False:\n",
        ("tests/property/test_partial_updates.py::test_partial_updates_agree_with_the_loop",),
    ),
    Breakage(
        "partial updates of another part of the keys are lost",
        _PASSES,
        "            yield from self._filled(together(self._fillings))\n",
        "            yield from self._filled(self._fillings[0])\n",
        ("tests/property/test_partial_updates.py::test_in_passes_too",),
    ),
    Breakage(
        "partial updates are merged by the rules of Hudi 0.x",
        "hudi_assets/engine/model/merge_mode.py",
        "        return self in (MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING)\n",
        "        return True\n",
        ("tests/property/test_partial_updates.py::test_hudi_0_x_has_none",),
    ),
    Breakage(
        "a partial update is a row with nulls",
        _READER,
        "        if is_partial(block):\n            only =",
        "        if False:\n            only =",
        ("tests/unit/test_any_table.py::test_partial_updates_are_merged",),
    ),
    Breakage(
        "a partial update without its ordering value loses quietly",
        _READER,
        "            if (problem := _unordered(only, ordering)) is not None:\n",
        "            if False:\n",
        ("tests/unit/test_any_table.py::test_a_partial_update_without_its_ordering_value_is_not_merged_here",),
    ),
    Breakage(
        "a range of commits shows partial updates with nulls",
        "hudi_assets/engine/queries/in_range.py",
        "    if reader.gaps is not None or any(is_partial(stored.block) for stored in blocks):\n",
        "    if reader.gaps is not None:\n",
        ("tests/unit/test_any_table.py::test_partial_updates_are_merged",),
    ),
    Breakage(
        "a slice with partial updates is parted",
        "hudi_assets/engine/actions/compaction/closure.py",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.partial or s.nulls for s in known):",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.nulls for s in known):",
        ("tests/unit/test_any_table.py::test_a_slice_with_other_blocks_is_taken_whole",),
    ),
    Breakage(
        "partial updates are forgotten with the first look",
        "hudi_assets/engine/model/log_summary.py",
        "    if summary.partial:\n        return values[:-1]\n",
        "",
        ("tests/unit/test_any_table.py::test_partial_updates_are_not_merged_as_hudi_0_x_merges",),
    ),
    Breakage(
        "partial updates are planned where their merge is not known",
        "hudi_assets/engine/actions/compaction/who_executes.py",
        "            if summaries[path].partial and whole_rows:\n",
        "            if False:\n",
        ("tests/unit/test_any_table.py::test_partial_updates_are_not_merged_as_hudi_0_x_merges",),
    ),
    Breakage(
        "a plan with a partial update without its ordering value is published",
        _READER,
        "columns_not_merged(names) or _unordered(only, ordering) or ",
        "columns_not_merged(names) or ",
        ("tests/unit/test_any_table.py::test_a_partial_update_without_its_ordering_value_is_not_merged_here",),
    ),
    Breakage(
        "a commit bounds a partial update that lacks the event-time column",
        _SUMMARIES,
        "                unknown = unknown or _kept_event_times(records, column)\n",
        "",
        ("tests/unit/test_any_table.py::test_no_commit_bounds_a_partial_update_without_the_event_time_column",),
    ),
    Breakage(
        "a partial update with a null event time is taken for one that lacks the column",
        _SUMMARIES,
        " or column in records.only or ",
        " or ",
        ("tests/unit/test_any_table.py::test_a_partial_update_with_its_event_time_counts_by_it",),
    ),
    Breakage(
        "a commit bounds a null that may leave the event time as it is",
        "hudi_assets/engine/event_time/commit_bound.py",
        "        if summary.undated.rows is not None and self.state.config.merging.null_may_keep:\n",
        "        if False:\n",
        ("tests/unit/test_any_table.py::test_no_commit_bounds_a_null_that_may_leave_the_event_time_as_it_is",),
    ),
    Breakage(
        "no commit bounds a null in a table whose rules are not merged here",
        "hudi_assets/engine/event_time/commit_bound.py",
        "self.state.config.merging.null_may_keep:\n",
        "self.state.config.merging.not_merged:\n",
        ("tests/unit/test_any_table.py::test_no_commit_bounds_a_null_that_may_leave_the_event_time_as_it_is",),
    ),
    Breakage(
        "a text that is no time hides partial updates",
        _SUMMARIES,
        '                unknown = unknown or f"{path}: {error.what}"\n',
        '                return ScannedLog(LogSummary(None, None, None, reason=f"{path}: {error.what}"), "")\n',
        ("tests/unit/test_any_table.py::test_unknown_event_times_hide_nothing_else_of_a_log_file",),
    ),
    Breakage(
        "a damaged block hides what a log file holds beside it",
        _SUMMARIES,
        "    whole = [block for block in blocks if not block.is_corrupt]\n",
        "    whole = [] if any(b.framed for b in blocks) else [block for block in blocks if not block.is_corrupt]\n",
        ("tests/unit/test_any_table.py::test_unknown_event_times_hide_nothing_else_of_a_log_file",),
    ),
    Breakage(
        "a commit bounds partial updates that are not read",
        _SUMMARIES,
        '                unknown = unknown or (f"{path}: {unread}" if is_partial(block) else None)\n',
        "",
        ("tests/unit/test_any_table.py::test_a_block_that_is_not_read_is_bounded_by_its_commit",),
    ),
    Breakage(
        "a required column that nothing fills is null",
        _PARTIAL,
        "    _refuse_unfilled(columns, schema)\n",
        "",
        ("tests/property/test_partial_updates.py::test_a_required_column_that_nothing_fills_is_refused_by_name",),
    ),
)
