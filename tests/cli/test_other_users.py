"""Commands of a user without a home, of one that the system does not know, and of one that may only read the table.

Whatever fails is said in words, and nothing is half written. A process of another user needs root; where it lies in a
folder that others may not enter (root's own), it keeps the right to read everything, and no other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import DONE, FAILED, SPLIT, Answer, contents

NOBODY, UNKNOWN = 65534, 12345
ONLY_READS = "-all,+dac_read_search"
LOOKS = (("status",), ("freshness",), ("plan", "--threshold", SPLIT, "--dry-run"), ("validate",))
CHANGES = (("plan", "--threshold", SPLIT), ("compact", "--threshold", SPLIT), ("clean",), ("recover",), ("savepoint",))


@pytest.fixture
def top(made_once: Path) -> Iterator[Path]:
    """A folder that everybody may enter, with a copy of the table that is root's, and its user's own TMPDIR."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can start a process of another user, by setpriv")
    # Not below TMPDIR, which may be ours alone (tests/quick_machine.py).
    with tempfile.TemporaryDirectory(prefix="other-users-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(made_once, folder / "payments", symlinks=True)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        if as_user(NOBODY, folder, "-c", "import hudi_assets.cli").code != DONE:
            pytest.skip("no other user can run this Python here")
        yield folder


def as_user(user: int, top: Path, *args: object, home: str = "/nowhere", given: str = "") -> Answer:
    """A Python of another user, in a folder that it may not write."""
    rights = [f"--{kind}={ONLY_READS}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *rights, sys.executable]
    root = Path(__file__).resolve().parents[2]
    unset = ("HUDI_ASSETS_HOME", "MPLCONFIGDIR", "SPARK_LOCAL_DIRS")
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    environment |= {"HOME": home, "TMPDIR": str(top / "tmp"), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command += map(str, args)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=top, env=environment)
    return Answer(done.returncode, done.stdout, done.stderr)


# Many commands in one process: a Python takes longer to start than most of them to end.
MANY = """
import contextlib, io, json, sys
from hudi_assets import cli
answers = []
for args in json.load(sys.stdin):
    sys.argv = ["hudi-assets", *args]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


def run_as(user: int, top: Path, *commands: tuple[object, ...], home: str = "/nowhere") -> list[Answer]:
    """The answers of commands on the table."""
    given = [[str(part) for part in (name, top / "payments", *args)] for name, *args in commands]
    ran = as_user(user, top, "-c", MANY, home=home, given=json.dumps(given))
    assert (ran.code, ran.err) == (DONE, ""), ran
    return [Answer(*answer) for answer in ran.json]


def give_to(user: int, table: Path) -> None:
    for path in (table, *table.rglob("*")):
        os.lchown(path, user, user)


def assert_all_done(answers: list[Answer]) -> None:
    assert [(answer.code, answer.err) for answer in answers] == [(DONE, "")] * len(answers)


@pytest.mark.parametrize("home", ["nowhere", "unwritable", "a file"])
def test_a_home_that_takes_nothing(top: Path, home: str) -> None:
    (top / "unwritable").mkdir()
    (top / "a file").write_text("")
    give_to(NOBODY, top / "payments")
    assert_all_done(run_as(NOBODY, top, *LOOKS, home=str(top / home)))
    assert contents(top / "unwritable") == {}


@pytest.mark.thorough
def test_a_compaction_without_a_home(top: Path) -> None:
    give_to(NOBODY, top / "payments")
    answer = as_user(NOBODY, top, "-m", "hudi_assets.cli", "compact", top / "payments", "--threshold", SPLIT)
    assert answer.code == DONE, answer
    assert "Traceback" not in answer.err
    assert_all_done(run_as(NOBODY, top, ("validate",)))


@pytest.mark.thorough
def test_a_report_without_a_home(top: Path) -> None:
    assert_all_done(run_as(NOBODY, top, ("report", "--out", top / "tmp" / "page.html")))


def test_blocks_where_nothing_can_be_written(top: Path) -> None:
    (answer,) = run_as(NOBODY, top, ("init",))
    assert answer.code == FAILED
    assert str(top / "defs") in answer.err
    assert "--out" in answer.err
    assert not (top / "defs").exists()


def test_who_may_only_read_looks_and_changes_nothing(top: Path) -> None:
    before = contents(top)
    assert_all_done(run_as(UNKNOWN, top, *LOOKS))
    for answer in run_as(UNKNOWN, top, *((*args, "--json") for args in CHANGES)):
        assert (answer.code, answer.out) == (FAILED, "")
        assert answer.error["error"] == "EnvironmentProblem"
        assert answer.error["what"] == "The directory cannot be written: Permission denied."
        assert answer.error["where"] == str(top / "payments")
        assert "write permission" in answer.error["hint"]
    assert contents(top) == before


@pytest.mark.thorough
def test_a_user_that_the_system_does_not_know_on_its_own_table(top: Path) -> None:
    """All but Spark works: Java asks who the user is."""
    table = top / "payments"
    give_to(UNKNOWN, table)
    before = contents(table)
    assert_all_done(run_as(UNKNOWN, top, *LOOKS))
    answer = as_user(UNKNOWN, top, "-m", "hudi_assets.cli", "compact", table, "--threshold", SPLIT)
    assert (answer.code, answer.out) == (FAILED, "")
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["Error", "Where", "Hint"], answer.err
    assert "Where: user id 12345" in answer.err
    assert "/etc/passwd" in answer.err
    assert contents(table) == before
    assert contents(top / "tmp") == {}
    assert_all_done(run_as(UNKNOWN, top, ("savepoint",), ("validate",)))


def test_a_lock_of_somebody_else(top: Path) -> None:
    """Root has worked on the table before: what it left is not the owner's."""
    table = top / "payments"
    give_to(UNKNOWN, table)
    lock = table / ".hoodie" / ".aux" / "hudi_assets" / "write.lock"
    os.chown(lock, 0, 0)
    before = contents(table)
    (answer,) = run_as(UNKNOWN, top, ("plan", "--threshold", SPLIT, "--json"))
    assert (answer.code, answer.error["error"]) == (FAILED, "EnvironmentProblem")
    assert answer.error["where"] == str(lock)
    assert "permission" in answer.error["hint"]
    assert contents(table) == before
