"""What a publisher may change in a metastore: its own entries, and the synced tables of its own table."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hudi_assets.catalog import hive, spark_sql, views
from hudi_assets.catalog import thrift_values as wire
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.publication import PATH, PUBLICATION
from hudi_assets.catalog.publishing import Form, Names, publish
from hudi_assets.catalog.queries import read_optimized_query
from hudi_assets.catalog.same_table import is_same_location
from hudi_assets.engine import Conflict, EnvironmentProblem, Freshness, InvalidInput, Publication

_NAMES = Names("default", "t_ro", "t_rt")
_SYNCED = Names("default", "t_ro", "t_rt", Form.SYNCED)
_SCHEMA = pa.schema([("id", pa.string())])
_WIDER = pa.schema([("id", pa.string()), ("n", pa.int64())])


class _Table:
    """Of a table what a publisher asks it; `meanwhile` happens while it is read."""

    def __init__(self, path: str, schema: pa.Schema = _SCHEMA) -> None:
        self.path, self.schema = path, schema
        self.config, self.storage = SimpleNamespace(publishes_partitions=False), None
        self.meanwhile: Callable[[], None] = lambda: None

    def publication(self) -> Publication:
        self.meanwhile()
        promise = Freshness(1000, None, None, 5, "20240301000000000", None, 9)
        return Publication(self.path, promise, 7, self.schema, (), "d")


class _Metastore:
    """Entries by name, and which of them were dropped. As a server does, it checks the parameter that is expected."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.dropped: list[str] = []

    def entry(self, _: str, name: str) -> Entry | None:
        return self.entries.get(name)

    def alter(self, _: str, name: str, entry: Entry, *, expected: tuple[str, str] | None = None) -> None:
        if expected is not None and self.entries[name].parameters.get(expected[0]) != expected[1]:
            raise Conflict("Somebody else has published meanwhile.")
        self.entries[name] = entry

    def create(self, _: str, name: str, entry: Entry) -> None:
        assert name not in self.entries
        self.entries[name] = entry

    def drop(self, _: str, name: str) -> None:
        self.dropped.append(name)
        self.entries.pop(name, None)

    def set(self, name: str, **parameters: str) -> None:
        old = self.entries[name]
        self.entries[name] = old.replaced({hive.PARAMETERS: wire.texts(old.parameters | parameters)})


@pytest.fixture
def metastore(monkeypatch: pytest.MonkeyPatch) -> _Metastore:
    made = _Metastore()

    @contextmanager
    def connect(_: str, **__: int) -> Iterator[_Metastore]:
        yield made

    monkeypatch.setattr(hive, "connect", connect)
    return made


def _foreign(location: str | None, kind: str = "EXTERNAL_TABLE", **parameters: str) -> Entry:
    storage = {} if location is None else {2: wire.text(location)}
    fields = {
        hive.STORAGE: wire.structure(storage),
        hive.PARAMETERS: wire.texts(parameters),
        hive.KIND: wire.text(kind),
    }
    return Entry(wire.Struct(fields))


def _publish(table: _Table, names: Names = _NAMES) -> dict[str, str]:
    return publish("thrift://nowhere", table, names)  # type: ignore[arg-type]


# -- own views and their source


@pytest.mark.parametrize(
    "theirs",
    [
        _foreign("file:/warehouse/t_rt_source", "MANAGED_TABLE", **{"spark.sql.sources.provider": "parquet"}),
        _foreign("file:/warehouse/t_rt_source", "MANAGED_TABLE"),
        _foreign(None, hive.VIRTUAL_VIEW),
        views.new_source("default", "t_rt_source", "me", _SCHEMA, "/lake/other"),
    ],
)
def test_a_source_of_somebody_else_is_refused_before_anything_is_made(metastore: _Metastore, theirs: Entry) -> None:
    metastore.entries["t_rt_source"] = theirs
    with pytest.raises(InvalidInput, match="Something else has the name"):
        _publish(_Table("/lake/t"))
    assert metastore.entries == {"t_rt_source": theirs}
    assert metastore.dropped == []


def test_what_reads_a_table_is_told_by_its_provider() -> None:
    ours = views.new_source("default", "x", "me", _SCHEMA, "/lake/t")
    assert views.read_by(ours) == "/lake/t"
    theirs = ours.parameters | {"spark.sql.sources.provider": "parquet"}
    assert views.read_by(ours.replaced({hive.PARAMETERS: wire.texts(theirs)})) is None
    assert views.read_by(ours.replaced({hive.KIND: wire.text(hive.VIRTUAL_VIEW)})) is None


def test_our_source_is_altered_in_place(metastore: _Metastore) -> None:
    """There is no moment without it, and what others set of it stays."""
    _publish(_Table("/lake/t"))
    metastore.set("t_rt_source", mine="1")
    _publish(_Table("/lake/t", _WIDER))
    found = metastore.entries["t_rt_source"]
    assert metastore.dropped == []
    assert views.schema_of(found) == views.schema_of(views.new_source("default", "x", "me", _WIDER, "/lake/t"))
    assert (found.parameters["mine"], views.read_by(found)) == ("1", "/lake/t")


class _Spark:
    """A Spark session that has one table, and notes what it is told to do."""

    version = "4.3.0"

    def __init__(self, there: str, kind: str, properties: dict[str, str]) -> None:
        self.catalog, self._there, self.tableType, self._properties = self, f"`default`.`{there}`", kind, properties
        self.told: list[str] = []

    def tableExists(self, name: str) -> bool:  # noqa: N802
        return name == self._there

    def getTable(self, _: str) -> _Spark:  # noqa: N802
        return self

    def properties(self, _: object, __: str, ___: str) -> dict[str, str]:
        return self._properties

    def sql(self, text: str) -> None:
        self.told.append(text)


@pytest.mark.parametrize(
    ("there", "kind", "properties", "read_by", "said"),
    [
        ("t_ro", "VIEW", {}, None, "Something else has this name"),
        ("t_rt", "VIEW", {PATH: "/lake/other"}, None, "This is a view of the table /lake/other"),
        ("t_ro", "MANAGED", {PATH: "/lake/t"}, None, "Something else has this name"),
        ("t_rt_source", "MANAGED", {}, None, "Something else has the name"),
        ("t_rt_source", "MANAGED", {}, "/lake/other", "Something else has the name"),
    ],
)
def test_by_spark_nothing_of_others_is_replaced_or_dropped(
    monkeypatch: pytest.MonkeyPatch, there: str, kind: str, properties: dict[str, str], read_by: str | None, said: str
) -> None:
    spark = _Spark(there, kind, properties)
    monkeypatch.setattr(spark_sql, "properties_by_spark", spark.properties)
    monkeypatch.setattr(spark_sql, "_read_by", lambda *_: read_by)
    with pytest.raises(InvalidInput, match=said):
        spark_sql.publish_by_spark(spark, _Table("/lake/t"), _NAMES)  # type: ignore[arg-type]
    assert spark.told == []
    if read_by is None and PATH not in properties:
        spark_sql.remove_by_spark(spark, _NAMES)  # type: ignore[arg-type]
        assert spark.told == []


def test_of_a_view_whose_files_are_partly_gone_the_docs_say_that_no_error_does() -> None:
    """One path with alternatives: Hadoop passes over those that are not there (measured: decision 16)."""
    query = read_optimized_query(_SCHEMA, ["/lake/t/a.parquet", "/lake/t/b.parquet"])
    assert query == "SELECT `id` FROM parquet.`/lake/t/{a.parquet,b.parquet}`"
    docs = Path(__file__).parents[2] / "docs"
    for page in ("how-to/catalog.md", "decisions/0016-views-never-name-gone-files.md"):
        assert "**without an error**" in (docs / page).read_text("utf-8")


def test_a_view_is_the_tables_own_by_whatever_path_it_was_published(metastore: _Metastore, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    _publish(_Table(str(tmp_path / "t")))
    said = _publish(_Table(str(tmp_path / "link")))
    assert metastore.entries["t_ro"].parameters.items() >= said.items()


# -- synced tables


def test_the_synced_tables_of_another_table_are_refused(metastore: _Metastore) -> None:
    for theirs in (_foreign("file:/lake/other"), _foreign("s3://lake/t"), _foreign(None, **{PATH: "/lake/other"})):
        metastore.entries = {"t_ro": _foreign("file:/lake/t"), "t_rt": theirs}
        with pytest.raises(InvalidInput, match="not the one at /lake/t"):
            _publish(_Table("/lake/t"), _SYNCED)
        assert PATH not in metastore.entries["t_ro"].parameters


def test_a_place_may_be_written_in_several_ways(tmp_path: Path) -> None:
    table = tmp_path / "a b:%20"
    table.mkdir()
    (tmp_path / "link").symlink_to(table)
    for said in (f"file:{table}", f"file://{table}", f"{table}/", f"file:{tmp_path}/link"):
        assert is_same_location(said, str(table))
    for said in (f"hdfs:{table}", f"{table}2", str(tmp_path / "a b:")):
        assert not is_same_location(said, str(table))


def test_a_hive_sync_while_the_table_is_read_is_not_undone(metastore: _Metastore) -> None:
    metastore.entries = {"t_ro": _foreign("file:/lake/t", last_commit_time_sync="1")}
    table = _Table("/lake/t")
    table.meanwhile = lambda: metastore.set("t_ro", last_commit_time_sync="2")
    said = _publish(table, _SYNCED)
    assert metastore.entries["t_ro"].parameters == {"last_commit_time_sync": "2"} | said


def test_of_two_publishers_into_a_synced_table_the_older_reading_begins_anew(metastore: _Metastore) -> None:
    metastore.entries = {"t_ro": _foreign("file:/lake/t")}
    table = _Table("/lake/t")
    times = []

    def once() -> None:
        times.append(1)
        if len(times) == 1:
            metastore.set("t_ro", **{PUBLICATION: "another"})

    table.meanwhile = once
    _publish(table, _SYNCED)
    assert len(times) == 2


# -- several servers


@contextmanager
def _server(answers: bool) -> Iterator[str]:
    """One that accepts connections; and says that there is no such table, or nothing."""
    listening = socket.create_server(("127.0.0.1", 0))
    open_ones = []

    def serve() -> None:
        with suppress(OSError):
            open_ones.append(listening.accept()[0])
            if answers:
                _say_no_such_table(open_ones[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"thrift://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        for one in (listening, *open_ones):
            one.close()


def _say_no_such_table(taken: socket.socket) -> None:
    plain = TSocket()
    plain.setHandle(taken)
    protocol = TBinaryProtocol(TBufferedTransport(plain))
    name, _, number = protocol.readMessageBegin()
    wire._read_struct(protocol)
    protocol.writeMessageBegin(name, TMessageType.REPLY, number)
    wire._write_struct(protocol, wire.Struct({2: wire.structure({1: wire.text("no such table")})}))
    protocol.trans.flush()


def test_a_server_that_hangs_is_left_for_the_next() -> None:
    with (
        _server(False) as hangs,
        _server(True) as answers,
        hive.connect(f"{hangs}, {answers}", timeout_ms=300) as opened,
    ):
        assert opened.entry("default", "t_ro") is None
    with (
        _server(False) as hangs,
        hive.connect(hangs, timeout_ms=300) as opened,
        pytest.raises(EnvironmentProblem, match="does not answer"),
    ):
        opened.entry("default", "t_ro")


def test_a_change_is_never_sent_to_two_servers() -> None:
    """The first may have done it, and not said so."""
    with (
        _server(False) as hangs,
        _server(True) as answers,
        hive.connect(f"{hangs},{answers}", timeout_ms=300) as opened,
        pytest.raises(EnvironmentProblem, match="does not answer"),
    ):
        opened.drop("default", "t_ro")


@pytest.mark.parametrize("uri", ["thrift://h:90833", "thrift://h:abc", "thrift://[h", "thrift://", "http://h", " , "])
def test_what_is_no_address_is_said(uri: str) -> None:
    with pytest.raises(InvalidInput, match=r"is no Hive metastore|No metastore is named"), hive.connect(uri):
        pass
