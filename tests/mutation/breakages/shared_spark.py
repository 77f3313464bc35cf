"""Breakages of the Spark that runs share."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ROOM = "hudi_assets/shared_spark"
SERVER = ("tests/unit/test_shared_spark_server.py",)
UNIT = ("tests/unit/test_shared_spark.py",)
CONNECT = ("tests/unit/test_spark_connect.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "runs with other credentials share a server",
        f"{_ROOM}/wanted.py",
        "return name.startswith(_PASSED_ON) or name in _PASSED_ON_TOO or",
        "return name in _PASSED_ON_TOO or",
        UNIT,
    ),
    Breakage(
        "runs of other home directories share a server",
        f"{_ROOM}/wanted.py",
        '("HOME", ',
        "(",
        UNIT,
    ),
    Breakage(
        "an old process passes for the new version after an upgrade",
        f"{_ROOM}/wanted.py",
        "        return _HERE\n",
        "        return cls.installed()\n",
        UNIT,
    ),
    Breakage(
        "an old process starts a server of the new version as one of its own",
        f"{_ROOM}/sessions.py",
        "    if Versions.installed() != wanted.versions:\n",
        "    if False:\n",
        SERVER,
    ),
    Breakage(
        "a package whose files changed keeps its server",
        f"{_ROOM}/wanted.py",
        "[(file, stat.st_mtime_ns, stat.st_size) for",
        "[file for",
        UNIT,
    ),
    Breakage(
        "what a dead server said is taken for the next one's word",
        f"{_ROOM}/folder.py",
        "            return None\n        self.forget()\n        return lock\n",
        "            return None\n        return lock\n",
        UNIT,
    ),
    Breakage(
        "a file without a living server is a server",
        f"{_ROOM}/folder.py",
        '        return not _is_free(self.path / "serving")\n',
        '        return (self.path / "serving").exists()\n',
        UNIT,
    ),
    Breakage(
        "who asks whether a server lives keeps it from starting",
        f"{_ROOM}/folder.py",
        'lock = _lock(self.path / "serving", _ASKED_S)',
        'lock = _lock(self.path / "serving", 0)',
        UNIT,
    ),
    Breakage(
        "of two who ask, one takes the other for the server",
        f"{_ROOM}/folder.py",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        UNIT,
    ),
    Breakage(
        "who comes to a server that is asked to end does not keep it",
        f"{_ROOM}/folder.py",
        "        self._ending.unlink(missing_ok=True)\n        lock = _lock(self._sessions",
        "        lock = _lock(self._sessions",
        UNIT,
    ),
    Breakage(
        "everybody of the machine may read the token",
        f"{_ROOM}/folder.py",
        "os.O_TRUNC, 0o600)",
        "os.O_TRUNC, 0o644)",
        UNIT,
    ),
    Breakage(
        "a session that cannot be closed ends the server under all runs",
        f"{_ROOM}/server.py",
        '    except Exception:\n        log.exception("Spark did not',
        '    except MemoryError:\n        log.exception("Spark did not',
        SERVER,
    ),
    Breakage(
        "a look that the system refuses ends the server",
        f"{_ROOM}/server.py",
        "        except OSError:  # too many",
        "        except MemoryError:  # too many",
        SERVER,
    ),
    Breakage(
        "the log that an error named is overwritten",
        f"{_ROOM}/folder.py",
        "            self.log.replace(self",
        "            self.log.unlink(); (self",
        SERVER,
    ),
    Breakage(
        "a server that does not serve is waited for, and then taken",
        f"{_ROOM}/sessions.py",
        "            raise _hung(folder, running)\n",
        "            return running\n",
        SERVER,
    ),
    Breakage(
        "a server that does not end in order stays",
        f"{_ROOM}/sessions.py",
        "        _send(pid, signal.SIGKILL)\n",
        "",
        SERVER,
    ),
    Breakage(
        "a server whose Spark has stopped is kept",
        "hudi_assets/engine/spark/connect_server.py",
        "return not context._jsc.sc().isStopped() and",
        "return",
        SERVER,
    ),
    Breakage(
        "a block whose plans Hudi executes shares a Spark where the environment says so",
        "hudi_assets/components/hudi_table.py",
        "_SPARKS[False if self._is_by_hudi() else self.shared_spark]",
        "_SPARKS[self.shared_spark]",
        UNIT,
    ),
    Breakage(
        "make ui shares no Spark though the environment says so",
        "Makefile",
        "SHARED_SPARK ?= $(or $(HUDI_ASSETS_SHARED_SPARK),0)",
        "SHARED_SPARK ?= 0",
        UNIT,
    ),
    Breakage(
        "of two runs that write the same folder's rows, one takes the other's pieces",
        "hudi_assets/engine/spark/session.py",
        "_mark: bytes = uuid.uuid4().bytes)",
        '_mark: bytes = b"")',
        UNIT,
    ),
    Breakage(
        "a server that is found as it dies ends the run that has found it",
        f"{_ROOM}/sessions.py",
        "            if is_again or not isinstance(error, EnvironmentProblem):\n",
        "            if True:\n",
        SERVER,
    ),
    Breakage(
        "a shared Spark counts before the address of a server",
        "hudi_assets/resources/spark.py",
        "        if remote:\n",
        "        if remote and not is_shared(self.shared):\n",
        UNIT,
    ),
    Breakage(
        "a session of a server is made beside a Spark of the process's own",
        f"{_ROOM}/sessions.py",
        "    check_no_own_spark()\n",
        "",
        CONNECT,
    ),
    Breakage(
        "a Spark of the process's own is made beside a session of a server",
        "hudi_assets/engine/spark/start.py",
        "    check_no_connected_session()\n",
        "",
        CONNECT,
    ),
    Breakage(
        "after sessions of a server a process has no Spark of its own",
        "hudi_assets/engine/spark/connect.py",
        "    session.stop()\n    _forget_mode()\n",
        "    session.stop()\n",
        CONNECT,
    ),
    Breakage(
        "another user who listens at the server's port is told the token",
        "hudi_assets/engine/spark/connect.py",
        'Loopback(f"sc://{LOOPBACK}:',
        'Loopback(f"sc://localhost:',
        CONNECT,
    ),
    Breakage(
        "an address is shown with its token",
        "hudi_assets/engine/spark/connect.py",
        '    return url.partition("/;")[0]\n',
        "    return url\n",
        UNIT,
    ),
)
