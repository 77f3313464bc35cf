"""Breakages of the look at tables that are not merged here, and of plans that Hudi executes for them."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ACTIONS = "hudi_assets/engine/actions/compaction"
_TABLE = "hudi_assets/engine/table"
LOOKS = ("tests/unit/test_any_table.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "who is refused on version 6 is not told that Hudi executes whole slices",
        "hudi_assets/engine/table/settings/merging.py",
        "whole=not layout.hudi_executes_plans",
        "whole=False",
        ("tests/unit/test_any_table.py",),
    ),
    Breakage(
        "our queries of log files merge by rules that are not the table's",
        "hudi_assets/engine/queries/query.py",
        "    mode = config.merge_mode(state.storage.base)\n",
        "    mode = config.merging.mode\n",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "our writer writes tables whose rules it does not know",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        config.refuse_merge(where)\n        if config.keeps_changes:",
        "        if config.keeps_changes:",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "our writer writes rows without a key",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        if not config.record_key:\n",
        "        if False:\n",
        ("tests/unit/test_any_table.py::test_merged_and_not_written",),
    ),
    Breakage(
        "a look shows a plan as due that would make the metadata table untrue",
        f"{_ACTIONS}/who_executes.py",
        "        _refuse_log_files(state, plan)\n    made_untrue(state, plan)\n",
        "        _refuse_log_files(state, plan)\n",
        ("tests/unit/test_metadata_writer.py::test_a_compaction_is_refused_only_where_it_matters",),
    ),
    Breakage(
        "a plan is published that the native executor refuses",
        f"{_ACTIONS}/planning.py",
        "                refuse_execution(state, chosen)\n",
        "",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "the sensor is told of a plan that would be refused",
        f"{_ACTIONS}/who_executes.py",
        "    except UnsupportedTable as refused:\n        return NoPlan(str(refused))\n",
        "    except UnsupportedTable:\n        return plan\n",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "log compactions are planned for the native executor",
        f"{_ACTIONS}/who_executes.py",
        "        _refuse_log_files(state, plan)\n",
        "        pass\n",
        ("tests/unit/test_any_table.py::test_log_compactions_are_not_merged_here",),
    ),
    Breakage(
        "the native executor executes a plan that is Hudi's to execute",
        f"{_ACTIONS}/executor.py",
        '        self.table.config.refuse_merge(f"{self.table.path} {instant}")\n',
        "",
        ("tests/unit/test_any_table.py::test_rules_that_are_not_known",),
    ),
    Breakage(
        "a slice with what is not merged is parted",
        f"{_ACTIONS}/closure.py",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.partial or s.nulls for s in known):",
        "    if rule.mode not in _HAVE_RULES or any(s.partial or s.nulls for s in known):",
        ("tests/unit/test_any_table.py::test_a_slice_with_other_blocks_is_taken_whole",),
    ),
    Breakage(
        "a plan of version 6 for Hudi carries log files over",
        f"{_ACTIONS}/planning.py",
        "            merging.mode if parts else None,\n",
        "            merging.mode,\n",
        ("tests/unit/test_any_table.py::test_a_plan_takes_whole_slices_where_the_order_of_records_is_not_known",),
    ),
    Breakage(
        "Hudi is given any plan of version 6",
        f"{_ACTIONS}/hudi_executor.py",
        "    if not layout.hudi_executes_plans and (carries or config.merging.not_merged is None):",
        "    if not layout.hudi_executes_plans and carries:",
        ("tests/unit/test_any_table.py::test_hudi_is_not_given_plans_of_version_6_that_we_merge",),
    ),
    Breakage(
        "a table of other files is changed",
        "hudi_assets/engine/transaction/open_table.py",
        "        self.config.refuse_other_files(self.path)\n",
        "",
        ("tests/unit/test_any_table.py::test_files_of_another_kind_are_looked_at_alone",),
    ),
    Breakage(
        "deletes that a marker tells are taken for no deletes",
        f"{_TABLE}/settings/merging.py",
        "    if other is not None:\n        return None, ordering, other\n",
        "",
        ("tests/unit/test_stated_merge_mode.py::test_what_is_not_merged_says_so_by_name",),
    ),
    Breakage(
        "a record without event time in a partial update counts for nothing",
        f"{_TABLE}/log_files/reader.py",
        "            asked = [field.with_nullable(True) for field in schema if field.name in columns]\n",
        "            asked = [field.with_nullable(True) for field in schema if field.name in names]\n",
        ("tests/unit/test_any_table.py::test_a_partial_update_without_its_ordering_value_is_not_merged_here",),
    ),
    Breakage(
        "what is not merged is forgotten with the first look",
        "hudi_assets/engine/model/log_summary.py",
        "    return values[:-2] if summary.not_merged is not None else values[:-3]\n",
        "    return values[:-3]\n",
        LOOKS,
    ),
    Breakage(
        "change data is taken for files that nobody knows",
        "hudi_assets/engine/validate.py",
        "                or holds_changes(name)\n",
        "",
        ("tests/unit/test_refusals.py::test_change_data_is_passed_over",),
    ),
    Breakage(
        "a delete with several ordering values counts at its commit",
        "hudi_assets/engine/event_time/commit_bound.py",
        "deletes_count_at_commit and not self._has_other_event_times",
        "deletes_count_at_commit",
        ("tests/unit/test_any_table.py::test_a_delete_with_several_ordering_values_has_an_event_time",),
    ),
    Breakage(
        "a catalog is told of base files that lack their data",
        "hudi_assets/engine/hudi_table/reports.py",
        "        self.config.refuse_other_files(self.path)\n        state = self._readable()\n",
        "        state = self._readable()\n",
        ("tests/unit/test_any_table.py::test_files_of_another_kind_are_looked_at_alone",),
    ),
    Breakage(
        "files of change data outlive their slice",
        "hudi_assets/engine/table/files/cleaned.py",
        "            if (beside := slice_of_changes(file.name)) is not None:\n",
        "            if (beside := None) is not None:\n",
        ("tests/unit/test_any_table.py::test_files_of_change_data_are_cleaned_with_their_slice",),
    ),
    Breakage(
        "our writer writes a table with change data",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        if config.keeps_changes:\n",
        "        if False:\n",
        ("tests/unit/test_any_table.py::test_merged_and_not_written",),
    ),
    Breakage(
        "on version 6 a log file that is not merged is left to Hudi, which is not given the plan",
        f"{_ACTIONS}/who_executes.py",
        "    hint = LET_HUDI if state.layout.hudi_executes_plans else LOOK_ALONE\n",
        "    hint = LET_HUDI\n",
        ("tests/unit/test_any_table.py::test_nobody_is_sent_to_hudi_where_hudi_is_not_given_the_plan",),
    ),
    Breakage(
        "our writer writes rows that are deletes to the table's writers",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        self._refuse_marked_rows()\n",
        "",
        (
            "tests/unit/test_any_table.py::test_rules_that_are_not_known",
            "tests/unit/test_any_table.py::test_merged_and_not_written",
        ),
    ),
    Breakage(
        "half a delete marker is one",
        f"{_TABLE}/settings/not_merged.py",
        "return DeleteMarker(column, value) if column and value else None",
        'return DeleteMarker(column or "", value or "") if column or value else None',
        (
            "tests/unit/test_any_table.py::test_rules_that_are_not_known",
            "tests/unit/test_any_table.py::test_merged_and_not_written",
        ),
    ),
    Breakage(
        "version 6 has delete markers that readers pass over",
        f"{_TABLE}/settings/merging.py",
        "return delete_marker(properties) if layout.states_merge_mode else None",
        "return delete_marker(properties)",
        (
            "tests/unit/test_any_table.py::test_rules_that_are_not_known",
            "tests/unit/test_any_table.py::test_merged_and_not_written",
        ),
    ),
)
