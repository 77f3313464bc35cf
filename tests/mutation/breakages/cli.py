"""Breakages of the command line."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

ENVIRONMENT = ("tests/cli/test_environment.py",)
OTHER_USERS = ("tests/cli/test_other_users.py",)
METRICS = ("tests/cli/test_metrics.py",)
NOTES = ("tests/catalog/test_notes.py",)
INIT = ("tests/cli/test_init.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "py4j's tracebacks reach who interrupts a compaction",
        "hudi_assets/cli/table.py",
        "    logging.getLogger().addFilter(_is_not_of_py4j)\n",
        "",
        ENVIRONMENT,
    ),
    Breakage(
        "an error of py4j's hides that it was Ctrl-C",
        "hudi_assets/cli/errors.py",
        "last = last.__cause__ or last.__context__",
        "last = last.__cause__",
        ENVIRONMENT,
    ),
    Breakage(
        "Spark starts for a table that cannot be written",
        "hudi_assets/cli/commands.py",
        "    table.check_writable()\n",
        "",
        ENVIRONMENT,
    ),
    Breakage(
        "Ctrl-C is not said in words",
        "hudi_assets/cli/commands.py",
        "    cls=Interruptible,\n",
        "",
        ENVIRONMENT,
    ),
    Breakage(
        "an output that takes nothing more is tried again as Python ends",
        "hudi_assets/cli/commands.py",
        "        show_error(problem, as_json)\n        give_up_output()\n",
        "        show_error(problem, as_json)\n",
        ENVIRONMENT,
    ),
    Breakage(
        "matplotlib tells of its fonts where a user has no home",
        "hudi_assets/cli/report.py",
        "setLevel(logging.ERROR)",
        "setLevel(logging.WARNING)",
        OTHER_USERS,
    ),
    Breakage(
        "a folder that takes no blocks is said as any file is",
        "hudi_assets/cli/init.py",
        "if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):",
        "if error.errno is not None:",
        OTHER_USERS,
    ),
    Breakage(
        "a block that is there is overwritten",
        "hudi_assets/cli/init.py",
        "    if file.exists() and not force:",
        "    if file.exists() and force:",
        INIT,
    ),
    Breakage(
        "a path is written into YAML as it is",
        "hudi_assets/cli/blocks.py",
        '        yield _field("path", self.table.path)\n',
        '        yield f"path: {self.table.path}\\n"\n',
        INIT,
    ),
    Breakage(
        "a lock that cannot be shared counts as one",
        "hudi_assets/cli/blocks.py",
        "        elif table.lock and table.lock.endswith(_SHARED_LOCK):",
        "        elif table.lock:",
        INIT,
    ),
    Breakage(
        "a clean deletes files that a published view names",
        "hudi_assets/cli/maintain.py",
        "once() if dry_run or unasked else publish_and_clean(table, once)",
        "once()",
        ("tests/catalog/test_follow.py",),
    ),
    Breakage(
        "the latency of the command is not that of the promise",
        "hudi_assets/cli/publish.py",
        "    given = {} if target.data_latency is None else {DATA_LATENCY: target.data_latency}\n",
        "    given: dict[str, str] = {}\n",
        NOTES,
    ),
    Breakage(
        "the help leaves out the sections of the file of tables",
        "hudi_assets/cli/metrics.py",
        r"\[\[table]]",
        "[[table]]",
        METRICS,
    ),
)
