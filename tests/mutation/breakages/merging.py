"""Breakages of merging."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
TABLES = ("tests/property/test_modes_in_tables.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "of equal ordering values the earlier record wins against the base row",
        f"{_ENGINE}/merging/ordering.py",
        "(mine >= theirs).fill_null(False)",
        "(mine > theirs).fill_null(False)",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "of equal ordering values in logs the earlier one wins",
        f"{_ENGINE}/merging/winners.py",
        "    np.maximum.at(last, numbers[records], records)\n",
        "    last[numbers[records][::-1]] = records[::-1]\n",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete in commit order is compared as any other",
        f"{_ENGINE}/merging/winners.py",
        "    if not barrier.any():\n        return np.zeros",
        "    if True:\n        return np.zeros",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete in commit order also beats what comes after it",
        f"{_ENGINE}/merging/winners.py",
        "    return (records < last[numbers]) | passed_over",
        "    return (last[numbers] > _NONE) & (records != last[numbers])",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete in commit order leaves the base row",
        f"{_ENGINE}/merging/winners.py",
        "            barred = barrier[won]\n        case",
        "            barred = barrier[won] & False\n        case",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete in commit order ends a base row that a row after it is compared with",
        f"{_ENGINE}/merging/winners.py",
        "            barred = barrier[won]\n        case",
        "            barred = np.isin(np.arange(len(keys)), numbers[barrier])\n        case",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete right after one in commit order is not passed over",
        f"{_ENGINE}/merging/winners.py",
        "    return (records < last[numbers]) | passed_over",
        "    return records < last[numbers]",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a row that is deleted is passed over after a delete in commit order",
        f"{_ENGINE}/merging/winners.py",
        "np.flatnonzero(_from_rows(heads) & (records > last[numbers]))",
        "np.flatnonzero(~np.concatenate([h.deleted for h in heads]) & (records > last[numbers]))",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a delete that is passed over takes its place above an exact split",
        f"{_ENGINE}/merging/passes.py",
        "self._parted(without_ended(heads), self.leaving)",
        "self._parted(heads, self.leaving)",
        ("tests/property/test_merge_modes.py::test_tombstones_in_a_residue_log_change_no_answer",),
    ),
    Breakage(
        "below an exact split a delete is passed over that came after a row above it",
        f"{_ENGINE}/merging/passes.py",
        "find_winners(heads, self.mode, alive=self.leaving is not None)",
        "find_winners(heads, self.mode)",
        ("tests/property/test_merge_modes.py::test_an_exact_split_changes_no_answer_and_lets_nothing_above_in",),
    ),
    Breakage(
        "a delete in commit order ends a base row above an exact split, that a record left out is compared with",
        f"{_ENGINE}/merging/passes.py",
        "alive=self.leaving is not None).beside(above)",
        "alive=self.leaving is not None)",
        ("tests/property/test_merge_modes.py::test_an_exact_split_changes_no_answer_and_lets_nothing_above_in",),
    ),
    Breakage(
        "a null in _hoodie_is_deleted deletes",
        f"{_ENGINE}/merging/merge.py",
        "pc.fill_null(table.column(IS_DELETED), False)",
        "pc.fill_null(table.column(IS_DELETED), True)",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "commit-time ordering takes the first record",
        f"{_ENGINE}/merging/winners.py",
        "won = _last(numbers, len(keys), np.arange(len(numbers)))",
        "won = np.unique(numbers, return_index=True)[1]",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "a pass forgets what an earlier one replaced in the base file",
        f"{_ENGINE}/merging/passes.py",
        "now if decided.replaced is None else decided.replaced | now",
        "now",
        ("tests/property/test_merge_modes.py::test_a_merge_in_passes_gives_the_same_rows_in_the_same_order",),
    ),
    Breakage(
        "blocks that are read again are read for their keys alone",
        f"{_ENGINE}/merging/passes.py",
        "if number in self._kept else self.source.block(number, self._names)",
        "if number in self._kept else self.source.block(number, head_columns(self.ordering))",
        ("tests/property/test_merge_modes.py::test_a_merge_in_passes_gives_the_same_rows_in_the_same_order",),
    ),
    Breakage(
        "keys are not dealt into parts",
        f"{_ENGINE}/merging/passes.py",
        "(pl.Series(head.keys).hash() % parts == part)",
        "(pl.Series(head.keys).hash() % parts >= 0)",
        ("tests/unit/test_parts.py::test_each_key_is_of_one_part",),
    ),
    Breakage(
        "as 0.x merges, a delete block's delete is compared with the base row",
        f"{_ENGINE}/merging/winners.py",
        "            barred = ~from_rows[won]",
        "            barred = barred & False",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "as 0.x merges, a row that won is not compared with the base row",
        f"{_ENGINE}/merging/winners.py",
        "            if mode.compares_base_rows:\n                barred",
        "            if False:\n                barred",
        ("tests/property/test_merge_modes.py::test_the_merge_agrees_with_the_loop",),
    ),
    Breakage(
        "as 0.x merges, dates of delete blocks are compared",
        f"{_ENGINE}/merging/winners.py",
        "pa.types.is_string(type_) or pa.types.is_date(type_) or",
        "pa.types.is_string(type_) or",
        ("tests/property/test_merge_modes.py::test_hudi_0_x_compares_no_text_date_or_decimal_of_a_delete_block",),
    ),
    Breakage(
        "of the rows of a key in one batch another one is written than the one that wins",
        f"{_ENGINE}/actions/writing/log_files.py",
        'last = frame.sort("ord", "row", nulls_last=False).unique("key", keep="last")',
        'last = frame.sort("ord", "row", nulls_last=False).unique("key", keep="first")',
        TABLES,
    ),
    Breakage(
        "of the deletes of a key in one batch another one is written than the one that wins",
        f"{_ENGINE}/actions/writing/log_files.py",
        "for record in sorted(records, key=rank)}",
        "for record in sorted(records, key=rank, reverse=True)}",
        TABLES,
    ),
    Breakage(
        "older rows are thought to lose whatever their ordering values are",
        f"{_ENGINE}/queries/in_range.py",
        "    if reader.mode is MergeMode.COMMIT_TIME_ORDERING:\n        return True\n",
        "    if reader.mode is not MergeMode.EVENT_TIME_ORDERING:\n        return True\n",
        TABLES,
    ),
    Breakage(
        "a table is created with the properties of another merge mode",
        f"{_ENGINE}/table/settings/merging.py",
        "    rules = {MERGE_RULES: RULES_0_X} if mode is MergeMode.EVENT_TIME_ORDERING_0X else {}\n",
        "    rules = {}\n",
        TABLES,
    ),
)
