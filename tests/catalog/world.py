"""One table, its sensor and its catalog: the next look, and whether what is published is true afterwards."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hudi_assets import cli
from hudi_assets.catalog import hive
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publication import VIEW_DIGEST
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.engine import HudiTable
from tests.dagster.conftest import Platform
from tests.dagster.ticking import Sensor
from tests.tables.local_session import LocalSession

MAINTENANCE = ("compaction_plan", "ro_snapshot", "freshness", "housekeeping")
_GLOB = re.compile(r"FROM parquet\.`([^`]*)`")


def named_files(text: str) -> Iterator[str]:
    """The paths in a view's text; those of these tables have no special characters."""
    for pattern in _GLOB.findall(text):
        start, _, rest = pattern.partition("{")
        yield from [start + one for one in rest.rstrip("}").split(",")] if rest else [start]


@dataclass
class World:
    """`done`: the steps so far, for whoever reads a failure."""

    chance: random.Random
    uri: str
    platform: Platform
    sensor: Sensor
    session: LocalSession
    names: Names
    done: list[str] = field(default_factory=list)
    looked: float = 0

    @property
    def table(self) -> HudiTable:
        return self.platform.table_with_settings()

    def command(self, *arguments: str) -> int:
        """One of the command line's, by its own entry; its exit code."""
        sys.argv = ["hudi-assets", arguments[0], self.table.path, *arguments[1:]]
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0)

    def run_of_dagster(self) -> None:
        self.platform.run(*MAINTENANCE)

    def look(self) -> None:
        """A tick; what it asks for is done."""
        self.looked = time.monotonic()
        self.sensor.tick()
        for request in self.sensor.last.run_requests or ():
            keys = [key.path[-1] for key in request.asset_selection or ()]
            self.platform.run(*(keys or MAINTENANCE))

    def check(self) -> None:
        table, found = self.table, self.entry
        promise = table.freshness()
        said = found["hudi_assets.freshness_ms"]
        if promise.freshness is None or said == "null":
            assert promise.freshness is None, self.done
            assert said == "null", self.done
        else:  # one that has moved on by less than the pace of reports, 1 s, may wait; it moves with the clock
            since = round(1000 * (time.monotonic() - self.looked))
            assert 0 <= promise.freshness - int(said) < 1000 + since, self.done
        wanted = {
            "hudi_assets.threshold_ms": "null" if promise.threshold is None else str(promise.threshold),
            "hudi_assets.instant": promise.instant or "null",
        }
        if self.names.form is Form.VIEWS:
            wanted[VIEW_DIGEST] = table.publication().view_digest
            assert sorted(named_files(self.text)) == sorted(table.read_optimized_files()), self.done
        assert wanted == {key: found.get(key) for key in wanted}, self.done

    @property
    def entry(self) -> dict[str, str]:
        found = Place(self.uri, self.names).found()
        assert found is not None
        return dict(found.properties)

    @property
    def text(self) -> str:
        with hive.connect(self.uri) as metastore:
            found = metastore.entry(self.names.database, self.names.ro)
        assert found is not None
        return found.text or ""
