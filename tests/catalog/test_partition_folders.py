"""What a publication of the freshness of the partitions leaves on the storage, and for how long.

The metastore is one in memory, the Spark session understands a few statements, and the tables are real.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_assets.catalog import partition_folders
from hudi_assets.catalog.hive import Entry, Refused
from hudi_assets.catalog.partition_table import FOLDER
from hudi_assets.engine import PARTITION_TABLES, Conflict, EnvironmentProblem, HudiTable
from hudi_assets.engine.storage.local import LocalStorage
from tests.catalog.in_memory import Memory, memory
from tests.catalog.partitions import entry_of, place, two_partitions
from tests.catalog.spark_in_memory import Spark, spark
from tests.tables.local_session import LocalSession

__all__ = ["memory", "spark"]

REFUSED = Refused("The metastore did not do it.")
SILENT = EnvironmentProblem("The Hive metastore does not answer.")


class Clock:
    def __init__(self) -> None:
        self.minutes = 0

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.minutes * 60_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(partition_folders, "_now_ms", made.now_ms)
    return made


def folders(table: HudiTable) -> list[str]:
    """As an entry names them, the oldest first."""
    return sorted(f"{PARTITION_TABLES}/{one.parent.name}/{one.name}" for one in rows(table))


def rows(table: HudiTable) -> list[Path]:
    return [file.parent for file in Path(table.path, PARTITION_TABLES).rglob("*.parquet")]


def named(memory: Memory) -> str:
    entry = entry_of(memory)
    assert entry is not None
    return entry.parameters[FOLDER]


def failing(memory: Memory, error: Exception, *, done: bool = False) -> Callable[[str, str, Entry], None]:
    """In the place of `create`: it fails for the table of the partitions; though it may be `done`."""
    create = memory.create

    def fails(database: str, name: str, entry: Entry) -> None:
        if name != "t_freshness" or done:
            create(database, name, entry)
        if name == "t_freshness":
            raise error

    return fails


def test_what_readers_left_stays_for_an_hour(
    tmp_path: Path, memory: Memory, session: LocalSession, clock: Clock
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    made = []
    for minutes in (0, 50, 55, 115, 116):
        clock.minutes = minutes
        here.publish(table)
        made.append(named(memory))
    # At 116 the first one had been left for 66 minutes and the second for 61, the third for one.
    assert folders(table) == made[2:]


def test_a_publication_that_failed_sent_nobody_away(
    tmp_path: Path, memory: Memory, session: LocalSession, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hours later the first folder is left. It has its hour from then on."""
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    here.publish(table)
    first, clock.minutes = named(memory), 1
    with monkeypatch.context() as patched:
        patched.setattr(memory, "create", failing(memory, SILENT))
        with pytest.raises(EnvironmentProblem):
            here.publish(table)
    (failed,) = set(folders(table)) - {first}  # the metastore may do it yet
    for clock.minutes in (121, 122, 180):
        here.publish(table)
        assert first in folders(table)
    assert failed in folders(table)
    clock.minutes = 182
    here.publish(table)
    assert not {first, failed} & set(folders(table))


def test_switched_off_it_leaves_its_rows_to_those_who_read_them(
    tmp_path: Path, memory: Memory, session: LocalSession, clock: Clock
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    here.publish(table)
    clock.minutes = 30
    here.publish(table)
    last, clock.minutes = named(memory), 100
    here.publish(HudiTable.open(table.path))
    assert folders(table) == [last]
    clock.minutes = 101
    here.publish(table)
    assert folders(table) == [last, named(memory)]
    clock.minutes = 162
    here.publish(table)
    assert last not in folders(table)


@pytest.mark.parametrize("error", [REFUSED, Conflict("Somebody else has just made this entry.")])
def test_a_publication_that_is_always_refused_leaves_nothing(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    monkeypatch.setattr(memory, "create", failing(memory, error))
    for _ in range(3):
        with pytest.raises(type(error)):
            here.publish(table)
    assert rows(table) == []


def test_what_was_done_all_the_same_keeps_its_rows(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a listener of the metastore's fails after the entry is there."""
    table = two_partitions(tmp_path, session)
    monkeypatch.setattr(memory, "create", failing(memory, REFUSED, done=True))
    with pytest.raises(Refused):
        place(memory, table).publish(table)
    assert folders(table) == [named(memory)]


def test_what_nobody_answered_to_is_deleted_by_a_later_publication(
    tmp_path: Path, memory: Memory, session: LocalSession, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    monkeypatch.setattr(memory, "create", failing(memory, SILENT))
    for hours in range(5):
        clock.minutes = hours * 61
        with pytest.raises(EnvironmentProblem):
            here.publish(table)
    assert len(rows(table)) == 2
    assert len({folder.parent for folder in rows(table)}) == 1


def test_a_publication_that_ends_before_readers_are_sent_leaves_nothing(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    table = two_partitions(tmp_path, session)
    memory.dies_at = "t_ro"
    with pytest.raises(KeyboardInterrupt):
        place(memory, table).publish(table)
    assert rows(table) == []


def test_what_cannot_be_deleted_fails_no_publication(
    tmp_path: Path, memory: Memory, session: LocalSession, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = two_partitions(tmp_path, session)
    here = place(memory, table)
    for clock.minutes in (0, 1):
        here.publish(table)

    def fails(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(LocalStorage, "delete_tree", fails)
    clock.minutes = 100
    here.publish(table)
    assert len(rows(table)) == 3
    monkeypatch.setattr(LocalStorage, "list_directories", fails)
    partition_folders.Folders(LocalStorage(table.path), PARTITION_TABLES, "").delete_left()


# -- by a Spark session


@pytest.mark.parametrize("fails", ["ALTER TABLE `default`.`t_ro`", "CREATE TABLE `default`.`t_freshness`"])
def test_by_spark_a_publication_that_fails_leaves_nothing(
    tmp_path: Path, spark: Spark, session: LocalSession, fails: str
) -> None:
    table = two_partitions(tmp_path, session)
    spark.fails = fails
    for _ in range(3):
        with pytest.raises(RuntimeError):
            spark.publish(table)
    assert rows(table) == []


def test_by_spark_a_table_that_is_half_moved_keeps_both_folders(
    tmp_path: Path, spark: Spark, session: LocalSession
) -> None:
    table = two_partitions(tmp_path, session)
    spark.publish(table)
    spark.fails = "ALTER TABLE `default`.`t_freshness` SET TBLPROPERTIES"
    with pytest.raises(RuntimeError):
        spark.publish(table)
    assert len(rows(table)) == 2
    assert {folder.as_posix() for folder in rows(table)} > {spark.tables["t_freshness"]["place"].removeprefix("file:")}
