"""Random steps by the command line, by Dagster and by others; after the next look the catalog says what is true.

That is: the published freshness is the engine's, each file that the view names is there, and Spark reads by name what
the engine reads. A step is one of ours by the command line, a run of Dagster's, or one by somebody who asks no catalog.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance

from hudi_assets import cli
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publication import VIEW_DIGEST
from hudi_assets.catalog.publishing import Names
from hudi_assets.components.hudi_table import SensorModel
from hudi_assets.engine import Conflict, HudiTable, InvalidInput
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.resources import Catalog
from tests.catalog.conftest import Served
from tests.catalog.reader import Reader
from tests.catalog.tables import HOUR, make_table, row, write
from tests.dagster.conftest import InProcess, Platform
from tests.dagster.ticking import Sensor
from tests.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
_GLOB = re.compile(r"FROM parquet\.`([^`]*)`")


def named_files(text: str) -> Iterator[str]:
    """The paths in a view's text; those of these tables have no special characters."""
    for pattern in _GLOB.findall(text):
        start, _, rest = pattern.partition("{")
        yield from [start + one for one in rest.rstrip("}").split(",")] if rest else [start]


@dataclass
class World:
    """One table, and everybody who is at work on it."""

    chance: random.Random
    served: Served
    platform: Platform
    sensor: Sensor
    session: LocalSession
    name: str
    version: int
    hour: int = 3
    done: list[str] = field(default_factory=list)

    @property
    def table(self) -> HudiTable:
        return self.platform.table_with_settings()

    def upsert(self) -> None:
        self.hour += self.chance.randint(0, 3)
        self._write(self.hour)

    def late(self) -> None:
        self._write(self.chance.randint(1, self.hour))

    def _write(self, hour: int) -> None:
        rows = [row(f"k{self.chance.randrange(8)}", hour * HOUR + n, self.chance.choice("xy")) for n in range(2)]
        unlike = {one["id"]: one for one in rows}.values()  # of one key there is one row in a batch
        write(self.table, self.session, *unlike, clock=(self.hour + 1) * HOUR)

    def compact_elsewhere(self) -> None:
        """By us, on another machine: nobody publishes."""
        self.table.compact(self.session)

    def compact_in_part(self) -> None:
        self.table.compact(self.session, threshold=self.chance.randint(1, self.hour) * HOUR)

    def run_of_dagster(self) -> None:
        self.platform.run("compaction_plan", "ro_snapshot", "freshness", "housekeeping")

    def clean_as_others_do(self) -> None:
        """As Hudi's cleaner: it asks no catalog."""
        self.table.clean(retained=1)

    def roll_back(self) -> None:
        """The newest write or compaction, by somebody who asks no catalog."""
        newest = self.table.state().timeline.completed(*WRITES)[-1]
        self.table.rollback(newest.timestamp)

    def command(self, *arguments: str) -> None:
        sys.argv = ["hudi-assets", arguments[0], self.table.path, *arguments[1:]]
        with pytest.raises(SystemExit):
            cli.main()

    def clean(self) -> None:
        self.command("clean", "--retained", "1")

    def publish(self) -> None:
        self.command("publish", "--metastore", self.served.uri, "--ro", f"{self.name}_ro", "--rt", f"{self.name}_rt")

    def step(self) -> None:
        steps: list[Any] = [self.upsert] * 5 + [self.late] * 2 + [self.compact_elsewhere] * 3 + [self.compact_in_part]
        steps += [self.run_of_dagster, self.clean_as_others_do, self.clean, self.roll_back, self.publish]
        chosen = self.chance.choice(steps)
        self.done.append(chosen.__name__)
        with suppress(InvalidInput, Conflict):  # nothing to roll back, or something builds on it
            chosen()

    def look(self) -> None:
        """A tick; what it asks for is done."""
        self.sensor.tick()
        for request in self.sensor.last.run_requests or ():
            keys = [key.path[-1] for key in request.asset_selection or ()]
            self.platform.run(*(keys or ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")))

    def check(self) -> None:
        table, found = self.table, self.entry
        promise = table.freshness()
        said = found["hudi_assets.freshness_ms"]
        if promise.freshness is None or said == "null":
            assert promise.freshness is None, self.done
            assert said == "null", self.done
        else:  # one that has moved on by less than the pace of reports, 1 s, may wait
            assert 0 <= promise.freshness - int(said) < 1000, self.done
        wanted = {
            "hudi_assets.threshold_ms": "null" if promise.threshold is None else str(promise.threshold),
            "hudi_assets.instant": promise.instant or "null",
            VIEW_DIGEST: table.publication().view_digest,
        }
        assert wanted == {key: found.get(key) for key in wanted}, self.done
        assert sorted(named_files(self.text)) == sorted(table.read_optimized_files()), self.done

    @property
    def names(self) -> Names:
        return Names("default", f"{self.name}_ro", f"{self.name}_rt")

    @property
    def entry(self) -> dict[str, str]:
        found = Place(self.served.uri, self.names).found()
        assert found is not None
        return dict(found.properties)

    @property
    def text(self) -> str:
        from hudi_assets.catalog import hive

        with hive.connect(self.served.uri) as metastore:
            found = metastore.entry("default", f"{self.name}_ro")
        assert found is not None
        return found.text or ""

    def read(self, reader: Reader) -> None:
        theirs = sorted((r["id"], r["at"]) for r in reader.rows(f"SELECT id, at FROM {self.name}_ro"))
        ours = sorted((r["id"], r["at"]) for r in self.table.read_optimized(self.session).rows())
        assert theirs == ours, self.done


def live(world: World, reader: Reader, steps: int, read_every: int) -> None:
    world.upsert()
    world.compact_elsewhere()
    world.publish()
    for number in range(1, steps + 1):
        world.step()
        world.look()
        world.check()
        if number % read_every == 0:
            world.read(reader)
    world.read(reader)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", sys.argv)
    with DagsterInstance.ephemeral() as made:
        yield made


def world_of(seed: int, version: int, tmp_path: Path, served: Served, instance: DagsterInstance) -> World:
    name = f"truth_{version}_{seed}"
    path = tmp_path / name
    make_table(path, clock="commit", table_version=version)
    attributes = {
        "source": None,
        "external": True,
        "path": str(path),
        "ro_view": f"{name}_ro",
        "rt_view": f"{name}_rt",
        "compact_every": "3h",
        "sensor": SensorModel(report_every="1s"),
        "settings": {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"},
    }
    platform = Platform(tmp_path, InProcess(), instance, attributes, Catalog(uri=served.uri))
    return World(random.Random(seed), served, platform, Sensor(platform), LocalSession(), name, version)


@pytest.mark.parametrize("version", [6, 9])
def test_what_is_published_is_true_after_the_next_look(
    version: int, tmp_path: Path, served: Served, reader: Reader, session: LocalSession, instance: DagsterInstance
) -> None:
    live(world_of(1, version, tmp_path, served, instance), reader, steps=12, read_every=6)


@pytest.mark.thorough
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("seed", [2, 3])
def test_over_many_steps(
    seed: int,
    version: int,
    tmp_path: Path,
    served: Served,
    reader: Reader,
    session: LocalSession,
    instance: DagsterInstance,
) -> None:
    live(world_of(seed, version, tmp_path, served, instance), reader, steps=60, read_every=5)
