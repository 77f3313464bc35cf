"""Runs some tests in a copy of the project, forked from a process that has imported its libraries.

Most of what a breakage costs would else be the same imports again. Nothing of the project itself is imported before the
fork, so that each process has the copy's own modules, broken or not.
"""

from __future__ import annotations

import compileall
import multiprocessing
import os
import py_compile
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[2]
# What the tests' own imports take most of their time for.
_LIBRARIES: Final = (
    "pytest", "hypothesis", "xdist", "pyspark.sql.functions", "pyspark.sql.connect.session",
    "pyarrow.dataset", "pyarrow.parquet", "pandas", "dagster", "dagster_pyspark", "fastavro", "obstore.store",
    "typer.testing", "rich.table",
)  # fmt: skip
# The project's own: they come from the copy.
_OWN: Final = ("tests", "hudi_assets", "resources", "pyspark_hudi_assets", "__mp_main__")
_TIMEOUT_S: Final = 1200
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(list(_LIBRARIES))


def compile_all(project: Path) -> None:
    """Its bytecode goes by what a file says, not by when it was written: two versions may be of one second."""
    compileall.compile_dir(
        project, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH, workers=os.cpu_count() or 1
    )


def passes(project: Path, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Whether the tests pass in a copy of the project; and what pytest said last."""
    with tempfile.TemporaryDirectory(prefix="trial-") as folder:
        said = Path(folder, "said")
        trial = _FORKS.Process(target=_run, args=(str(project), tests, str(said)))
        trial.start()
        trial.join(_TIMEOUT_S)
        if trial.exitcode is None:
            trial.kill()
            raise RuntimeError(f"{tests} did not end within {_TIMEOUT_S} s")
        lines = said.read_text(errors="replace")
    if trial.exitcode not in (0, 1):
        raise RuntimeError(f"pytest ended with {trial.exitcode}: {lines[-4000:]}")
    failed = [line for line in lines.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return trial.exitcode == 0, failed[0] if failed else ""


def _run(project: str, tests: tuple[str, ...], said: str) -> None:
    """In the process of its own: as `python -m pytest` in the copy, with what it prints in a file."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in _OWN]:
        del sys.modules[name]
    os.chdir(project)
    # The copy's own packages come first, whatever is installed. The first one is the folder of whoever asked.
    sys.path[:] = [project, *(path for path in sys.path if path not in ("", str(_ROOT)))]
    sys.dont_write_bytecode = True
    tempfile.tempdir = None  # The tests choose theirs.
    os.environ |= {
        "PYTHONPATH": project,
        "PYTHONDONTWRITEBYTECODE": "1",
        # A server that does not start on a busy machine would count as a breakage that is noticed.
        "HUDI_ASSETS_MINIO": f"{project}/no-minio",
    }
    sys.exit(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]))
