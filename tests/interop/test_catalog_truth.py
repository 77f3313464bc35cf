"""What is published is true after the next look, whatever Apache Hudi, the command line and Dagster do at random.

`TRUTH_STEPS` steps of each life (10), by the seed `TRUTH_SEED` (1). A failure names its seed and every step so far.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance

from hudi_assets.catalog.metastore import Metastore
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.cli import commands
from hudi_assets.components import SensorModel
from hudi_assets.resources import Catalog
from scripts.hudi_client import Hudi, bundle, interop_home, interop_python
from tests.catalog.reader import Reader
from tests.dagster.conftest import InProcess, Platform
from tests.dagster.ticking import Sensor
from tests.interop.catalog_life import Life, Shape
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(3600)]
STEPS = int(os.environ.get("TRUTH_STEPS", "10"))
SEED = int(os.environ.get("TRUTH_SEED", "1"))


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = Metastore(tmp_path_factory.mktemp("home"))
    yield found.acquire(os.getpid())
    found.stop()


@pytest.fixture(scope="module")
def reader(metastore: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with Reader(metastore, tmp_path_factory.mktemp("reader")) as opened:
        yield opened


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: LocalSession) -> Iterator[DagsterInstance]:
    monkeypatch.setenv("INTEROP_HOME", str(interop_home()))
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(commands, "start_spark", lambda bundle: LocalSession())
    with DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def begin(
    tmp_path: Path, metastore: str, instance: DagsterInstance, request: pytest.FixtureRequest
) -> Callable[[Shape, Form], Life]:
    """A table of Hudi's that was compacted and published once."""

    def begin(shape: Shape, form: Form) -> Life:
        hudi: Hudi = request.getfixturevalue("hudi_0_15" if shape.version == 6 else "hudi_1_2")
        life = life_of(shape, form, tmp_path, metastore, hudi, instance)
        life.begin()
        return life

    return begin


def life_of(shape: Shape, form: Form, folder: Path, uri: str, hudi: Hudi, instance: DagsterInstance) -> Life:
    name = f"{form}_{shape.name}_{SEED}".replace("-", "_")
    path = folder / name
    names = Names("default", f"{name}_ro", f"{name}_rt", form)
    attributes = {
        "source": None,
        "external": True,
        "path": str(path),
        "ro_view": names.ro,
        "rt_view": names.rt,
        "compact_every": "2h",
        "clock": "system",
        "sensor": SensorModel(report_every="1s"),
        "settings": {**shape.ours, "hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"},
    }
    platform = Platform(folder, InProcess(), instance, attributes, Catalog(uri=uri, tables=form.value))
    parts = (random.Random(SEED), uri, platform, Sensor(platform), LocalSession(), names)
    return Life(*parts, hudi=hudi, path=path, shape=shape, synced=name if form is Form.SYNCED else None)


def live(life: Life, reader: Reader, steps: int) -> None:
    print(f"\nTRUTH_SEED={SEED} TRUTH_STEPS={steps}: {life.shape}, {life.names.form}", flush=True)
    try:
        life.live(steps, reader)
    finally:
        print(f"steps: {dict(life.came)}")
        for name, problems in life.refused.items():
            print(f"not possible: {name}, {len(problems)} times, as {problems[0][:300]}")


def by_name(shape: Shape) -> str:
    return shape.name


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        Shape(6, "BUCKET", locked=True, compactor=False),
        Shape(6, "BLOOM"),
        Shape(6, "BUCKET", locked=True),
        Shape(9, "BUCKET"),
    ],
    ids=by_name,
)
def test_own_views(shape: Shape, begin: Callable[[Shape, Form], Life], reader: Reader) -> None:
    live(begin(shape, Form.VIEWS), reader, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [Shape(6, "BUCKET", locked=True, compactor=False), Shape(9, "BLOOM")], ids=by_name)
def test_tables_of_hudis_hive_sync(
    shape: Shape, begin: Callable[[Shape, Form], Life], metastore: str, tmp_path: Path
) -> None:
    """Read by name by Spark 3.5 with the bundle of the release that writes."""
    life = begin(shape, Form.SYNCED)
    settings = {
        "spark.jars": str(bundle(life.hudi.release)),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }
    with Reader(metastore, tmp_path / "reader", str(interop_python()), settings) as reader:
        live(life, reader, STEPS)
