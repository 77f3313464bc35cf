"""In which order the table of the partitions and the views are published, and what a publisher that fails leaves.

The metastore is one in memory, the Spark session understands a few statements, and the tables are real.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_assets.catalog.follow import follow
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.partition_table import FOLDER
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publication import PARTITIONS, PATH
from hudi_assets.catalog.publishing import Form
from hudi_assets.engine import EnvironmentProblem, HudiTable
from tests.catalog.in_memory import Memory, memory
from tests.catalog.partitions import AT, entry_of, place, two_partitions
from tests.catalog.spark_in_memory import Spark, spark
from tests.catalog.tables import HOUR, row, write
from tests.tables.local_session import LocalSession

__all__ = ["memory", "spark"]

each_form = pytest.mark.parametrize("form", Form)


@each_form
def test_switched_off_it_goes_before_anybody_forgets_it(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table, form)
    here.publish(table)
    off = HudiTable.open(table.path)

    def refuses(*_: str) -> None:
        raise EnvironmentProblem("The metastore did not do it.")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "drop", refuses)
        assert not follow(off.look(), off, here).stands
    assert entry_of(memory) is not None
    assert follow(off.look(), off, here).properties is not None
    assert entry_of(memory) is None
    assert PARTITIONS not in memory.said("t_ro")
    assert follow(off.look(), off, here).properties is None


@each_form
def test_a_publisher_that_dies_while_it_switches_off_is_made_good(
    tmp_path: Path, memory: Memory, session: LocalSession, form: Form
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table, form)
    here.publish(table)
    off = HudiTable.open(table.path)
    memory.dies_at = "t_ro"
    with pytest.raises(KeyboardInterrupt):
        here.publish(off)
    memory.dies_at = None
    found = here.found()
    assert found is not None
    assert not found.together
    assert follow(off.look(), off, here).properties is not None
    assert entry_of(memory) is None


def test_it_goes_where_the_view_that_named_it_is_gone(tmp_path: Path, memory: Memory, session: LocalSession) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    here.publish(table)
    del memory.standing[AT, "default", "t_ro"]
    here.publish(HudiTable.open(table.path))
    assert entry_of(memory) is None


# -- promises that rise, and those that fall


Promises = dict[str, int | None]


def promises(table: HudiTable, entry: Entry) -> Promises:
    found = pq.read_table(f"{table.path}/{entry.parameters[FOLDER]}/partitions.parquet").to_pylist()
    return {one["partition_path"]: one["freshness_ms"] for one in found}


@pytest.fixture
def puts(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the entries that are put, in order."""
    order: list[str] = []
    create = memory.create

    def put(database: str, name: str, entry: Entry) -> None:
        order.append(name)
        create(database, name, entry)

    monkeypatch.setattr(memory, "create", put)
    return order


def ended(table: HudiTable, here: Place, memory: Memory) -> Promises:
    """What is promised once somebody has followed, of one publication."""
    follow(table.look(), table, here)
    found, entry = here.found(), entry_of(memory)
    assert found is not None
    assert found.together
    assert entry is not None
    assert follow(table.look(), table, here).properties is None
    return promises(table, entry)


@each_form
def test_what_rises_is_told_after_the_view_has_it(
    tmp_path: Path, memory: Memory, session: LocalSession, puts: list[str], form: Form
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table, form)
    here.publish(table)
    first = entry_of(memory)
    assert first is not None
    table.compact(session)
    puts.clear()
    memory.dies_at = "t_ro"
    with pytest.raises(KeyboardInterrupt):
        here.publish(table)
    assert entry_of(memory) == first
    memory.dies_at = None
    puts.clear()
    assert ended(table, here, memory) == {"part=x": 4 * HOUR, "part=y": 4 * HOUR}
    assert (puts[0], puts[-1], puts.count("t_freshness")) == ("t_ro", "t_freshness", 1)


@each_form
def test_what_falls_is_told_before(
    tmp_path: Path, memory: Memory, session: LocalSession, puts: list[str], form: Form
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table, form)
    here.publish(table)
    write(table, session, row("d", 2 * HOUR + 1, "y"), clock=5 * HOUR)  # late, in the cold partition
    memory.dies_at = "t_ro"
    puts.clear()
    with pytest.raises(KeyboardInterrupt):
        here.publish(table)
    entry = entry_of(memory)
    assert entry is not None
    fallen = {"part=x": 3 * HOUR - 1, "part=y": 2 * HOUR}
    assert promises(table, entry) == fallen
    assert puts == ["t_freshness", "t_ro"]
    memory.dies_at = None
    assert ended(table, here, memory) == fallen


@each_form
@pytest.mark.parametrize("dies_at", ["t_ro", "t_freshness"])
def test_where_one_falls_and_another_rises_neither_is_told_too_much(
    tmp_path: Path, memory: Memory, session: LocalSession, puts: list[str], form: Form, dies_at: str
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table, form)
    here.publish(table)
    table.compact(session)
    write(table, session, row("d", 2 * HOUR + 1, "y"), row("e", HOUR, "z"), clock=5 * HOUR)
    memory.die_at(dies_at, after=1 if dies_at == "t_freshness" else 0)
    puts.clear()
    with pytest.raises(KeyboardInterrupt):
        here.publish(table)
    entry = entry_of(memory)
    assert entry is not None
    assert promises(table, entry) == {"part=x": 3 * HOUR - 1, "part=y": 2 * HOUR}
    assert (puts[0], puts[1], puts[-1]) == ("t_freshness", "t_ro", dies_at)
    found = here.found()
    assert found is not None
    assert not found.together
    memory.dies_at = None
    assert ended(table, here, memory) == {"part=x": 4 * HOUR, "part=y": 2 * HOUR, "part=z": HOUR - 1}


def test_rows_that_are_gone_or_damaged_tell_nobody_anything(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    for damage in (Path.unlink, lambda file: file.write_bytes(b"PAR1")):
        here.publish(table)
        entry = entry_of(memory)
        assert entry is not None
        damage(Path(table.path, entry.parameters[FOLDER], "partitions.parquet"))
    here.publish(table)
    assert ended(table, here, memory)["part=y"] == 4 * HOUR


# -- by a Spark session


def test_by_spark_nothing_of_an_earlier_publication_stays(tmp_path: Path, spark: Spark, session: LocalSession) -> None:
    table = two_partitions(tmp_path, session)
    spark.publish(table)
    spark.tables["t_freshness"] |= {"hudi_assets.reason": "a log file is gone", "theirs": "1"}
    said = spark.publish(table)
    found = spark.tables["t_freshness"]
    assert spark.properties(None, "", "t_freshness") == {**said, FOLDER: found[FOLDER], "theirs": "1"}
    assert found["place"].endswith(found[FOLDER])
    said = spark.publish(HudiTable.open(table.path))
    assert spark.tables == {"t_ro": {"kind": "EXTERNAL", **said}}
    assert PARTITIONS not in said


def test_by_spark_it_goes_before_the_synced_table_forgets_it(
    tmp_path: Path, spark: Spark, session: LocalSession
) -> None:
    table = two_partitions(tmp_path, session)
    spark.publish(table)
    spark.fails = "ALTER TABLE `default`.`t_ro`"
    with pytest.raises(RuntimeError):
        spark.publish(HudiTable.open(table.path))
    assert "t_freshness" not in spark.tables
    assert PARTITIONS in spark.tables["t_ro"]


@pytest.mark.parametrize("said", [True, False])
def test_by_spark_it_is_removed_from_beside_synced_tables(
    tmp_path: Path, spark: Spark, session: LocalSession, said: bool
) -> None:
    table = two_partitions(tmp_path, session)
    spark.publish(table)
    if not said:  # Hive sync has made it anew
        spark.tables["t_ro"] = {"kind": "EXTERNAL"}
    spark.remove()
    assert set(spark.tables) == {"t_ro"}


def test_by_spark_what_stands_beside_another_tables_is_not_removed(
    tmp_path: Path, spark: Spark, session: LocalSession
) -> None:
    table = two_partitions(tmp_path, session)
    spark.publish(table)
    spark.tables["t_ro"][PATH] = "/lake/other"
    spark.remove()
    assert set(spark.tables) == {"t_ro", "t_freshness"}
