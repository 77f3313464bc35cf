"""A writer that takes the steps of Hudi's Flink job commits all the time while our sensor compacts its table.

One of its delta commits is always inflight, most of the time with log files. tests/interop/flink/job.py says what of a
Flink job that is, and what not.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from scripts.hudi_client import bundle, interop_python
from tests.interop.flink.test_in_flinks_order import SCRIPT
from tests.live.events import Stream
from tests.live.maintenance import Maintenance
from tests.live.test_streaming import BLOCK, SETTINGS, finish, live
from tests.live.watch import Watch
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.live, pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

_PER_SECOND = 5
_HANGS_S = 600


class JobWriter:
    """The job in a process of its own; `folder` gets table, offsets and log."""

    def __init__(self, release: str, folder: Path, **request: Any) -> None:
        self.folder, self._log = folder, (folder / "writer.log").open("wb")
        asked = {"folder": str(folder), "release": release, "per_second": _PER_SECOND, "seconds": 1, **request}
        self._process = subprocess.Popen(
            [str(interop_python()), str(SCRIPT), str(bundle(release)), "stream", json.dumps(asked)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def path(self) -> Path:
        return self.folder / "table"

    def check_alive(self) -> None:
        ended = self.folder / "ended"
        said = ended.read_text() if ended.exists() else ""
        assert self._process.poll() is None, said
        assert not ended.exists(), said

    def stop(self) -> str:
        """Let it end by a checkpoint, as a savepoint does; the error that ended it, if one did."""
        (self.folder / "stop").touch()
        ended, began = self.folder / "ended", time.monotonic()
        while not ended.exists() and self._process.poll() is None and time.monotonic() < began + _HANGS_S:
            time.sleep(0.2)
        self._process.kill()
        self._process.wait()
        self._log.close()
        return ended.read_text() if ended.exists() else "it left no word"

    def stream(self) -> Stream:
        return Stream(int((self.folder / "start").read_text()), _PER_SECOND)

    def events_until(self, batch: int) -> int:
        return int((self.folder / f"offsets/{batch}").read_text()) if batch >= 0 else 0

    def last_batch(self, table: HudiTable) -> int:
        state = table.state()
        for instant in reversed(state.timeline.completed(Action.DELTA_COMMIT)):
            if noted := state.commit(instant).extra.get("flink_checkpoint_id"):
                return int(noted) - 1
        return -1


@contextmanager
def writing(release: str, folder: Path, **request: Any) -> Iterator[JobWriter]:
    writer = JobWriter(release, folder, **request)
    try:
        while not [*writer.path.glob(".hoodie/timeline/*.deltacommit")]:
            writer.check_alive()
            time.sleep(0.5)
        yield writer
    finally:
        writer.stop()


@pytest.mark.parametrize(("version", "buckets"), [(9, 2), (9, 0), (8, 2)], ids=["9-bucket", "9-state", "8-bucket"])
def test_1_2_0_beside_the_sensor(
    version: int, buckets: int, tmp_path: Path, session: LocalSession, seconds: float
) -> None:
    with (
        writing("1.2.0", tmp_path, version=version, buckets=buckets) as writer,
        DagsterInstance.ephemeral() as instance,
    ):
        # The job's cleaner is off; else a commit each second would leave queries less than a minute.
        settings = {**SETTINGS, "hudi_assets.query.grace": "60s", "hoodie.clean.automatic": "false"}
        block = {**BLOCK, "path": str(writer.path), "settings": settings}
        maintenance = Maintenance(session, instance, tmp_path, block)
        watch = Watch(writer, maintenance.table())
        assert watch.table.config.table_version == version
        live(maintenance, watch, seconds)
        assert not writer.stop()
        finish(watch, "1.2.0", seconds)
