"""Breakages of what version 6 needs in a bucket: names that occur once, plans that come and go safely, times."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_LAYOUT = "hudi_assets/engine/table/layout/v6.py"
_PUBLISH = "hudi_assets/engine/transaction/publish.py"
_RECOVER = "hudi_assets/engine/transaction/recover.py"
_ROLLBACK = "hudi_assets/engine/transaction/rollback.py"
_TAKEN_BACK = "hudi_assets/engine/transaction/taken_back.py"
_TESTS = "tests/stores/test_version_6.py"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a plan of version 6 comes by one request in a bucket",
        _PUBLISH,
        "        if not self.layout.late_requests_harm(self.storage.capabilities):\n            self.announce",
        "        if True:\n            self.announce",
        (f"{_TESTS}::test_a_plan_that_others_have_seen_stays",),
    ),
    Breakage(
        "a plan of version 6 is written over whatever is there in a bucket",
        _PUBLISH,
        "        self.storage.replace_if(requested, content, version)\n",
        "        self.storage.replace(requested, content)\n",
        (f"{_TESTS}::test_a_plan_that_arrives_late_does_not_come",),
    ),
    Breakage(
        "a planner of version 6 gives a plan up by one request in a bucket",
        _PUBLISH,
        "            self.publish_guard(guard, plan.instant)  # whoever",
        "            pass  # whoever",
        (f"{_TESTS}::test_a_plan_whose_planner_gives_it_up_late_is_gone_by_then",),
    ),
    Breakage(
        "nobody finishes the withdrawal of a plan of version 6 in a bucket",
        _RECOVER,
        "        withdrawn = _is_withdrawn(state, plan.instant, guarded)\n",
        "        withdrawn = False\n",
        (f"{_TESTS}::test_a_plan_that_is_withdrawn_late_is_gone_by_then",),
    ),
    Breakage(
        "a late withdrawal of version 6 takes a plan that has rows in its slice",
        _RECOVER,
        "    return not any(i in state.committed for log in logs for i in block_instants(state.storage, log))\n",
        "    return True\n",
        (f"{_TESTS}::test_a_withdrawal_that_arrives_late_leaves_a_plan_with_rows",),
    ),
    Breakage(
        "a plan is executed whose withdrawal was begun",
        "hudi_assets/engine/actions/compaction/executor.py",
        " or state.guards:\n",
        ":\n",
        (f"{_TESTS}::test_an_execution_finishes_a_withdrawal_first",),
    ),
    Breakage(
        "a rollback or restore that arrived late is done",
        _ROLLBACK,
        "    return is_asked_for and any(",
        "    return is_asked_for and not any(",
        (f"{_TESTS}::test_what_would_be_taken_back_late_is_not",),
    ),
    Breakage(
        "a log file of version 6 has Spark's own write token in a bucket",
        "hudi_assets/engine/actions/writing/log_files.py",
        "    if spec.storage.capabilities.late_requests:\n",
        "    if False:\n",
        (f"{_TESTS}::test_no_write_makes_a_name_again",),
    ),
    Breakage(
        "a note that goes takes a log file whose name another writer has given again",
        _TAKEN_BACK,
        "                if self.layout.occurs_once(path):\n",
        "                if True:\n",
        (f"{_TESTS}::test_a_note_that_goes_takes_no_name_that_others_may_have",),
    ),
    Breakage(
        "a token that Spark has counted is taken for one by chance",
        "hudi_assets/engine/table/layout/names.py",
        "return len(numbers) == 2 and all(",
        "return len(numbers) == 2 and any(",
        (f"{_TESTS}::test_tokens_by_chance_are_told_from_those_that_spark_counts",),
    ),
    Breakage(
        "the archive passes an instant of version 6 whose file may come yet",
        "hudi_assets/engine/actions/archiving/archive.py",
        "uncommitted=_uncommitted(state) | self._taken_back(),",
        "uncommitted=_uncommitted(state),",
        (f"{_TESTS}::test_the_archive_waits_for_what_may_be_given_its_name_yet",),
    ),
    Breakage(
        "each rollback of version 6 holds the archive back for a day",
        _ROLLBACK,
        "named = self.table.layout.log_name_tells_beginning and self._is_completed(target.timestamp)",
        "named = False",
        (f"{_TESTS}::test_an_ordinary_rollback_does_not_hold_the_archive_back",),
    ),
    Breakage(
        "who was late takes another's delta commit out of the metadata table",
        "hudi_assets/engine/table/metadata/writer.py",
        "            if self._says(path, data):\n",
        "            if True:\n",
        (f"{_TESTS}::test_a_late_commit_in_the_metadata_table_takes_none_of_anothers",),
    ),
    Breakage(
        "a commit of version 6 is of the second of its instant in a bucket",
        _PUBLISH,
        "        later = (instant_ms(instant, self.timezone) // 1000 + 1) * 1000 + CLOCKS_MS\n",
        "        later = instant_ms(instant, self.timezone) // 1000 * 1000 + CLOCKS_MS\n",
        (f"{_TESTS}::test_a_commit_is_of_a_later_second_than_its_instant",),
    ),
    Breakage(
        "commits of version 6 wait where times are exact",
        _PUBLISH,
        "if self.layout.names_completion_times or self.storage.capabilities.exact_times:",
        "if self.layout.names_completion_times:",
        (f"{_TESTS}::test_nobody_waits_where_times_are_exact",),
    ),
    Breakage(
        "plans of version 6 carry log files over in a bucket",
        "hudi_assets/engine/table/settings/config.py",
        "    return replace(config, compaction=replace(config.compaction, whole_slices=True))\n",
        "    return config\n",
        (f"{_TESTS}::test_a_plan_takes_whole_slices",),
    ),
    Breakage(
        "version 6 in HDFS is taken for version 6 in a bucket",
        _LAYOUT,
        "        return store.late_requests\n",
        "        return store.put_if_match\n",
        (f"{_TESTS}::test_in_hdfs_log_files_are_carried_over",),
    ),
    Breakage(
        "what has no safe way on version 6 in a bucket is not refused",
        "hudi_assets/engine/transaction/open_table.py",
        "        refuse_in_a_bucket(self.config, self.layout, self.storage)\n",
        "",
        (f"{_TESTS}::test_what_has_no_safe_way_is_refused",),
    ),
    Breakage(
        "a table of version 6 with an exact split is made in a bucket",
        "hudi_assets/engine/create.py",
        "    refuse_in_a_bucket(config, layout, storage)\n",
        "",
        (f"{_TESTS}::test_a_table_with_an_exact_split_is_not_made",),
    ),
    Breakage(
        "a plan that may leave residue logs is executed in a bucket",
        "hudi_assets/engine/actions/compaction/executor.py",
        "                self._refuse_residue_in_a_bucket(plan)\n",
        "",
        (f"{_TESTS}::test_a_plan_of_elsewhere_that_may_leave_residue_is_refused",),
    ),
    Breakage(
        "a change under a condition of what is gone is no conflict",
        "hudi_assets/engine/storage/objects.py",
        '                raise came_second("deleted", self.uri(path)) from None\n',
        "                raise\n",
        (f"{_TESTS}::test_what_is_gone_is_not_replaced",),
    ),
)
