"""Random steps by the command line, by Dagster and by others; after the next look the catalog says what is true.

That is: the published freshness is the engine's, each file that the view names is there, and Spark reads by name what
the engine reads. A step is one of ours by the command line, a run of Dagster's, or one by somebody who asks no catalog.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance

from hudi_assets.catalog.publishing import Names
from hudi_assets.components import SensorModel
from hudi_assets.engine import Conflict, InvalidInput
from hudi_assets.engine.timeline.instants import WRITES
from hudi_assets.resources import Catalog
from tests.catalog.conftest import Served
from tests.catalog.reader import Reader
from tests.catalog.tables import HOUR, make_table, row, write
from tests.catalog.world import World
from tests.dagster.conftest import InProcess, Platform
from tests.dagster.ticking import Sensor
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass
class Life(World):
    """Everybody but Hudi is at work on the table."""

    hour: int = 3

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

    def clean_as_others_do(self) -> None:
        """As Hudi's cleaner: it asks no catalog."""
        self.table.clean(retained=1, unasked=True)

    def roll_back(self) -> None:
        """The newest write or compaction, by somebody who asks no catalog."""
        newest = self.table.state().timeline.completed(*WRITES)[-1]
        self.table.rollback(newest.timestamp)

    def clean(self) -> None:
        self.command("clean", "--retained", "1")

    def publish(self) -> None:
        self.command("publish", "--metastore", self.uri, "--ro", self.names.ro, "--rt", self.names.rt)

    def step(self) -> None:
        steps: list[Any] = [self.upsert] * 5 + [self.late] * 2 + [self.compact_elsewhere] * 3 + [self.compact_in_part]
        steps += [self.run_of_dagster, self.clean_as_others_do, self.clean, self.roll_back, self.publish]
        chosen = self.chance.choice(steps)
        self.done.append(chosen.__name__)
        with suppress(InvalidInput, Conflict):  # nothing to roll back, or something builds on it
            chosen()

    def read(self, reader: Reader) -> None:
        theirs = sorted((r["id"], r["at"]) for r in reader.rows(f"SELECT id, at FROM {self.names.ro}"))
        ours = sorted((r["id"], r["at"]) for r in self.table.read_optimized(self.session).rows())
        assert theirs == ours, self.done


def live(world: Life, reader: Reader, steps: int, read_every: int) -> None:
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


def world_of(seed: int, version: int, tmp_path: Path, served: Served, instance: DagsterInstance) -> Life:
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
    names = Names("default", f"{name}_ro", f"{name}_rt")
    return Life(random.Random(seed), served.uri, platform, Sensor(platform), LocalSession(), names)


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.thorough), 9])
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
