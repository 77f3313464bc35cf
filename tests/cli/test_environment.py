"""What the machine lacks is said in words, with exit code 1: no traceback, no Java stack, and nothing is changed."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from hudi_assets import cli
from hudi_assets.cli import table as cli_table
from hudi_assets.engine import EnvironmentProblem, HudiTable, problem_of
from hudi_assets.engine.spark import start
from hudi_assets.engine.spark.session import ready_workers
from hudi_assets.engine.storage import LocalStorage
from tests.cli.conftest import DONE, FAILED, NOTHING_TO_DO, SPLIT, Answer, contents, run_process
from tests.tables.local_session import LocalSession

# -- Java -----------------------------------------------------------------------------------------


def says(version: str, *, then: str = "exit 3") -> str:
    """A java that states a version, and does something else for whatever else is asked of it."""
    return f'#!/bin/sh\nif [ "$*" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit 0; fi\n{then}\n'


NO_MODULE = """\
echo "Error occurred during initialization of boot layer"
echo "java.lang.module.FindException: Module jdk.incubator.vector not found" >&2
exit 1"""
# What stands at JAVA_HOME/bin/java, and what the error must name.
JAVAS = {
    "none": (None, "none was found"),
    "not executable": ("", "Permission denied"),
    "no program": ("neither a script nor a program", "Exec format error"),
    "silent": ("#!/bin/sh\nexit 3\n", "this is ''"),
    "too old": (says("1.8.0_392"), "1.8.0_392"),
    "too old, with other lines before": ('#!/bin/sh\necho "Picked up JAVA_TOOL_OPTIONS: -Da=\\"25\\"" >&2\n'
                                         + says("11.0.2").partition("\n")[2], "11.0.2"),
    "ends at once": (says("21-ea"), "Spark did not start"),
    "without the vector module": (says("21.0.1", then=NO_MODULE), "Module jdk.incubator.vector not found"),
}  # fmt: skip
STARTED = {"ends at once", "without the vector module"}


@pytest.mark.parametrize("command", [("compact", "--threshold", SPLIT), ("read",)], ids=lambda c: c[0])
@pytest.mark.parametrize("java", JAVAS)
def test_a_java_that_does_not_do(
    run: Callable[..., Answer],
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    java: str,
    command: tuple[str, ...],
) -> None:
    program, named = JAVAS[java]
    if program is not None:
        file = tmp_path / "bin" / "java"
        file.parent.mkdir()
        file.write_text(program)
        file.chmod(0o755 if program else 0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    before = contents(table)
    # Where the version will do Spark is started: another test may have left a Java in this process.
    call = run_process if java in STARTED else run
    answer = call(command[0], table, *command[1:], "--json")
    assert answer.code == FAILED, answer
    assert answer.out == ""
    assert answer.error["error"] == "EnvironmentProblem"
    assert named in answer.error["what"]
    assert str(tmp_path) in answer.error["where"]
    assert answer.error["hint"]
    assert contents(table) == before


def test_without_java_what_needs_spark_says_so_and_the_rest_works(
    run: Callable[..., Answer], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("HOME", raising=False)
    for args in (("status",), ("plan", "--threshold", SPLIT, "--dry-run"), ("validate",), ("freshness",)):
        assert run(args[0], table, *args[1:]).code == DONE
    answer = run("compact", table, "--threshold", SPLIT)
    assert answer.code == FAILED
    assert answer.err.splitlines() == [
        "Error: Spark needs Java 17 or later, and none was found.",
        "Where: PATH",
        "Hint: Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME.",
    ]


# -- Python ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("master", ["local[2]", "local", "local-cluster[2,1,1024]"])
def test_workers_of_a_local_session_are_this_python(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/theirs")
    context = SimpleNamespace(master=master, pythonExec="/theirs")
    ready_workers(SimpleNamespace(sparkContext=context), LocalStorage("/data/t"))
    assert context.pythonExec == sys.executable


# -- files and the output -------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.ENOTDIR, errno.ELOOP])
def test_a_failed_file_operation_anywhere(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/data/t/file")

    monkeypatch.setattr(HudiTable, "stats", fail)
    answer = run("status", table, "--json")
    assert (answer.code, answer.out) == (FAILED, "")
    assert answer.error["error"] == "EnvironmentProblem"
    assert os.strerror(number) in answer.error["what"]
    assert answer.error["where"] == "/data/t/file"


def test_a_mistake_of_the_program_keeps_its_traceback(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("stats")

    monkeypatch.setattr(HudiTable, "stats", fail)
    monkeypatch.setattr(sys, "argv", ["hudi-assets", "status", str(table)])
    with pytest.raises(KeyError):
        cli.main()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_output_that_takes_nothing_more(table: Path, form: list[str], unbuffered: str) -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}  # what a buffer holds fails again as Python ends
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "hudi_assets.cli", "status", str(table), *form]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env)
    assert done.returncode == FAILED
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough(table: Path, unbuffered: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "hudi_assets.cli", "plan", str(table), "--dry-run", "--json"]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False, env=env)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (FAILED, "")


def test_no_folder_for_temporary_files(table: Path) -> None:
    answer = run_process("status", table, env={"TMPDIR": "/nowhere", "HOME": "/nowhere"})
    assert (answer.code, answer.err) == (DONE, "")


def test_a_table_that_cannot_be_written_is_said_before_spark_starts(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise EnvironmentProblem("The directory cannot be written: Permission denied.", where=str(table))

    monkeypatch.setattr(LocalStorage, "check_writable", refused)
    monkeypatch.setattr(cli_table, "local_session", lambda **_: pytest.fail("Spark was started"))
    answer = run("compact", table, "--threshold", SPLIT)
    assert answer.code == FAILED
    assert answer.err.startswith("Error: The directory cannot be written")


# -- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_ctrl_c_ends_a_command_in_words(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HudiTable, "stats", interrupted)
    answer = run("status", table, *form)
    assert (answer.code, answer.out) == (FAILED, "")
    if form:
        assert answer.error["error"] == "Interrupted"
    lines = 1 if form else 3
    assert len(answer.err.splitlines()) == lines
    for word in ("Interrupted before it was done", str(table), "hudi-assets recover"):
        assert word in answer.err


def test_ctrl_c_in_the_midst_of_a_call_to_java(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise Py4JError("Gateway must be connected to send cancel cmd.")  # noqa: B904 (as py4j does)

    monkeypatch.setattr(HudiTable, "stats", interrupted)
    answer = run("status", table, "--json")
    assert (answer.code, answer.error["error"]) == (FAILED, "Interrupted")


@pytest.mark.timeout(900)
def test_ctrl_c_during_a_compaction(run: Callable[..., Answer], table: Path, session: LocalSession) -> None:
    """No traceback of ours, PySpark's or py4j's; the compaction is pending, and the next command executes it."""
    command = [sys.executable, "-m", "hudi_assets.cli", "compact", str(table), "--threshold", SPLIT]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while process.poll() is None and not list((table / ".hoodie").glob("*.compaction.inflight")):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == FAILED
    assert [line.split(":")[0] for line in err.splitlines()] == ["Error", "Where", "Hint"], err
    assert list((table / ".hoodie").glob("*.compaction.requested"))
    assert run("recover", table).code in (DONE, NOTHING_TO_DO)
    assert HudiTable.open(str(table)).compact(session)
    assert run("validate", table).code == DONE


# -- Spark ----------------------------------------------------------------------------------------

WORKER = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/lib/pyspark.zip/pyspark/worker.py", line 3282, in main
{last}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Driver stacktrace:
"""
JAVA = """An error occurred while calling o76.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: {cause}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
SPARKS = {
    "an error of ours in a worker": (
        PySparkException(WORKER.format(last="hudi_assets.engine.errors.CorruptTable: Block 2 is torn. [t/a.log]")),
        "CorruptTable", "Block 2 is torn. [t/a.log]",
    ),
    "a file that a worker may not read": (
        PySparkException(WORKER.format(last="PermissionError: [Errno 13] Permission denied: '/data/t/a.parquet'")),
        "EnvironmentProblem", "Permission denied",
    ),
    "a package that workers lack": (
        PySparkException(WORKER.format(last="ModuleNotFoundError: No module named 'hudi_assets'")),
        "EnvironmentProblem", "No module named 'hudi_assets'",
    ),
    "a worker that died": (
        PySparkException(JAVA.format(cause="org.apache.spark.SparkException: Python worker exited unexpectedly")),
        "EnvironmentProblem", "Python worker exited unexpectedly",
    ),
    "Spark's disk": (
        Py4JError(JAVA.format(cause="java.io.IOException: No space left on device")),
        "EnvironmentProblem", "No space left on device",
    ),
    "Java's memory": (
        Py4JError(JAVA.format(cause="java.lang.OutOfMemoryError: Java heap space")),
        "EnvironmentProblem", "OutOfMemoryError: Java heap space",
    ),
    "an address": (
        Py4JError(JAVA.format(cause="java.net.BindException: Cannot assign requested address")),
        "EnvironmentProblem", "BindException: Cannot assign requested address",
    ),
    "a Java that was killed": (
        Py4JNetworkError("Answer from Java side is empty"), "EnvironmentProblem", "Java process ended",
    ),
    "a connection to it": (ConnectionRefusedError(111, "Connection refused"), "EnvironmentProblem", "Java process"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARKS)
def test_what_spark_says_of_the_machine(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    error, kind, named = SPARKS[name]

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(HudiTable, "stats", fail)
    answer = run("status", table, "--json")
    assert answer.code == FAILED
    assert answer.error["error"] == kind
    assert named in answer.error["what"]
    assert "\n" not in answer.error["what"]
    assert "\tat " not in answer.err


def test_other_errors_of_sparks_keep_their_traceback() -> None:
    wrong = PySparkException(WORKER.format(last="KeyError: 'a column'"))
    assert problem_of(wrong) is None


def test_py4j_does_not_log_on_the_terminal(
    run: Callable[..., Answer], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(**_: object) -> None:
        logging.getLogger("py4j.clientserver").error("Exception while sending command.")
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(cli_table, "local_session", killed)
    answer = run("read", table)
    assert answer.code == FAILED
    assert "while sending" not in answer.err


NOT_STARTED = Exception("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


def test_a_user_that_the_system_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java takes "?" for its home then: Spark's message is of a folder."""

    def unknown(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    said = 'Exception in thread "main" java.lang.IllegalArgumentException: basedir must be absolute: ?/.ivy2.5.2/local'
    problem = start.not_started(NOT_STARTED, None, said)
    assert problem.where == f"user id {os.getuid()}"
    assert "/etc/passwd" in (problem.hint or "")


def test_a_machine_whose_name_nobody_knows() -> None:
    problem = start.not_started(NOT_STARTED, "UnknownHostException: here.invalid: Name or service not known", "")
    assert "here.invalid" in problem.what
    assert "SPARK_LOCAL_IP" in (problem.hint or "")
