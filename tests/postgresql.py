"""A PostgreSQL of a test's own: started in a folder that is gone afterwards, on the loopback, without passwords.

It is the system's (Debian: apt-get install postgresql). `python -m tests.postgresql` prints the URL of one, and ends it
with Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import HOST, free_port
from tests.servers import serving

USER = "tests"


class PostgresMissing(RuntimeError):
    """It is not installed on this machine."""


@dataclass(frozen=True)
class Database:
    """A database of a server that runs: of the user `tests`, who needs no password."""

    port: int
    name: str

    @property
    def url(self) -> str:
        """As Dagster's storage takes it: with the driver's name."""
        return f"postgresql+psycopg2://{USER}@{HOST}:{self.port}/{self.name}"


def programs() -> Path:
    """The folder of PostgreSQL's programs, the newest. Raises `PostgresMissing`."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name))
    found = shutil.which("initdb")
    if debian:
        return debian[-1]
    if found is None:
        raise PostgresMissing("PostgreSQL is missing: apt-get install postgresql")
    return Path(found).resolve().parent


@contextmanager
def postgresql(name: str) -> Iterator[Database]:
    """A server with one database of this name. Raises `PostgresMissing`."""
    found = programs()
    # Not below TMPDIR: PostgreSQL's own user may not enter a folder of ours there.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir()
    as_user: Sequence[str] = ()
    if os.getuid() == 0:  # PostgreSQL does not run as root
        as_user = ("runuser", "-u", "postgres", "--")
        shutil.chown(data, "postgres")
    port = free_port()
    server = (str(found / "postgres"), "-D", str(data), "-h", HOST, "-p", str(port), "-k", str(data), "-F")
    stop = (*as_user, str(found / "pg_ctl"), "-D", str(data), "-m", "fast", "-w", "stop")
    try:
        _run(*as_user, str(found / "initdb"), "-D", str(data), "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync")
        with serving([*as_user, *server], folder / "server.log", port, stop):
            _run(*as_user, str(found / "createdb"), "-h", HOST, "-p", str(port), "-U", USER, name)
            yield Database(port, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def at_url(asked: str | None) -> Iterator[str | None]:
    """The URL of a database: `here` starts one, a URL is taken as it is, and None is none."""
    if asked != "here":
        yield asked
        return
    with postgresql("dagster") as database:
        yield database.url


def _run(*command: str) -> None:
    # In a group of its own: initdb has children, which would go on writing below a folder that is to go.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/", start_new_session=True
    ) as program:
        try:
            said = program.communicate(timeout=120)[1]
        except BaseException:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()  # until the last of them is gone
            raise
    if program.returncode:
        raise RuntimeError(f"{' '.join(command)}: {said[-2000:]}")


def main() -> None:
    """Whenever a signal comes, the server ends and its folder goes: by itself SIGTERM would run no `finally`."""
    ends = {signal.SIGINT, signal.SIGTERM}
    for number in ends:
        signal.signal(number, lambda *_: sys.exit(1))  # while it starts
    with postgresql("dagster") as opened:
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # else it might come before sigwait
        print(opened.url, flush=True)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
