"""Apache Hudi 1.2.0 and we on one table in a bucket: in turn, and at once, with Hudi's own lock.

Hudi reaches the bucket by hadoop-aws. `make test-stores-hudi` fetches it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hudi_assets.engine import HudiAssetsError, HudiTable, Plan
from hudi_assets.engine.transaction.lease import HUDIS_FILE
from hudi_assets.engine.transaction.lock import WRITE, table_lock
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER, STORAGE_BASED
from scripts.hudi_client import RELEASES, Hudi, HudiError, InteropMissing, bundle
from tests.interop.tables import MINUTE, START, rows
from tests.stores.beside_hudi import Life, started
from tests.stores.minio import Minio, hadoop_aws
from tests.tables.local_session import Frame, LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]

LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    LOCK_PROVIDER: STORAGE_BASED,
    "hoodie.clean.failed.writes.policy": "LAZY",
}
IMPATIENT = {
    "hoodie.write.lock.wait_time_ms": "200",
    "hoodie.write.lock.num_retries": "2",
    "hoodie.write.lock.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.client.num_retries": "2",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
}


@pytest.fixture(scope="module")
def hudi(minio: Minio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hudi]:
    with in_the_bucket("1.2.0", minio, tmp_path_factory.mktemp("lock")) as hudi:
        yield hudi


@contextmanager
def in_the_bucket(release: str, minio: Minio, folder: Path | None) -> Iterator[Hudi]:
    """A Hudi that reaches the bucket; given a folder, with the client of its lock."""
    jars = hadoop_aws("3.3.4")
    if not jars:
        pytest.skip("Hudi reaches no bucket without hadoop-aws 3.3.4: make test-stores-hudi fetches it")
    try:
        jars += [] if folder is None else [lock_client(jars, folder)]
    except InteropMissing as missing:
        pytest.skip(str(missing))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in minio.environment.items():
            patch.setenv(name, value)
        with started(release, jars, minio.spark_settings) as hudi:
            yield hudi


def lock_client(jars: list[Path], folder: Path) -> Path:
    """The jar of what stands for hudi-aws's client, compiled."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("there is no javac: Hudi's lock in a bucket needs a JDK")
    source = Path(__file__).with_name("S3StorageLockClient.java")
    classes = folder / "classes"
    path = os.pathsep.join(map(str, (bundle("1.2.0"), *jars)))
    subprocess.run([javac, "-d", str(classes), "-cp", path, str(source)], check=True, timeout=300)
    jar = folder / "lock.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    return jar


@pytest.fixture(autouse=True)
def credentials(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in minio.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("version", ["9", "8"])
def test_in_turn(hudi: Hudi, session: LocalSession, version: str) -> None:
    Life(hudi, session, version).takes_turns(3)


@dataclass
class Writer:
    """One side of two that write at once: keys of its own, each of which gets newer and newer."""

    life: Life
    keys: list[int]
    written: dict[int, tuple[int, int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def writes(self, step: int, session: LocalSession | None) -> None:
        """By us where there is a session, else by Hudi. Either may be refused, and nothing is written then."""
        batch = rows(self.keys, lambda _: step * 10, step)
        try:
            if session is None:
                self.life.hudi.write(self.life.path, batch, self.life.options)
            else:
                self.life.table.upsert(session, Frame(batch))
            self.written |= dict.fromkeys(self.keys, (step * 10, step))
        except (HudiAssetsError, HudiError) as error:
            self.refused.append(str(error)[:1000])


def test_at_once_with_hudis_lock(hudi: Hudi, session: LocalSession) -> None:
    """Hudi writes eight times. We write, plan and compact meanwhile, as often as we can. No row is lost or wrong."""
    life = Life(hudi, session, "9", lock=LOCK)
    life.hudi_writes(range(12), 0, "bulk_insert")
    theirs, ours = Writer(life, list(range(0, 12, 2))), Writer(life, list(range(1, 12, 2)))

    def hudi_writes() -> None:
        for step in range(1, 9):
            theirs.writes(step, None)

    running = threading.Thread(target=hudi_writes)
    running.start()
    compactions, step = 0, 0
    try:
        while running.is_alive():
            step += 1
            ours.writes(step, session)
            compactions += _compacted(life.table, session, step * 5, ours.refused)
    finally:
        running.join()
    print(f"Hudi wrote 8, refused {theirs.refused}; we wrote {step}, compacted {compactions}, refused {ours.refused}")
    assert theirs.written, theirs.refused
    assert ours.written, ours.refused
    assert compactions, ours.refused
    life.expected |= theirs.written | ours.written
    life.agree("written at once")
    life.hudi_writes([0, 1], 10_000)  # something is left to compact, however far we came
    life.hudi_compacts_and_cleans()
    life.agree("Hudi compacted and cleaned what was written at once")


def _compacted(table: HudiTable, session: LocalSession, minute: int, refused: list[str]) -> int:
    try:
        plan = table.plan_compaction(threshold=START + minute * MINUTE)
        if not isinstance(plan, Plan):
            return 0
        table.execute_compaction(session, plan.instant)
        return 1
    except HudiAssetsError as error:
        refused.append(str(error)[:1000])
        return 0


def test_who_waits_for_whom(hudi: Hudi, session: LocalSession, minio: Minio) -> None:
    """While we hold the lock Hudi writes nothing, and it goes on once the lock is free."""
    life = Life(hudi, session, "9", lock=LOCK)
    life.hudi_writes(range(4), 0)
    file = life.table._table.storage.read(HUDIS_FILE)
    assert b'"expired":true' in file, "Hudi's own lock has been here"
    table = life.table
    batch = rows([0], lambda _: 50, 7)
    with table_lock(table._table.storage, WRITE, config=table.config, wait_s=0):
        with pytest.raises(HudiError, match="Unable to acquire"):
            hudi.write(life.path, batch, life.options | IMPATIENT)
        waiting = threading.Thread(target=life.hudi_writes, args=([1], 60))
        waiting.start()
        time.sleep(8)
        assert waiting.is_alive(), "Hudi writes although we hold the lock"
    waiting.join(120)
    assert not waiting.is_alive()
    life.we_write([2], 70)
    life.agree("after Hudi has waited for us")


@pytest.mark.parametrize("release", RELEASES)
def test_version_6_in_turn(session: LocalSession, minio: Minio, release: str) -> None:
    """Hudi's writers are stopped while one of ours runs."""
    with in_the_bucket(release, minio, None) as hudi:
        Life(hudi, session, "6").takes_turns_on_6(2)
