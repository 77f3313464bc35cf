"""Whatever the machine lacks, as an error in words: no traceback of Python's, no stack of Java's."""

from __future__ import annotations

import os
import sys
from typing import Any

from typer.core import TyperGroup

from hudi_assets.engine import EnvironmentProblem, HudiAssetsError, machine_problem


class Interrupted(HudiAssetsError):
    """Somebody wanted no more of it: what was unfinished is as a process that dies leaves it."""


class Interruptible(TyperGroup):
    """Commands that Ctrl-C ends with an error in words, with --json too."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if not _began_with_ctrl_c(error):
                raise
            path = next((text for text in sys.argv[2:] if not text.startswith("-")), None)
            raise Interrupted(
                "Interrupted before it was done.",
                where=path,
                hint="Nothing half done counts. `hudi-assets recover PATH` finishes or undoes what was begun; a "
                "compaction that is pending (`hudi-assets status PATH`) is executed by `hudi-assets compact PATH`.",
            ) from error


def _began_with_ctrl_c(error: BaseException) -> bool:
    """True also for an error that arose while one was handled: py4j cannot tell Java of it in the midst of a call."""
    found: list[BaseException] = []
    last: BaseException | None = error
    while last is not None and last not in found:
        found.append(last)
        last = last.__cause__ or last.__context__
    return any(isinstance(one, KeyboardInterrupt) for one in found)


def give_up_output() -> None:
    """Forget what the output did not take: Python would try again as it ends, and end with 120 and words of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def problem_of(error: Exception) -> HudiAssetsError | None:
    """The error to show; None for what is a mistake of the program's, whose traceback has to be seen."""
    if isinstance(error, HudiAssetsError):
        return error
    if "pyspark" in sys.modules:  # else no error is Spark's
        from hudi_assets.engine import spark_problem

        found = spark_problem(error)
        if found is not None:
            return found
    if isinstance(error, MemoryError):
        return EnvironmentProblem("The memory of this machine, or what this process may take of it, is used up.")
    if isinstance(error, OSError):
        where = str(error.filename or "the output, or a file that the system does not name")
        return machine_problem(error, where) or EnvironmentProblem(
            f"The system refused a file operation: {error.strerror or error}.", where=where
        )
    return None
