"""Whatever the machine lacks, as an error in words: no traceback of Python's, no stack of Java's."""

from __future__ import annotations

import sys

from hudi_assets.engine import EnvironmentProblem, HudiAssetsError
from hudi_assets.engine.errors import machine_problem


def problem_of(error: Exception) -> HudiAssetsError | None:
    """The error to show; None for what is a mistake of the program's, whose traceback has to be seen."""
    if isinstance(error, HudiAssetsError):
        return error
    if "pyspark" in sys.modules:  # else no error is Spark's
        from hudi_assets.engine.spark_errors import spark_problem

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
