"""What Trino, DuckDB, PyArrow and hudi-rs show of a table at five moments, as docs/reference/readers.md says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publishing import Form, Names
from scripts.hudi_client import Hudi, InteropMissing
from tests.interop.hive_servers import metastore_on_postgresql
from tests.interop.trino.life import KINDS, Kind, Life
from tests.interop.trino.server import Trino, trino
from tests.interop.trino.shown import Views, by_path, by_trino
from tests.interop.trino.table import EXPECTED
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def metastore() -> Iterator[str]:
    with metastore_on_postgresql() as uri:
        yield uri


@pytest.fixture(scope="module")
def running(metastore: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    try:
        with trino(metastore, tmp_path_factory.mktemp("trino")) as started:
            yield started
    except InteropMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_each_reader_shows(
    kind: Kind,
    tmp_path: Path,
    metastore: str,
    running: Trino,
    hudi_1_2: Hudi,
    session: LocalSession,
    request: pytest.FixtureRequest,
) -> None:
    writers = {"0.15.0": "hudi_0_15", "1.2.0": "hudi_1_2"}
    writer = request.getfixturevalue(writers[kind.writer]) if kind.writer in writers else None
    life = Life(kind, tmp_path / kind.name, session, writer)
    own = Place(metastore, Names("default", f"{kind.name}_ro", f"{kind.name}_rt"))
    synced = Place(metastore, Names("synced", f"{kind.name}_ro", f"{kind.name}_rt", Form.SYNCED))
    shown: dict[str, tuple[str, ...]] = dict.fromkeys(EXPECTED, ())
    for _ in life.moments():
        hudi_1_2.sync(life.path, life.sync_options(metastore))
        table = life.table
        published = [own.publish(table), synced.publish(table)]
        views = Views.of(table)
        asked = {**by_trino(running, kind.name), **by_path(table, partitioned=kind.partitioned)}
        for name, rows in asked.items():
            shown[name] += (views.word(rows),)
        _freshness_is_visible(running, kind.name, published)
    assert shown == EXPECTED


def _freshness_is_visible(running: Trino, name: str, published: list[dict[str, str]]) -> None:
    """As columns of `$properties`, of both kinds of entry, and as rows of the table of partitions."""
    for schema, properties in zip(("default", "synced"), published, strict=True):
        (said,) = running.rows(f'SELECT * FROM plain.{schema}."{name}_ro$properties"')
        assert _of(said) == _of(properties)
        rows = running.rows(f'SELECT partition_path, freshness_ms FROM plain.{schema}."{name}_freshness"')
        assert min(row["freshness_ms"] for row in rows) == int(properties["hudi_assets.freshness_ms"])


def _of(said: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in said.items() if key.startswith("hudi_assets.")}
