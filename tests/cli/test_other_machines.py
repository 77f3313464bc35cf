"""Machines that the other tests do not have: a read-only mount, a HOME that is nowhere, an unknown host name."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hudi_assets.engine import EnvironmentProblem
from hudi_assets.engine.errors import machine_problem
from hudi_assets.engine.storage import LocalStorage
from tests.cli.conftest import DONE, FAILED, SPLIT, Answer, contents

# What a mount, or a host name, of its own begins with: needs the right to (root has it, a container's may not).
_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
_NAMED = 'hostname nowhere-known && exec "$@"'
LOOKS = (("status",), ("freshness",), ("validate",), ("savepoints",), ("plan", "--threshold", SPLIT, "--dry-run"))
CHANGES = (("plan", "--threshold", SPLIT), ("compact", "--threshold", SPLIT), ("recover",), ("archive",))


def _is_allowed(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _answer(*before: str, args: tuple[str, ...], table: Path, env: dict[str, str] | None = None) -> Answer:
    command = [*before, sys.executable, "-m", "hudi_assets.cli", args[0], str(table), *args[1:]]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


# -- a read-only mount ----------------------------------------------------------------------------


@pytest.fixture
def read_only(table: Path) -> tuple[str, ...]:
    before = ("unshare", "-m", "sh", "-c", _MOUNTED, str(table))
    if not _is_allowed(*before, "true"):
        pytest.skip("this process may not mount")
    return before


@pytest.mark.parametrize("args", LOOKS, ids=lambda args: args[0])
def test_looking_at_a_read_only_mount(read_only: tuple[str, ...], table: Path, args: tuple[str, ...]) -> None:
    before = contents(table)
    answer = _answer(*read_only, args=args, table=table)
    assert (answer.code, answer.err) == (DONE, "")
    assert contents(table) == before


@pytest.mark.parametrize("args", CHANGES, ids=lambda args: args[0])
def test_changing_a_read_only_mount(read_only: tuple[str, ...], table: Path, args: tuple[str, ...]) -> None:
    before = contents(table)
    answer = _answer(*read_only, args=(*args, "--json"), table=table)
    assert (answer.code, answer.out) == (FAILED, "")
    assert answer.error["error"] == "EnvironmentProblem"
    assert "Read-only file system" in answer.error["what"]
    assert "Mount" in answer.error["hint"]
    assert "permission" not in answer.error["hint"]
    assert contents(table) == before


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "room"), (errno.EROFS, "Mount"), (errno.EACCES, "permission"), (errno.EMFILE, "ulimit -n")],
)
def test_the_hint_is_that_of_the_problem(
    number: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(number, os.strerror(number))
    problem = machine_problem(error, "t/file")
    assert problem is not None
    assert remedy in (problem.hint or "")
    if number not in (errno.EROFS, errno.EACCES):
        return

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    with pytest.raises(EnvironmentProblem) as refused:
        LocalStorage(str(tmp_path)).check_writable()
    assert remedy in (refused.value.hint or "")


# -- Spark ----------------------------------------------------------------------------------------


# In `make test` another user compacts without a home, and `tests/cli/test_cli.py` reads without one.
@pytest.mark.spark
@pytest.mark.thorough
def test_a_home_that_is_nowhere(table: Path) -> None:
    home = {"HOME": "/proc/nowhere"}
    assert _answer(args=("compact", "--threshold", SPLIT), table=table, env=home).code == DONE
    assert _answer(args=("read", "--limit", "1"), table=table, env=home).code == DONE


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.slow
def test_the_cure_for_a_host_name_that_nobody_knows(table: Path) -> None:
    before = ("unshare", "--uts", "sh", "-c", _NAMED, "sh")
    if not _is_allowed(*before, "true"):
        pytest.skip("this process may not give its machine another name")
    if _is_allowed(*before, "getent", "hosts", "nowhere-known"):
        pytest.skip("this machine's resolver knows every name")
    args = ("compact", "--threshold", SPLIT, "--json")
    answer = _answer(*before, args=args, table=table)
    assert answer.code == FAILED
    assert "nowhere-known" in answer.error["what"]
    cure = re.search(r"(SPARK_LOCAL_IP)=([\d.]*\d)", answer.error["hint"])
    assert cure is not None
    assert _answer(*before, args=args, table=table, env={cure[1]: cure[2]}).code == DONE
