"""A real ZooKeeper on the loopback, and Curator's lock beside ours: both are in Spark's own jars."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.ports import answers, free_port

TICK_MS = 200
"""ZooKeeper gives a session from 2 to 20 ticks: 0.4 to 4 seconds here."""
_FLAGS = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ZooKeeper:
    """A server that can be stopped dead (`freeze`) and woken."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"127.0.0.1:{port}"
        self.port = port
        config = folder / "zoo.cfg"
        config.write_text(
            f"tickTime={TICK_MS}\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\n"
        )
        self._log = folder / "zookeeper.log"
        with self._log.open("wb") as log:
            main = [*java(), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
            self.process = subprocess.Popen(main, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ZooKeeper did not start: {self._log.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(0.05)


@contextmanager
def zookeeper() -> Iterator[ZooKeeper]:
    with tempfile.TemporaryDirectory(prefix="zookeeper-") as folder:
        server = ZooKeeper(Path(folder), free_port())
        try:
            server.wait()
            yield server
        finally:
            server.process.kill()
            server.process.wait()


class Curator:
    """A process in which Curator holds a lock."""

    def __init__(self, url: str, path: str, session_ms: int) -> None:
        source = Path(__file__).with_name("CuratorHolder.java")
        main = ["org.codehaus.janino.SimpleCompiler", str(source), "hudi_assets.tests.CuratorHolder"]
        self.process = subprocess.Popen(
            [*java(), *main, url, path, str(session_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.send(line)
        return self.answer()


@contextmanager
def curator(url: str, path: str, session_ms: int = 10_000) -> Iterator[Curator]:
    holder = Curator(url, path, session_ms)
    try:
        assert holder.answer() == "ready"
        yield holder
    finally:
        holder.process.kill()
        holder.process.communicate()


def java() -> list[str]:
    """Java with Spark's jars."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    jars = Path(spec.submodule_search_locations[0]) / "jars" / "*"
    program = Path(os.environ["JAVA_HOME"]) / "bin/java" if "JAVA_HOME" in os.environ else Path("java")
    return [str(program), *_FLAGS, "-cp", str(jars)]
