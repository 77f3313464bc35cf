"""A table with two partitions, and where it is published in a metastore in memory."""

from __future__ import annotations

from pathlib import Path

from hudi_assets.catalog import hive
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.catalog.thrift_values import Struct, structure, text, texts
from hudi_assets.engine import PUBLISH_PARTITIONS, HudiTable
from tests.catalog.in_memory import Memory
from tests.catalog.tables import HOUR, make_table, row, write
from tests.tables.local_session import LocalSession

AT = "thrift://somewhere:9083"


def two_partitions(path: Path, session: LocalSession) -> HudiTable:
    """`x` waits for a compaction, `y` has none to wait for. The clock is its commits'."""
    table = make_table(path / "t", clock="commit")
    write(table, session, row("a", HOUR), row("b", HOUR, "y"), clock=2 * HOUR)
    table.compact(session)
    write(table, session, row("c", 3 * HOUR), clock=5 * HOUR)
    return HudiTable.open(table.path, settings={PUBLISH_PARTITIONS: "true"})


def place(memory: Memory, table: HudiTable, form: Form = Form.VIEWS) -> Place:
    """Where Hive sync made a table of it, if that is the form."""
    if form is Form.SYNCED:
        fields = {
            hive.STORAGE: structure({2: text(f"file:{table.path}")}),
            hive.PARAMETERS: texts({}),
            hive.KIND: text("EXTERNAL_TABLE"),
        }
        memory.standing[AT, "default", "t_ro"] = Entry(Struct(fields))
    return Place(AT, Names("default", "t_ro", "t_rt", form))


def entry_of(memory: Memory) -> Entry | None:
    """The table with the freshness of its partitions."""
    return memory.standing.get((AT, "default", "t_freshness"))
