"""Apache Hudi's streaming sink commits every few seconds, its cleaner and archiver on, while our sensor compacts.

MINUTES=10 by `make test-live`; one minute otherwise, and more where a busy machine has shown too little by then.
Nothing is lost or doubled, at random moments and at the end; the freshness advances, and at every look the
read-optimized view holds what was ingested up to it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance

from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from tests.live.maintenance import Maintenance
from tests.live.watch import StreamingWriter, Watch
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.live, pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]

WRITER: Mapping[str, str] = {
    "hoodie.table.name": "live",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.payload.event.time.field": "ts",
    "hoodie.payload.ordering.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
    # Ours is the compaction: the sink's own would execute any plan that it finds.
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async": "false",
    "hoodie.archive.automatic": "true",
    "hoodie.datasource.write.streaming.retry.count": "20",
    "hoodie.datasource.write.streaming.retry.interval.ms": "500",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "live",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
}
LOCKED: Mapping[str, str] = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.num_retries": "300",
    "hoodie.write.lock.client.num_retries": "20",
    "hoodie.write.lock.filesystem.expire": "5",
}
BLOCK: Mapping[str, Any] = {
    "name": "live",
    "external": True,
    "data_latency": "12s",
    "compact_every": "4s",
}
SETTINGS: Mapping[str, str] = {"hoodie.payload.event.time.field": "ts", "hudi_assets.event.time.unit": "ms"}


# What the check of the read-optimized view says where a commit came later than `data_latency` after its events.
_LATE = "no_pre_threshold_logs"


def grace_s(seconds: float) -> int:
    """How long a query may take in a run of so many seconds."""
    return 60 if seconds >= 180 else 6


def retention(seconds: float) -> dict[str, str]:
    """What Hudi keeps: in a long run enough commits for a query of a minute, in a short one for a few seconds."""
    retained = 80 if seconds >= 180 else 16
    return {
        # Its name in 0.15 and in 1.x.
        "hoodie.cleaner.commits.retained": str(retained),
        "hoodie.clean.commits.retained": str(retained),
        "hoodie.keep.min.commits": str(retained + 2),
        "hoodie.keep.max.commits": str(retained + 5),
    }


@contextmanager
def writing(release: str, folder: Path, options: Mapping[str, str]) -> Iterator[StreamingWriter]:
    writer = StreamingWriter(release, folder, options)
    try:
        # Not `**`: the metadata table's first commit comes before the table's own.
        while not [*writer.path.glob(".hoodie/*.deltacommit"), *writer.path.glob(".hoodie/timeline/*.deltacommit")]:
            writer.check_alive()
            time.sleep(0.5)
        yield writer
    finally:
        writer.stop()


# So much longer a run may take until it has shown something, on a machine that is busy with other work.
_PATIENCE_S = 240
COMPACTIONS, LONG_READS = 3, 1


def live(maintenance: Maintenance, watch: Watch, seconds: float) -> None:
    """Ticks, and looks in between, for so long, or until there is enough to judge by."""
    chance = random.Random(7)
    end = time.monotonic() + seconds
    hold = grace_s(seconds)
    counts = watch.counts
    while time.monotonic() < end or (not enough(watch, seconds) and time.monotonic() < end + _PATIENCE_S):
        watch.writer.check_alive()
        watch.table = maintenance.table()
        done = maintenance.tick()
        if done.failure:
            # Whoever loses a race says so. A writer that lags by more than the latency stated brings late data: the
            # check says that. Anything else is a failure.
            late = _LATE in done.failure
            assert late or "Conflict" in done.failure, done.failure
            (counts.late if late else counts.lost_races).append(done.failure)
        counts.skipped += done.skipped is not None
        counts.compactions += done.logs_compacted > 0
        counts.logs_compacted += done.logs_compacted
        for look in (watch.snapshot, watch.promise):
            time.sleep(chance.uniform(0, 1.5))
            look()
        watch.long_read(hold)


def enough(watch: Watch, seconds: float) -> bool:
    """True where the run has seen compactions, long reads, and the freshness advance by half its time."""
    counts = watch.counts
    moved = counts.freshness[-1] - counts.freshness[0] if counts.freshness else 0
    seen = counts.compactions >= COMPACTIONS and counts.long_reads >= LONG_READS
    return seen and moved > seconds * 1000 / 2


def test_0_15_0_with_the_shared_lock(tmp_path: Path, session: LocalSession, seconds: float) -> None:
    options = {**WRITER, **LOCKED, **retention(seconds), "hoodie.metadata.enable": "false"}
    with writing("0.15.0", tmp_path, options) as writer, DagsterInstance.ephemeral() as instance:
        settings = {**SETTINGS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
        settings |= {key: value for key, value in LOCKED.items() if "lock.filesystem" in key}
        # On version 6 only we may execute what we plan.
        settings |= {"hudi_assets.table.services": "ours"}
        block = {**BLOCK, "path": str(writer.path), "writers": "locked", "settings": settings}
        maintenance = Maintenance(session, instance, tmp_path, block)
        watch = Watch(writer, maintenance.table())
        live(maintenance, watch, seconds)
        assert not writer.stop()
        finish(watch, "0.15.0", seconds)


@pytest.mark.parametrize(
    ("version", "metadata"), [("9", "true"), ("9", "false"), ("8", "false")], ids=["9-metadata-table", "9", "8"]
)
def test_1_2_0_without_a_shared_lock(
    version: str, metadata: str, tmp_path: Path, session: LocalSession, seconds: float
) -> None:
    options = {**WRITER, **retention(seconds), "hoodie.metadata.enable": metadata}
    options |= {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    with writing("1.2.0", tmp_path, options) as writer, DagsterInstance.ephemeral() as instance:
        settings = {**SETTINGS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
        settings |= {**retention(seconds), "hudi_assets.query.grace": f"{grace_s(seconds)}s"}
        block = {**BLOCK, "path": str(writer.path), "settings": settings}
        maintenance = Maintenance(session, instance, tmp_path, block)
        watch = Watch(writer, maintenance.table())
        assert watch.table.config.table_version == int(version)
        live(maintenance, watch, seconds)
        assert not writer.stop()
        assert (writer.path / ".hoodie/metadata").exists() == (metadata == "true")
        finish(watch, "1.2.0", seconds, metadata)


def finish(watch: Watch, release: str, seconds: float, metadata: str = "false") -> None:
    """The table at its end, by the engine and by Apache Hudi itself."""
    table = HudiTable.open(watch.table.path, settings=dict(watch.table.config.properties))
    watch.table = table
    watch.snapshot()
    watch.promise()
    counts = watch.counts
    last = watch.writer.last_batch(table)
    counts.events, counts.commits = watch.writer.events_until(last), last + 1
    wanted = watch.writer.stream().rows(counts.events)
    with Hudi(release) as hudi:
        shown = hudi.read(table.path, options={"hoodie.metadata.enable": metadata}).to_pylist()
    assert sorted((row["id"], row["ts"], row["v"]) for row in shown) == sorted((k, *v) for k, v in wanted.items())
    print(f"\n{release}, {seconds:.0f} s: {counts.told()}")
    assert enough(watch, seconds), counts.told()
