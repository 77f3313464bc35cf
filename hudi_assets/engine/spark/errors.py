"""What an exception says of the machine, in the engine's words.

Spark wraps what went wrong in a worker, or in its Java process, into pages of stack traces. What the reader needs of
them stands in one line: an error of the engine's own, a failed file operation, or the innermost cause in Java.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine import errors
from hudi_assets.engine.errors import EnvironmentProblem, HudiAssetsError, machine_problem

_OURS: Final = re.compile(r"^(?:\w+: )?hudi_assets\.engine\.errors\.(\w+): (.+)$", re.MULTILINE)
_FAILED_FILE: Final = re.compile(r"\[Errno (\d+)\] ([^:\n]+)(?:: ['\"](.+?)['\"])?")
_MISSING: Final = re.compile(r"(?:ModuleNotFoundError|ImportError): .+")
_JAVA: Final = re.compile(r"^(?:Caused by: |: )?((?:[a-z][\w$]*\.)+[A-Z][\w$]*)(?:: (.*))?$", re.MULTILINE)
_OF_THE_MACHINE: Final = (
    "java.io.",
    "java.net.",
    "java.nio.",
    "java.util.concurrent.TimeoutException",
    "javax.security.",
    "java.lang.OutOfMemoryError",
    "java.lang.UnsupportedClassVersionError",
    "java.lang.module.",
    "org.apache.hadoop.security.",
    "org.apache.hadoop.fs.",
)
_DIED: Final = ("Python worker exited unexpectedly", "Python worker failed to connect back", "Cannot run program")
_ROOM: Final = "Spark keeps what it works on in SPARK_LOCAL_DIRS, else in /tmp: make room there, or name another."
_AGAIN: Final = "Call again: what is unfinished is undone or finished first."
# The error class of a session that the server has ended: it was idle for an hour, or the server started again.
_ENDED: Final = "[INVALID_HANDLE."
# What a Connect server says as it ends.
_ENDING: Final = ("stopped SparkContext", "SparkContext was shut down")
_EXECUTOR: Final = re.compile(r"\((\S+) executor (\S+?)\)")
_DETAILS: Final = re.compile(r'details = "(.+)"')
_ANEW: Final = "Start again: a new session is made then. What is unfinished is undone or finished first."
_GONE: Final = "Spark's Java process ended: the system may have killed it for want of memory (see dmesg)."
_SERVERS: Final[list[LocalServer]] = []  # the one that this process's sessions are in, where it is this machine's


@dataclass(frozen=True)
class LocalServer:
    """A Connect server of this machine, as errors tell of it. `is_alive`: whether it is still there."""

    log: str
    is_alive: Callable[[], bool]


def name_server(server: LocalServer) -> None:
    """From now on errors tell of this server."""
    _SERVERS[:] = [server]


def _log() -> str | None:
    return f"its log: {_SERVERS[0].log}" if _SERVERS else None


def problem_of(error: BaseException) -> HudiAssetsError | None:
    """The error to show to a user in place of an exception that a call of the engine ended with.

    Args:
        error: Any exception: of the engine, of Python, or of Spark with pages of Java's stack traces.

    Returns:
        The same in one line, with what to do; `error` itself where it is the engine's. None for a mistake in a
        program, whose traceback has to be seen.
    """
    if isinstance(error, HudiAssetsError):
        return error
    if "pyspark" in sys.modules:  # else no error is Spark's
        found = spark_problem(error)
        if found is not None:
            return found
    if isinstance(error, MemoryError):
        return EnvironmentProblem(
            "The memory of this machine, or what this process may take of it, is used up.",
            hint="Make memory free, or let this process have more, and call again: what is unfinished is undone first.",
        )
    if isinstance(error, OSError):
        where = str(error.filename or "the output, or a file that the system does not name")
        return machine_problem(error, where) or EnvironmentProblem(
            f"The system refused a file operation: {error.strerror or error}.",
            where=where,
            hint="Look at that file and its file system, and call again: what is unfinished is undone first.",
        )
    return None


def spark_problem(error: BaseException) -> HudiAssetsError | None:
    """The error to show instead of Spark's; None where this is none of Spark's, or none of the machine's."""
    from pyspark.errors import PySparkException

    java, gone = _of_py4j()
    if isinstance(error, (*gone, ConnectionError)):
        return EnvironmentProblem(_GONE, hint=_AGAIN)
    if _is_no_answer(error):
        return EnvironmentProblem(
            f"Spark's Connect server does not answer: {_said_by(error)}", where=_log(), hint=_AGAIN
        )
    if not isinstance(error, (PySparkException, *java)):
        return None
    text = _text(error)
    if _ENDED in text:
        return EnvironmentProblem("The Spark Connect server knows this session no more.", where=_log(), hint=_ANEW)
    if _is_of_connect(error) and (any(words in text for words in _ENDING) or _has_ended()):
        return EnvironmentProblem("The Spark Connect server has ended in the midst of this.", where=_log(), hint=_AGAIN)
    return _of_ours(text) or _of_files(text) or _of_workers(text) or _of_java(text)


def _of_py4j() -> tuple[tuple[type[BaseException], ...], tuple[type[BaseException], ...]]:
    """Errors that come from Java, and those of them that say it is gone. None with PySpark's client alone."""
    try:
        from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
    except ImportError:
        return (), ()
    return (Py4JError,), (Py4JNetworkError,)


def _is_no_answer(error: BaseException) -> bool:
    """True for a call of gRPC's that reached nobody. PySpark passes on some of them as they are, and wraps others."""
    code = getattr(error, "getGrpcStatusCode" if _is_of_connect(error) else "code", None)
    return "grpc" in sys.modules and callable(code) and getattr(code(), "name", "") == "UNAVAILABLE"


def _is_of_connect(error: BaseException) -> bool:
    return type(error).__module__ == "pyspark.errors.exceptions.connect"


def _has_ended() -> bool:
    return bool(_SERVERS) and not _SERVERS[0].is_alive()


def _said_by(error: BaseException) -> str:
    details = getattr(error, "details", None)
    if callable(details):
        return str(details())
    found = _DETAILS.search(str(error))
    return found[1] if found else str(error).strip() or "it is gone"


def java_cause(text: str) -> str | None:
    """The innermost of the exceptions that Java's stack traces name, with its message."""
    found = _JAVA.findall(text)
    if not found:
        return None
    name, message = found[-1]
    return f"{name.rpartition('.')[-1]}: {message}" if message else name.rpartition(".")[-1]


def _text(error: BaseException) -> str:
    java, _ = _of_py4j()
    silent: tuple[type[BaseException], ...] = (*java, OSError)
    try:
        return str(error)
    except silent:  # the message is Java's, and Java is gone
        return ""


def _of_ours(text: str) -> HudiAssetsError | None:
    found = _OURS.search(text)
    if found is None:
        return None
    kind = getattr(errors, found[1], HudiAssetsError)
    problem: HudiAssetsError = kind(found[2])
    return problem


def _of_files(text: str) -> HudiAssetsError | None:
    found = _FAILED_FILE.search(text)
    if found is not None:
        failed = OSError(int(found[1]), found[2].strip())
        return machine_problem(failed, found[3] or "a task of Spark's")
    if "No space left on device" in text:
        return EnvironmentProblem("A file cannot be written: No space left on device.", hint=_ROOM)
    return None


def executor_of(text: str) -> str | None:
    """Where the task was that an error of Spark's tells of."""
    found = _EXECUTOR.findall(text)
    return f"host {found[-1][0]}, executor {found[-1][1]}" if found else None


def _of_workers(text: str) -> HudiAssetsError | None:
    missing = _MISSING.search(text)
    if missing is not None:
        return EnvironmentProblem(
            f"Spark's Python workers lack a package: {missing[0]}",
            where=executor_of(text),
            hint="On a cluster every worker needs this package, in the Python that PYSPARK_PYTHON names.",
        )
    died = next((line for line in text.splitlines() if any(words in line for words in _DIED)), None)
    if died is not None:
        return EnvironmentProblem(
            f"A Python worker of Spark's could not start, or died: {died.strip()}",
            where=executor_of(text),
            hint="The system may have killed it for want of memory (see dmesg): give it more, or fewer cores.",
        )
    return None


def _of_java(text: str) -> HudiAssetsError | None:
    names = [name for name, _ in _JAVA.findall(text)]
    if not any(name.startswith(_OF_THE_MACHINE) for name in names):
        return None
    hint = "Give Spark more memory: spark.driver.memory." if "OutOfMemoryError" in names[-1] else None
    return EnvironmentProblem(f"Spark failed: {java_cause(text)}", hint=hint)
