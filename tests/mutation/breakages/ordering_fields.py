"""Breakages of several ordering fields."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
_ORDERING = f"{_ENGINE}/merging/ordering.py"
_WINNERS = f"{_ENGINE}/merging/winners.py"
_DELETES = f"{_ENGINE}/merging/delete_records.py"
_CLOSURE = f"{_ENGINE}/actions/compaction/closure.py"
_LOOP = ("tests/property/test_ordering_fields.py::test_the_first_field_that_differs_decides",)
_NULLS = ("tests/property/test_ordering_fields.py::test_examples_with_nulls",)
_PARTED = ("tests/property/test_ordering_fields.py::test_a_partial_compaction_changes_no_answer",)
_UNIT = "tests/unit/test_ordering_fields.py::"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "against the base row each of several fields may decide",
        _ORDERING,
        "        less |= equal & (mine < theirs)",
        "        less |= (mine < theirs)",
        _LOOP,
    ),
    Breakage(
        "among log records the last of several fields decides",
        _ORDERING,
        "combined * (len(ordering) + 2) + ranks",
        "combined + ranks * (len(ordering) + 2)",
        _LOOP,
    ),
    Breakage(
        "of several fields NaN and -0.0 are compared as numbers",
        _ORDERING,
        "    if not pa.types.is_floating(values.type):\n",
        "    if True:\n",
        _LOOP,
    ),
    Breakage(
        "of several fields a null of Integers is no zero",
        _ORDERING,
        "    return pc.fill_null(values, 0) if pa.types.is_int32(values.type) else values\n",
        "    return values\n",
        ("tests/property/test_ordering_fields.py::test_a_null_of_integers_is_hudis_default_zero",),
    ),
    Breakage(
        "among log records the place of a null decides quietly",
        _WINNERS,
        "                    *np.flatnonzero(won != other),\n",
        "",
        _NULLS,
    ),
    Breakage(
        "against the base row the place of a null decides quietly",
        _WINNERS,
        "            if undecided.any():\n",
        "            if False:\n",
        _NULLS,
    ),
    Breakage(
        "a delete is compared with a log record that has its nulls elsewhere",
        _WINNERS,
        "            yield int(numbers[record])\n",
        "            pass\n",
        _NULLS,
    ),
    Breakage(
        "what a delete in commit order ends is compared",
        _WINNERS,
        "np.flatnonzero(~ended & ~barrier)",
        "np.flatnonzero(~barrier)",
        _NULLS,
    ),
    Breakage(
        "a delete of nulls alone is one in commit order",
        _DELETES,
        "mask=pa.array([row is None for row in rows], pa.bool_())",
        "mask=pa.array([row is None or not any(row) for row in rows], pa.bool_())",
        (f"{_UNIT}test_a_delete_of_nulls_alone_is_none_in_commit_order",),
    ),
    Breakage(
        "a delete's value of another class is compared",
        _DELETES,
        "    if kind is compared:\n",
        "    if True:\n",
        (f"{_UNIT}test_deletes_that_hudi_compares_with_no_row_are_refused",),
    ),
    Breakage(
        "text of Parquet blocks is merged by several fields",
        f"{_ENGINE}/table/log_files/reader.py",
        "    if len(ordering) < 2 or block.type",
        "    if True or block.type",
        (f"{_UNIT}test_text_of_parquet_blocks_is_not_merged",),
    ),
    Breakage(
        "partial updates are merged by several fields",
        f"{_ENGINE}/table/log_files/reader.py",
        "    if only is not None and len(ordering) > 1:\n",
        "    if False:\n",
        ("tests/unit/test_any_table.py::test_partial_updates_with_several_ordering_fields_are_not_merged_here",),
    ),
    Breakage(
        "a slice in which one of several fields may be null is parted",
        _CLOSURE,
        "s.not_merged or s.partial or s.nulls for",
        "s.not_merged or s.partial for",
        (f"{_UNIT}test_a_null_in_a_log_file_takes_the_whole_slice",),
    ),
    Breakage(
        "a tie in the first of several fields parts a slice with deletes in commit order",
        _CLOSURE,
        "one > other or (self.several_fields and one == other)",
        "one > other",
        _PARTED,
    ),
    Breakage(
        "nulls of several fields are forgotten with the first look",
        f"{_ENGINE}/model/log_summary.py",
        "    if summary.nulls:\n        return values\n",
        "",
        (f"{_UNIT}test_what_is_kept_of_a_log_file_is_read_back",),
    ),
    Breakage(
        "what is kept of one ordering field is believed of several",
        f"{_ENGINE}/event_time/table_times.py",
        "    if len(ordering) > 1:\n        kind =",
        "    if False:\n        kind =",
        (f"{_UNIT}test_what_is_kept_of_other_fields_says_nothing_of_nulls",),
    ),
    Breakage(
        "a header says which of several fields are null",
        f"{_ENGINE}/table/log_files/summaries.py",
        "_by_header(block, column, unit) if len(ordering) < 2 else None",
        "_by_header(block, column, unit)",
        (f"{_UNIT}test_a_null_in_a_log_file_takes_the_whole_slice",),
    ),
    Breakage(
        "rows of tables with several ordering fields are written",
        f"{_ENGINE}/actions/writing/delta_commit.py",
        "        refuse_rows(self.table.config, self.table.path)\n",
        "",
        (f"{_UNIT}test_rows_are_not_written_and_deletes_are_in_commit_order",),
    ),
    Breakage(
        "ordering values of a delete are dropped",
        f"{_ENGINE}/actions/writing/delta_commit.py",
        "        refuse_ordering_values(self.table.config, given, self.table.path)\n",
        "",
        (f"{_UNIT}test_rows_are_not_written_and_deletes_are_in_commit_order",),
    ),
    Breakage(
        "a table with several ordering fields is created",
        f"{_ENGINE}/table/settings/merging.py",
        "    if len(listed(ordering_field)) > 1:\n",
        "    if False:\n",
        (f"{_UNIT}test_a_new_table_takes_one_ordering_field",),
    ),
    Breakage(
        "several ordering fields of version 6 are merged",
        f"{_ENGINE}/table/settings/merging.py",
        "    if len(ordering) > 1 and not layout.states_merge_mode:\n",
        "    if False:\n",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "a delete whose value its column does not hold ends a look",
        "hudi_assets/engine/merging/delete_records.py",
        "    except (pa.ArrowException, TypeError, OverflowError) as error:",
        "    except MemoryError as error:",
        (
            "tests/unit/test_ordering_fields.py::"
            "test_a_delete_whose_value_its_column_does_not_hold_is_refused_with_its_file",
        ),
    ),
)
