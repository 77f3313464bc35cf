"""A company's own metastore, on PostgreSQL, with the tables that Hudi 1.2.0's Hive sync made in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets import cli
from hudi_assets.catalog import hive
from hudi_assets.catalog.follow import follow
from hudi_assets.catalog.hive import PARAMETERS, Entry
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.engine import Conflict, HudiTable, InvalidInput
from scripts.hudi_client import Hudi, interop_python
from tests.catalog.reader import Reader
from tests.interop.hive_servers import metastore_on_postgresql
from tests.interop.synced import HOUR, SCHEMA, SETTINGS, options_of
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def metastore() -> Iterator[str]:
    with metastore_on_postgresql() as uri:
        yield uri


def _entry(uri: str, name: str) -> Entry:
    with hive.connect(uri) as opened:
        found = opened.entry("default", name)
    assert found is not None
    return found


def _others(entry: Entry) -> object:
    """All but our parameters, and the time of the last change, which is the server's."""
    kept = {
        k: v for k, v in entry.parameters.items() if not k.startswith("hudi_assets.") and k != "transient_lastDdlTime"
    }
    return {n: v for n, v in entry.table.fields.items() if n != PARAMETERS}, kept


def test_the_freshness_becomes_a_property_of_hudis_synced_tables(
    tmp_path: Path,
    metastore: str,
    hudi_1_2: Hudi,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "synced"
    options = options_of({"enable": "true", "mode": "hms", "metastore.uris": metastore, "database": "default"})
    rows = [{"id": str(n), "ts": n * HOUR, "text": "x", "part": "a"} for n in range(1, 4)]
    hudi_1_2.write(path, pa.Table.from_pylist(rows, SCHEMA), options, mode="overwrite")
    hudi_1_2.write(path, pa.Table.from_pylist(rows, SCHEMA), options)
    before = {name: _others(_entry(metastore, name)) for name in ("synced_ro", "synced_rt")}
    table = HudiTable.open(str(path), settings=SETTINGS)
    table.compact(session)
    arguments = ["publish", str(path), "--metastore", metastore, "--synced", "--json"]
    for key, value in SETTINGS.items():
        arguments += ["--set", f"{key}={value}"]
    monkeypatch.setattr(sys, "argv", ["hudi-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    published = json.loads(capsys.readouterr().out)["properties"]
    for name, others in before.items():
        found = _entry(metastore, name)
        assert _others(found) == others
        assert published.items() <= found.parameters.items()
    # Hudi's next sync leaves them there, and our next look sets them anew.
    hudi_1_2.write(path, pa.Table.from_pylist([{**rows[0], "text": "y"}], SCHEMA), options)
    after_sync = _entry(metastore, "synced_ro").parameters
    assert published.items() <= after_sync.items()
    place = Place(metastore, Names("default", "synced_ro", "synced_rt", Form.SYNCED))
    followed = follow(table.look(), table, place)
    assert followed.properties is not None
    assert _entry(metastore, "synced_rt").parameters["hudi_assets.freshness_ms"] == str(HOUR - 1)
    with Reader(metastore, tmp_path / "reader", str(interop_python())) as spark_3_5:
        assert spark_3_5.properties("synced_ro")["hudi_assets.freshness_ms"] == str(HOUR - 1)
    with pytest.raises(InvalidInput, match="A table has this name"):
        replace(place, names=replace(place.names, form=Form.VIEWS)).publish(table)


def test_own_views_stand_in_it_too(tmp_path: Path, metastore: str, session: LocalSession) -> None:
    table = HudiTable.create(
        str(tmp_path / "own"), SCHEMA, record_key=["id"], ordering_field="ts", partition_fields=["part"], buckets=1
    )
    # More files than Hive's own schema for Derby takes: PostgreSQL's has no such limit.
    rows = [{"id": str(n), "ts": n, "text": "x", "part": f"{n:0100d}"} for n in range(400)]
    table.upsert(session, session.rows(rows, SCHEMA))
    table.compact(session, threshold=1000)
    place = Place(metastore, Names("default", "own_ro", "own_rt"))
    place.publish(table)
    properties = place.publish(table)
    with Reader(metastore, tmp_path / "reader") as spark:
        assert spark.rows("SELECT count(*) AS n, sum(ts) AS s FROM own_ro") == [{"n": 400, "s": sum(range(400))}]
        assert spark.rows("SELECT count(*) AS n FROM own_rt") == [{"n": 400}]
        assert properties.items() <= spark.properties("own_ro").items()
    with hive.connect(metastore) as opened:
        entry = opened.entry("default", "own_ro")
        assert entry is not None
        with pytest.raises(Conflict):
            opened.alter("default", "own_ro", entry, expected=("hudi_assets.publication", "somebody's"))
