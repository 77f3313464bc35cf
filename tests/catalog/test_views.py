"""Own views in a Hive metastore, made and replaced by its protocol: Spark reads them as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.catalog import hive
from hudi_assets.catalog.publication import PUBLICATION
from hudi_assets.catalog.publishing import Names, publish
from hudi_assets.engine import Conflict, InvalidInput
from tests.catalog.conftest import Served
from tests.catalog.reader import Reader
from tests.catalog.tables import HOUR, make_table, row, write
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_view_that_was_never_made_by_spark_reads_as_one(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    table = make_table(tmp_path / "made")
    names = Names("default", "made_ro", "made_rt")
    assert publish(served.uri, table, names)["hudi_assets.instant"] == "null"
    assert reader.rows("SELECT * FROM made_ro") == []
    write(table, session, row("a", HOUR), row("b", 2 * HOUR, "y"))
    table.compact(session)
    write(table, session, row("c", 3 * HOUR))
    properties = publish(served.uri, table, names)
    assert [r["id"] for r in reader.rows("SELECT id FROM made_ro ORDER BY id")] == ["a", "b"]
    assert [r["id"] for r in reader.rows("SELECT id FROM made_rt ORDER BY id")] == ["a", "b", "c"]
    (found,) = reader.rows("SELECT many, by_name, inside, price, n FROM made_ro WHERE id = 'a'")
    assert found == {"many": [1], "by_name": {"k": 1.0}, "inside": None, "price": None, "n": 1}
    assert properties.items() <= reader.properties("made_ro").items()
    assert properties.items() <= reader.properties("made_rt").items()
    types = {r["col_name"]: r["data_type"] for r in reader.rows("DESCRIBE made_ro")}
    assert types["by_name"] == "map<string,double>"
    assert types["inside"] == "struct<a:boolean,b:binary>"


def test_what_spark_made_is_replaced_whole_and_what_others_set_of_it_stays(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    table = make_table(tmp_path / "theirs")
    write(table, session, row("a", HOUR))
    table.compact(session)
    reader.rows(
        f"CREATE VIEW theirs_ro TBLPROPERTIES ('hudi_assets.path' = '{table.path}', 'hudi_assets.reason' = 'old', "
        "'mine' = '1') AS SELECT 1 AS x"
    )
    publish(served.uri, table, Names("default", "theirs_ro", "theirs_rt"))
    assert [r["id"] for r in reader.rows("SELECT id FROM theirs_ro")] == ["a"]
    found = reader.properties("theirs_ro")
    assert found["mine"] == "1"
    assert "hudi_assets.reason" not in found
    reader.rows("CREATE OR REPLACE VIEW theirs_ro AS SELECT 2 AS y")  # Spark can replace what we made


def test_a_name_that_something_else_has_is_left_alone(tmp_path: Path, served: Served, reader: Reader) -> None:
    table = make_table(tmp_path / "t")
    reader.rows("CREATE VIEW taken_ro AS SELECT 1 AS x")
    with pytest.raises(InvalidInput, match="a view of somebody else"):
        publish(served.uri, table, Names("default", "taken_ro", "free_rt"))
    reader.rows("CREATE TABLE taken (x INT) USING parquet")
    with pytest.raises(InvalidInput, match="not a view"):
        publish(served.uri, table, Names("default", "free_ro", "taken"))
    publish(served.uri, make_table(tmp_path / "other"), Names("default", "other_ro", "other_rt"))
    with pytest.raises(InvalidInput, match=r"of the table .*other"):
        publish(served.uri, table, Names("default", "other_ro", "other_rt"))
    assert [r["x"] for r in reader.rows("SELECT x FROM taken_ro")] == [1]


def test_of_two_publishers_the_older_reading_does_not_come_last(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch, session: LocalSession
) -> None:
    """The one that has read the entry, and then the table, finds that somebody published meanwhile: it begins anew."""
    table = make_table(tmp_path / "both")
    names = Names("default", "both_ro", "both_rt")
    publish(served.uri, table, names)
    true_reading, readings = type(table).publication, []

    def and_somebody_else_publishes(self: object) -> object:
        found = true_reading(table)
        readings.append(found)
        if len(readings) == 1:
            write(table, session, row("a", HOUR))
            table.compact(session)
            publish(served.uri, table, names)
        return found

    monkeypatch.setattr(type(table), "publication", and_somebody_else_publishes)
    said = publish(served.uri, table, names)
    assert len(readings) == 3
    assert said["hudi_assets.instant"] == table.freshness().instant
    with hive.connect(served.uri) as metastore:
        entry = metastore.entry("default", "both_ro")
        assert entry is not None
        assert entry.parameters["hudi_assets.instant"] == table.freshness().instant
        with pytest.raises(Conflict):
            metastore.alter("default", "both_ro", entry, expected=(PUBLICATION, "somebody's"))


@pytest.mark.thorough
def test_more_files_and_columns_than_hive_and_spark_take_in_one_piece(
    tmp_path: Path, served: Served, reader: Reader, session: LocalSession
) -> None:
    import pyarrow as pa

    wide = pa.schema(
        [("id", pa.string()), ("at", pa.int64()), ("part", pa.string()), ("local", pa.timestamp("us"))]
        + [(f"column_with_a_long_name_{n:03d}", pa.int64()) for n in range(90)]
    )
    table = make_table(tmp_path / "wide", wide)
    rows = [{"id": str(n), "at": HOUR, "part": f"{n:0220d}"} for n in range(130)]
    table.upsert(session, session.rows([{**dict.fromkeys(wide.names), **one} for one in rows], wide))
    table.compact(session)
    publish(served.uri, table, Names("default", "wide_ro", "wide_rt"))
    with hive.connect(served.uri) as metastore:
        entry = metastore.entry("default", "wide_ro")
    assert entry is not None
    assert len(entry.text or "") > 32_700  # where Hive's own column for it ends
    assert reader.rows("SELECT count(*) AS n FROM wide_ro") == [{"n": 130}]
    types = {r["col_name"]: r["data_type"] for r in reader.rows("DESCRIBE wide_ro")}
    assert types["local"] == "timestamp_ntz"
    assert len(types) == len(wide.names) + 5
