"""A Hive metastore that several Spark processes share, started when the first one needs it.

Spark's embedded Derby belongs to one process. So the metastore that Spark ships in its own jars runs as a
process of its own, on 127.0.0.1, with the Derby database in `<home>/catalog`; sessions reach it by thrift.
Nobody has to start or stop it: whoever opens a session leaves its process id in `<home>/catalog/users`
(`acquire`), the first one starts the server, and the server leaves when none of those processes is alive.

    python hudi_assets/catalog/metastore.py acquire --home DIR [--pid PID]     prints the thrift URI
    python hudi_assets/catalog/metastore.py stop --home DIR

`<home>/spark` is a SPARK_CONF_DIR: with it, spark-sql, pyspark and spark-submit do `acquire` by themselves.
This file runs as a script too, from that directory's spark-env.sh, so it imports nothing large of the project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from hudi_assets.catalog.metastore_texts import HIVE_SITE, LOG4J, LONG_VIEW_TEXTS, SPARK_DEFAULTS, SPARK_ENV
from hudi_assets.processes import is_alive

_PHASE_SECONDS = 90.0  # for a Java to do its part of a start
_FIRST_PHASES = 3  # the first start makes Hive's tables, widens a column, and then launches the server
_STOP_SECONDS = 20.0  # for a process that was asked to end
_GRACE = 20.0  # seconds without a user before the server leaves
_POLL = 2.0


class MetastoreError(RuntimeError):
    """The metastore did not start; the message has the end of its log."""


@dataclass(frozen=True)
class Metastore:
    """The metastore of one home directory."""

    home: Path

    @property
    def directory(self) -> Path:
        return self.home / "catalog"

    @property
    def database(self) -> Path:
        return self.directory / "metastore_db"

    @property
    def draft(self) -> Path:
        """The database while its tables are made. One that is left over is of a start that was broken off."""
        return self.directory / "metastore_db.draft"

    @property
    def exists(self) -> bool:
        """True once it was started for the first time."""
        return self.database.exists()

    @property
    def warehouse(self) -> Path:
        """Where tables go that are made by name and without a path."""
        return self.home / "catalog" / "warehouse"

    @property
    def spark_conf_dir(self) -> Path:
        return self.home / "spark"

    @property
    def users(self) -> Path:
        return self.directory / "users"

    @property
    def port_file(self) -> Path:
        return self.directory / "port"

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    def lock(self) -> FileLock:
        self.directory.mkdir(parents=True, exist_ok=True)
        return FileLock(str(self.directory / "lock"))

    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port_file.read_text().strip()}"

    def acquire(self, pid: int) -> str:
        """Enter process `pid` as a user, start the server if there is none, and return its URI."""
        self.users.mkdir(parents=True, exist_ok=True)
        (self.users / str(pid)).touch()  # before the lock: a server about to leave looks again under it
        with self.lock():
            if not self.is_running():
                self._start()
            self._write_spark_conf()
        return self.uri()

    def is_running(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", int(self.port_file.read_text())), timeout=2):
                return True
        except (OSError, ValueError):
            return False

    def has_users(self) -> bool:
        """Is a process alive that acquired the metastore? Forgets those that are gone."""
        try:
            names = os.listdir(self.users)
        except FileNotFoundError:  # `stop` has removed the folder
            return False
        alive = False
        for name in filter(str.isdecimal, names):  # what is no process id is nobody's
            if is_alive(int(name)):
                alive = True
            else:
                (self.users / name).unlink(missing_ok=True)
        return alive

    def stop(self) -> None:
        """Stop the server, whoever uses it."""
        shutil.rmtree(self.users, ignore_errors=True)
        deadline = time.monotonic() + _GRACE + 4 * _POLL
        while self.is_running() and time.monotonic() < deadline:
            time.sleep(0.2)

    def write_conf(self, database: Path) -> None:
        """The server's own settings; the port is chosen when it starts."""
        conf = self.directory / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        self.warehouse.mkdir(parents=True, exist_ok=True)
        (conf / "hive-site.xml").write_text(HIVE_SITE.format(database=database, warehouse=self.warehouse), "utf-8")

    def _start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        port = _free_port(self.port_file)
        self.port_file.write_text(str(port))
        seconds = _start_seconds(first=not self.exists)
        with suppress(FileNotFoundError):
            self.log_file.replace(f"{self.log_file}.1")  # why the one before ended
        with self.log_file.open("wb") as log:
            server = subprocess.Popen(
                [sys.executable, __file__, "serve", "--home", str(self.home)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal ends its user, not the server
                cwd=self.directory,
            )
        try:
            self._await(server, time.monotonic() + seconds, seconds)
        except BaseException:
            _end_session(server)
            raise

    def _await(self, server: subprocess.Popen[bytes], deadline: float, seconds: float) -> None:
        while not self.is_running():
            ended, late = server.poll() is not None, time.monotonic() > deadline
            if ended or late:
                tail = self.log_file.read_text("utf-8", "replace")[-2000:]
                why = "" if ended else f" within {seconds:.0f} s, and was ended"
                raise MetastoreError(f"The Hive metastore did not start{why}; see {self.log_file}:\n{tail}")
            time.sleep(0.1)

    def _write_spark_conf(self) -> None:
        conf = self.spark_conf_dir
        conf.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).resolve()
        env = SPARK_ENV.format(python=sys.executable, script=script, home=self.home, project=script.parents[2])
        defaults = SPARK_DEFAULTS.format(uri=self.uri(), warehouse=self.warehouse)
        for name, text in (
            ("spark-env.sh", env),
            ("spark-defaults.conf", defaults),
            ("log4j2.properties", LOG4J),
        ):
            _replace(conf / name, text)


def serve(store: Metastore) -> int:
    """Run the server until it has had no user for `_GRACE` seconds, or `stop` was called. Exit code of the process.

    A Java that ends by itself is started again, as long as somebody uses it.
    """
    # SystemExit from a signal passes through `finally`, so no Java process outlives this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if not store.exists:
        _create_schema(store)
    store.write_conf(store.database)
    port = int(store.port_file.read_text())
    server = _launch(store, port)
    launched = last_used = time.monotonic()
    try:
        while True:
            time.sleep(_POLL)
            if not store.database.exists():
                return _ends("its home directory was removed")
            try:
                if server.poll() is not None:
                    lived, code = time.monotonic() - launched, server.returncode or 1
                    again = _launched_again(store, port) if lived >= _GRACE else None
                    if again is None:
                        return _ends(f"its Java ended by itself after {lived:.0f} s, with {server.returncode}", code)
                    server, launched = again, time.monotonic()
                elif store.has_users():
                    last_used = time.monotonic()
                elif _is_left(store, server, unused=time.monotonic() - last_used):
                    return _ends("nobody uses it")
            except OSError as problem:  # a full disk, say: whoever uses it can go on
                _say(f"the metastore goes on after {problem!r}")
    finally:
        _terminate(server)


def _say(words: str) -> None:
    """For the log, where the disk has room for it."""
    with suppress(OSError):
        print(words, flush=True)


def _ends(why: str, code: int = 0) -> int:
    _say(f"the metastore ends: {why}")
    return code


def _launched_again(store: Metastore, port: int) -> subprocess.Popen[bytes] | None:
    """On the same port, which its users know. None where nobody needs it, or a user has started another."""
    if not store.has_users():
        return None
    with store.lock():  # nobody starts one meanwhile
        if store.is_running():
            return None
        _say("the metastore's Java ended by itself, and is started again")
        server, deadline = _launch(store, port), time.monotonic() + _PHASE_SECONDS
        while not _answers(port) and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        return server


def _is_left(store: Metastore, server: subprocess.Popen[bytes], *, unused: float) -> bool:
    """End the server where nobody uses it any more.

    Under the lock until it is ended: who comes meanwhile starts another.
    """
    if unused < _GRACE and store.users.exists():  # `stop` removes it
        return False
    with store.lock():
        if store.has_users():
            return False
        _terminate(server)
        return True


def _create_schema(store: Metastore) -> None:
    """Let Hive create its tables, then widen the one column that is too short for us.

    In a draft: a start that is broken off leaves no database that lacks something.
    """
    shutil.rmtree(store.draft, ignore_errors=True)
    store.write_conf(store.draft)
    port = _free_port(None)
    server = _launch(store, port)
    deadline = time.monotonic() + _PHASE_SECONDS
    try:
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise MetastoreError("the metastore's schema could not be created")
            time.sleep(0.1)
    finally:
        _terminate(server)
    script = store.directory / "long_view_texts.sql"
    script.write_text(LONG_VIEW_TEXTS, "utf-8")
    # Spark 4 has Derby's own tool for it, Spark 3.5 has not; both have Hive's.
    beeline = ["org.apache.hive.beeline.BeeLine", "--silent=true", "-d", "org.apache.derby.jdbc.EmbeddedDriver"]
    where = ["-u", f"jdbc:derby:{store.draft}", "-n", "APP", "-p", "mine", "-f", str(script)]
    done = subprocess.run(
        [_java(), "-cp", _jars(), *beeline, *where],
        cwd=store.directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PHASE_SECONDS,
    )
    if done.returncode:
        raise MetastoreError(f"the metastore's schema could not be widened: {done.stderr[-500:]}")
    store.draft.rename(store.database)


def _launch(store: Metastore, port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            _java(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",  # it is started again
            "-cp",
            f"{store.directory / 'conf'}{os.pathsep}{_jars()}",
            # Janino compiles it, as Spark has no javac: Hive's own main class would listen on all addresses.
            "org.codehaus.janino.SimpleCompiler",
            str(Path(__file__).with_name("java") / "LoopbackMetastore.java"),
            "hudi_assets.LoopbackMetastore",
            str(port),
        ],
        cwd=store.directory,
    )


def _start_seconds(*, first: bool) -> float:
    """How long the server may take until it answers. The first time it ends a Java before it launches the next."""
    return _FIRST_PHASES * _PHASE_SECONDS + _STOP_SECONDS if first else _PHASE_SECONDS


def _terminate(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


def _end_session(server: subprocess.Popen[bytes]) -> None:
    """The server's process, which leads a session of its own, and the Java processes that it started."""
    _terminate(server)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _jars() -> str:
    """The class path of the installed Spark: the metastore comes from the jars that its clients use."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise MetastoreError("pyspark is not installed in this environment")
    home = os.environ.get("SPARK_HOME") or spec.submodule_search_locations[0]
    return str(Path(home) / "jars" / "*")


def _java() -> str:
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java")
    if not java:
        raise MetastoreError("no Java found: install Java 17 or later, or set JAVA_HOME")
    return java


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port(wanted: Path | None) -> int:
    """The port that the file names if nobody has it, else any free one."""
    candidates = [int(wanted.read_text())] if wanted and wanted.exists() else []
    for port in [*candidates, 0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise MetastoreError("no free port on 127.0.0.1")


def _replace(path: Path, text: str) -> None:
    """Write at once, or leave the file alone when it says so already: others may be reading it."""
    if path.exists() and path.read_text("utf-8") == text:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, "utf-8")
    draft.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description="The Hive metastore of one home directory")
    parser.add_argument("command", choices=["acquire", "serve", "stop"])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--pid", type=int, default=os.getppid())
    arguments = parser.parse_args()
    store = Metastore(arguments.home.absolute())
    if arguments.command == "serve":
        return serve(store)
    if arguments.command == "stop":
        store.stop()
    else:
        print(store.acquire(arguments.pid))
    return 0


if __name__ == "__main__":
    sys.exit(main())
