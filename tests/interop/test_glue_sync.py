"""Tables that Apache Hudi 0.15.0 itself syncs into AWS Glue, which is moto's server: they get the freshness too.

`scripts/glue-sync-setup` fetches Hudi's part for AWS, which later releases do not have where the others come from.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.catalog.follow import follow
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publication import PREFIX
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from tests.catalog.glue_server import ENVIRONMENT, REGION, URI, Glue, glue, glue_server, others, synced_table
from tests.interop.synced import HOUR, SCHEMA, SETTINGS, options_of
from tests.tables.local_session import LocalSession

__all__ = ["glue", "glue_server"]
pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]
_OPTIONS = {
    **options_of({"database": "lake"}),
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool",
}
_SYNCED = ("synced_ro", "synced_rt")
_ROWS = [{"id": str(n), "ts": n * HOUR, "text": "x", "part": "a"} for n in range(1, 4)]


@pytest.fixture(scope="module")
def hudi(glue_server: tuple[str, list[Glue]]) -> Iterator[Hudi]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jars = sorted((cache / "hudi-assets/jars/glue-sync-0.15.0").glob("*.jar"))
    if not jars:
        pytest.skip("Hudi's part for AWS is not there: scripts/glue-sync-setup fetches it")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL_GLUE": glue_server[0], "AWS_REGION": REGION}.items():
            patch.setenv(name, value)
        with Hudi("0.15.0", jars=jars) as started:
            yield started


def _write(hudi: Hudi, glue: Glue, path: Path, rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> None:
    """And wait: Hudi does not wait for Glue's answer itself."""
    hudi.write(path, pa.Table.from_pylist(rows, schema), _OPTIONS, mode="append" if path.exists() else "overwrite")
    newest = max(file.name.split(".")[0] for file in (path / ".hoodie").glob("*.deltacommit"))
    deadline = time.monotonic() + 60
    while {glue.table(name)["Parameters"].get("last_commit_time_sync") for name in _SYNCED} != {newest}:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_freshness_becomes_a_property_of_what_hudi_synced_into_glue(
    tmp_path: Path, hudi: Hudi, glue: Glue, session: LocalSession
) -> None:
    path = tmp_path / "synced"
    _write(hudi, glue, path, _ROWS)
    _write(hudi, glue, path, _ROWS)
    before = {name: others(glue.table(name)) for name in _SYNCED}
    table = HudiTable.open(str(path), settings=SETTINGS)
    table.compact(session)
    place = Place(URI, Names("lake", *_SYNCED, Form.SYNCED))
    glue.asked.clear()
    said = place.publish(table)
    for name, was in before.items():
        assert others(glue.table(name)) == was
        assert said.items() <= glue.table(name)["Parameters"].items()
    assert all("VersionId" in asked for asked in glue.updates())
    # Hudi's next sync, of another column too, leaves ours there, and our next look sets them anew.
    glue.asked.clear()
    wider = pa.schema([*SCHEMA, ("more", pa.string())])
    _write(hudi, glue, path, [{**_ROWS[0], "text": "y", "more": "z"}], wider)
    # It sends columns and time in two calls, and waits for neither, so the columns may be those of before in the end.
    columns = [c["Name"] for asked in glue.updates() for c in asked["TableInput"]["StorageDescriptor"]["Columns"]]
    assert "more" in columns
    assert not [asked for asked in glue.updates() if "VersionId" in asked]
    for asked in glue.updates():
        if asked["TableInput"]["Name"] in _SYNCED:
            assert said.items() <= asked["TableInput"]["Parameters"].items()
    synced = {name: others(glue.table(name)) for name in _SYNCED}
    assert follow(table.look(), table, place).properties is not None
    assert glue.table("synced_rt")["Parameters"]["hudi_assets.freshness_ms"] == str(HOUR - 1)
    assert {name: others(glue.table(name)) for name in _SYNCED} == synced


def test_hudi_makes_tables_as_those_of_the_other_tests(tmp_path: Path, hudi: Hudi, glue: Glue) -> None:
    """`tests/catalog/glue_server.py` has their shape."""
    _write(hudi, glue, tmp_path / "synced", _ROWS)
    for name in _SYNCED:
        made, found = synced_table(name, "/lake"), glue.table(name)
        assert set(found) - set(made) == {"CatalogId", "CreateTime", "DatabaseName", "UpdateTime", "VersionId"}
        assert set(made) - set(found) == set()
        for place in ("InputFormat", "OutputFormat"):
            assert found["StorageDescriptor"][place] == made["StorageDescriptor"][place]
        serde, as_made = found["StorageDescriptor"]["SerdeInfo"], made["StorageDescriptor"]["SerdeInfo"]
        assert serde["SerializationLibrary"] == as_made["SerializationLibrary"]
        assert serde["Parameters"].keys() == as_made["Parameters"].keys()
        assert found["PartitionKeys"] == made["PartitionKeys"]
        kept = {key for key in found["Parameters"] if not key.startswith(PREFIX)}
        assert kept == set(made["Parameters"])
