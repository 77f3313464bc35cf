"""Breakages of the command line."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "py4j's tracebacks reach who interrupts a compaction",
        "hudi_assets/cli/table.py",
        "    logging.getLogger().addFilter(_is_not_of_py4j)\n",
        "",
        ("tests/cli/test_environment.py::test_ctrl_c_during_a_compaction",),
    ),
    Breakage(
        "an error of py4j's hides that it was Ctrl-C",
        "hudi_assets/cli/errors.py",
        "last = last.__cause__ or last.__context__",
        "last = last.__cause__",
        ("tests/cli/test_environment.py::test_ctrl_c_in_the_midst_of_a_call_to_java",),
    ),
    Breakage(
        "Spark starts for a table that cannot be written",
        "hudi_assets/cli/commands.py",
        "    table.check_writable()\n",
        "",
        ("tests/cli/test_environment.py::test_a_table_that_cannot_be_written_is_said_before_spark_starts",),
    ),
    Breakage(
        "Ctrl-C is not said in words",
        "hudi_assets/cli/commands.py",
        "    cls=Interruptible,\n",
        "",
        ("tests/cli/test_environment.py::test_ctrl_c_ends_a_command_in_words",),
    ),
    Breakage(
        "an output that takes nothing more is tried again as Python ends",
        "hudi_assets/cli/commands.py",
        "        show_error(problem, as_json)\n        give_up_output()\n",
        "        show_error(problem, as_json)\n",
        ("tests/cli/test_environment.py::test_an_output_that_takes_nothing_more",),
    ),
    Breakage(
        "matplotlib tells of its fonts where a user has no home",
        "hudi_assets/cli/report.py",
        "setLevel(logging.ERROR)",
        "setLevel(logging.WARNING)",
        ("tests/cli/test_other_users.py::test_a_report_without_a_home",),
    ),
    Breakage(
        "a folder that takes no blocks is said as any file is",
        "hudi_assets/cli/init.py",
        "if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):",
        "if error.errno is not None:",
        ("tests/cli/test_other_users.py::test_blocks_where_nothing_can_be_written",),
    ),
    Breakage(
        "a block that is there is overwritten",
        "hudi_assets/cli/init.py",
        "    if file.exists() and not force:",
        "    if file.exists() and force:",
        ("tests/cli/test_init.py::test_several_candidates_are_written_as_comments",),
    ),
    Breakage(
        "a path is written into YAML as it is",
        "hudi_assets/cli/blocks.py",
        '        yield _field("path", self.table.path)\n',
        '        yield f"path: {self.table.path}\\n"\n',
        ("tests/cli/test_init.py::test_a_path_with_signs_of_yaml_is_quoted",),
    ),
    Breakage(
        "a lock that cannot be shared counts as one",
        "hudi_assets/cli/blocks.py",
        "        elif table.lock and table.lock.endswith(_SHARED_LOCK):",
        "        elif table.lock:",
        ("tests/cli/test_init.py::test_evidence_of_table_services_cleans_and_locks",),
    ),
    Breakage(
        "a clean deletes files that a published view names",
        "hudi_assets/cli/maintain.py",
        "once() if dry_run or unasked else publish_and_clean(table, once)",
        "once()",
        ("tests/catalog/test_follow.py::test_a_clean_makes_the_view_true_first",),
    ),
    Breakage(
        "the latency of the command is not that of the promise",
        "hudi_assets/cli/publish.py",
        "    given = {} if target.data_latency is None else {DATA_LATENCY: target.data_latency}\n",
        "    given: dict[str, str] = {}\n",
        ("tests/catalog/test_notes.py::test_the_latency_of_the_command_is_that_of_the_promise",),
    ),
    Breakage(
        "the help leaves out the sections of the file of tables",
        "hudi_assets/cli/metrics.py",
        r"\[\[table]]",
        "[[table]]",
        ("tests/cli/test_metrics.py::test_the_help_shows_the_sections_of_the_file_of_tables",),
    ),
)
