"""Tables as Apache Hudi writes them, in many ways: `hudi-assets init` writes a block of each that loads and compacts.

Nothing is typed but the paths, of ten tables of versions 8 and 9. Of version 6 also what no table tells, that its
writers are stopped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from dagster import DagsterInstance

from hudi_assets import cli
from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key
from tests.defs_project import DefsProject, compacted
from tests.interop.tables import hudi_options
from tests.tables.local_session import install

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
LATE_S = 3 * 86_400
STAMP = pa.timestamp("us", tz="UTC")
NO_INDEX = {"hoodie.index.type": "SIMPLE", "hoodie.bucket.index.num.buckets": ""}
NBCC = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
BLOOM = {
    "hoodie.index.type": "BLOOM",
    "hoodie.bucket.index.num.buckets": "",
    "hoodie.bucket.index.hash.field": "",
    "hoodie.datasource.write.recordkey.field": "id,p",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
NO_ORDERING = {
    "hoodie.datasource.write.precombine.field": "",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "hoodie.payload.ordering.field": "",
}


def _iso(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def _stamp(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@dataclass(frozen=True)
class Way:
    """One way to make a table. `value` makes the event time of epoch seconds; `unit`: what the block has to say."""

    name: str
    release: str = "1.2.0"
    version: int = 9
    type: pa.DataType = field(default_factory=pa.int64)
    value: Callable[[float], Any] = lambda second: round(second * 1000)
    unit: str | None = "ms"
    partition: str = "p"
    options: Mapping[str, str] = field(default_factory=dict)

    def write(self, hudi: Hudi, path: Path) -> None:
        """Rows that came at once, two that came three days late, and the first ones again."""
        prompt, late = range(300), range(2)
        for numbers, age in ((prompt, 0), (late, LATE_S), (prompt, 0)):
            now = time.time() - age
            rows = [{"id": f"k{n}", "p": "ab"[n % 2], "ts": self.value(now), "n": n} for n in numbers]
            schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", self.type), ("n", pa.int64())])
            options = hudi_options(name=self.name, partition=self.partition) | {
                "hoodie.write.table.version": str(self.version)
            }
            given = {key: text for key, text in {**options, **self.options}.items() if text}
            del given["hoodie.payload.event.time.field"]
            hudi.write(path, pa.Table.from_pylist(rows, schema), given)


# Of version 9 and 8 ten are put under Dagster, and one is refused.
QUICK = (
    Way("stamps", type=STAMP, value=_stamp, unit=None, options={"hoodie.metadata.enable": "true"}),
    Way("cow", options={"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}),
)
SLOW = (
    Way("v9_ms"),
    Way("v9_s", value=int, unit="s", partition="", options=NO_INDEX),
    Way("v9_us", value=lambda second: round(second * 1e6), unit="us"),
    Way("v9_iso", type=pa.string(), value=_iso, unit=None),
    Way("v9_day", type=pa.string(), value=lambda second: _iso(second)[:10], unit=None),
    Way("v9_no_ordering", type=STAMP, value=_stamp, unit=None, options=NO_ORDERING),
    Way("v9_nbcc", options=NBCC),
    Way("v9_bloom", type=STAMP, value=_stamp, unit=None, options=BLOOM),
    Way("v8_ms", version=8, options={"hoodie.write.auto.upgrade": "false"}),
    Way("v6_ms_1x", version=6, options={"hoodie.write.auto.upgrade": "false"}),
)
SLOW_0_15 = (
    Way("v6_ms", release="0.15.0", version=6),
    Way("v6_stamps", release="0.15.0", version=6, type=STAMP, value=_stamp, unit=None, partition="", options=NO_INDEX),
)


def run_init(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    monkeypatch.setattr(sys, "argv", ["hudi-assets", "init", *map(str, args)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("release", "ways"),
    [
        pytest.param("1.2.0", QUICK, id="quick"),
        pytest.param("1.2.0", SLOW, id="1.2.0", marks=pytest.mark.slow),
        pytest.param("0.15.0", SLOW_0_15, id="0.15.0", marks=pytest.mark.slow),
    ],
)
def test_a_table_of_hudi_is_put_under_dagster_by_its_path(
    release: str,
    ways: tuple[Way, ...],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path / "home"))  # after the fixture, which looks for Hudi there
    for way in ways:
        way.write(hudi, tmp_path / f"v{way.version}" / way.name)
    project = DefsProject(tmp_path / "project").made()
    for folder in sorted(tmp_path.glob("v[689]")):
        writers = ("--writers", "stopped") if folder.name == "v6" else ()
        code = run_init(monkeypatch, folder, "--out", project.defs, *writers)
        said = capsys.readouterr().err
        assert code == (1 if (folder / "cow").exists() else 0), said
        assert ("COPY_ON_WRITE" in said) == (folder / "cow").exists()
    install(monkeypatch.setattr)
    definitions = project.load()
    with DagsterInstance.ephemeral() as instance:
        for way in ways:
            if way.name != "cow":
                path = tmp_path / f"v{way.version}" / way.name
                _compacts(way, path, project, hudi, definitions, instance, tmp_path)


def _compacts(
    way: Way, path: Path, project: DefsProject, hudi: Hudi, definitions: Any, instance: DagsterInstance, home: Path
) -> None:
    text = (project.defs / way.name / "defs.yaml").read_text()
    given = yaml.safe_load(text)["attributes"]
    assert given["event_time_field"] == "ts", text
    assert given.get("event_time_unit") == way.unit, text
    before = by_key(hudi.read(path))
    settings = {"hoodie.payload.event.time.field": "ts"}
    logs = HudiTable.open(str(path), settings=settings).stats().remaining_log_files
    assert compacted(definitions, instance, way.name, home), way
    after = HudiTable.open(str(path), settings=settings).stats()
    assert after.last_compaction is not None, way
    assert after.remaining_log_files < logs, way
    assert by_key(hudi.read(path)) == before, way
