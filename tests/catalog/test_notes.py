"""What a table notes of where it is published: by it a clean or a rollback publishes as the owner does, or not at all.

The metastore is one in memory; the tables are real.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hudi_assets import cli
from hudi_assets.catalog import metastore as metastore_module
from hudi_assets.catalog.follow import after_change, before_clean, follow
from hudi_assets.catalog.places import Place, notes_of
from hudi_assets.catalog.publishing import Names
from hudi_assets.engine import (
    DATA_LATENCY,
    EVENT_TIME_FIELD,
    PUBLISHED_NOTES,
    Conflict,
    EnvironmentProblem,
    HudiTable,
    open_storage,
)
from hudi_assets.engine.table.settings.config import read_config
from tests.catalog.in_memory import Memory, memory
from tests.catalog.tables import compacted, make_table
from tests.stores.memory import MemoryStorage
from tests.tables.local_session import LocalSession

__all__ = ["memory"]
URI = "thrift://metastore.lake:9083"
OWNERS = {EVENT_TIME_FIELD: "at", DATA_LATENCY: "6h"}


def place(name: str = "t", metastore: str = URI) -> Place:
    return Place(metastore, Names("default", f"{name}_ro", f"{name}_rt"))


def notes(table: HudiTable) -> list[Path]:
    return sorted(Path(table.path, ".hoodie/.aux/hudi_assets/published").glob("*.json"))


def external(path: Path, session: LocalSession, *, stated: dict[str, str] | None = None) -> HudiTable:
    """A table whose properties say nothing of event times but what is `stated`; read by its owner's settings."""
    table = compacted(make_table(path, clock="commit"), session, 9)
    properties = path / ".hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(tuple(OWNERS))]
    properties.write_text("\n".join([*kept, *(f"{k}={v}" for k, v in (stated or {}).items())]) + "\n")
    return HudiTable.open(table.path, settings=OWNERS)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hudi-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


# -- the owner's settings ---------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [{}, {EVENT_TIME_FIELD: "at", DATA_LATENCY: "1h"}], ids=["nothing", "another"])
def test_a_clean_publishes_by_the_owners_settings(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch, stated: dict[str, str]
) -> None:
    table = external(tmp_path / "t", session, stated=stated)
    place().publish(table)
    (named,) = table.read_optimized_files()
    compacted(table, session, 10, 11)
    assert command(monkeypatch, "clean", table.path, "--retained", "1") == 0
    assert not Path(named).exists()
    assert Path(named).name not in memory.said("t_ro")["text"]
    assert memory.said("t_ro")["hudi_assets.freshness_ms"] == str(table.freshness().freshness)


def test_a_clean_asks_for_no_event_times_where_the_files_are_true(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    """Also with a note of an earlier day, which has no settings."""
    table = external(tmp_path / "t", session)
    place().publish(table)
    for file in notes(table):
        said = json.loads(file.read_text())
        file.write_text(json.dumps({"metastore": said["metastore"], "names": said["names"]}))
    before = memory.said("t_ro")
    before_clean(HudiTable.open(table.path))
    assert memory.said("t_ro") == before
    compacted(table, session, 10)
    place().publish(table)
    assert json.loads(notes(table)[0].read_text())["settings"] == OWNERS


@pytest.mark.parametrize("stated", [{}, {EVENT_TIME_FIELD: "at", DATA_LATENCY: "1h"}], ids=["nothing", "another"])
def test_a_rollback_publishes_by_the_owners_settings(
    tmp_path: Path,
    memory: Memory,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stated: dict[str, str],
) -> None:
    table = compacted(external(tmp_path / "t", session, stated=stated), session, 10)
    place().publish(table)
    instant = table.freshness().instant
    assert instant is not None
    assert command(monkeypatch, "rollback", table.path, instant) == 0
    assert capsys.readouterr().err == ""
    assert memory.said("t_ro")["hudi_assets.instant"] == table.freshness().instant != instant
    assert memory.said("t_ro")["hudi_assets.freshness_ms"] == str(table.freshness().freshness)


def test_what_cannot_be_published_after_a_rollback_is_said_and_no_failure(
    tmp_path: Path,
    memory: Memory,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = compacted(external(tmp_path / "t", session), session, 10)
    place().publish(table)
    for file in notes(table):
        file.write_text(json.dumps({**json.loads(file.read_text()), "settings": {"hudi_assets.data.latency": "soon"}}))
    instant = table.freshness().instant
    assert instant is not None
    assert command(monkeypatch, "rollback", table.path, instant) == 0
    assert "default.t_ro is not published anew" in capsys.readouterr().err
    compacted(table, session, 11)
    with pytest.raises(Conflict, match=r"cannot be published anew.*--unasked"):
        before_clean(HudiTable.open(table.path))


@pytest.mark.parametrize("arguments", [("publish",), ("compact", "--publish")])
def test_the_latency_of_the_command_is_that_of_the_promise(
    arguments: tuple[str, ...],
    tmp_path: Path,
    memory: Memory,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = compacted(make_table(tmp_path / "t", clock="commit"), session, 9)
    name, *more = arguments
    options = ("--data-latency", "6h", "--metastore", URI)
    assert command(monkeypatch, name, table.path, *more, *options) in (0, 3)
    promised = table.freshness(data_latency="6h").freshness
    assert promised != table.freshness().freshness
    assert memory.said("t_ro")["hudi_assets.freshness_ms"] == str(promised)
    compacted(table, session, 10)
    before_clean(HudiTable.open(table.path))
    promised = table.freshness(data_latency="6h").freshness
    assert memory.said("t_ro")["hudi_assets.freshness_ms"] == str(promised)


# -- what is forgotten, and what is not -------------------------------------------------------------


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home directories' metastores without a server: each is there once it was asked for."""

    def acquire(self: metastore_module.Metastore, pid: int) -> str:
        self.database.mkdir(parents=True, exist_ok=True)
        return f"thrift://home{self.home}:1"

    monkeypatch.setattr(metastore_module.Metastore, "acquire", acquire)
    return tmp_path


def test_the_note_of_another_machines_home_stays(homes: Path, memory: Memory, session: LocalSession) -> None:
    table = compacted(make_table(homes / "t"), session, 1)
    here = place(metastore=f"home:{homes / 'home'}")
    here.publish(table)
    (noted,) = notes(table)
    (homes / "home").rename(homes / "elsewhere")  # as on a machine that has not got it
    with pytest.raises(Conflict, match="--unasked") as refused:
        before_clean(table)
    assert str(noted) in str(refused.value)
    assert after_change(table) != []
    other = compacted(make_table(homes / "other"), session, 1)
    place("other", here.metastore).publish(other)  # now there is one by the same words
    with pytest.raises(Conflict, match="--unasked"):
        before_clean(table)
    assert notes(table) == [noted]
    (homes / "home").rename(homes / "third")
    (homes / "elsewhere").rename(homes / "home")
    before_clean(table)
    assert notes(table) == [noted]


def test_an_address_of_another_machines_own_is_not_asked_here(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted(make_table(tmp_path / "t"), session, 1)
    place(metastore="thrift://localhost:9083").publish(table)
    (noted,) = notes(table)
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    memory.standing.clear()
    with pytest.raises(Conflict, match="--unasked"):
        before_clean(table)
    assert noted.exists()


def test_another_spelling_of_the_path_is_the_same_table(tmp_path: Path, memory: Memory, session: LocalSession) -> None:
    table = compacted(make_table(tmp_path / "t"), session, 1)
    place().publish(table)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    linked = HudiTable.open(str(tmp_path / "link"))
    compacted(table, session, 2)
    before_clean(linked)
    assert len(notes(table)) == 1
    assert memory.said("t_ro")["hudi_assets.path"] == table.path
    assert memory.said("t_ro")["hudi_assets.view_digest"] == table.publication().view_digest
    compacted(table, session, 3)
    assert follow(linked.look(), linked, place()).properties is not None


def test_a_table_that_is_not_here_may_be_this_one(tmp_path: Path, memory: Memory, session: LocalSession) -> None:
    """As where it is mounted elsewhere. Another table that is here is certainly another."""
    table = compacted(make_table(tmp_path / "t"), session, 1)
    place().publish(table)
    moved = tmp_path / "moved"
    (tmp_path / "t").rename(moved)
    table = HudiTable.open(str(moved))
    with pytest.raises(Conflict, match="may be this table"):
        before_clean(table)
    assert len(notes(table)) == 1
    make_table(tmp_path / "t")
    before_clean(table)
    assert notes(table) == []


def test_a_publisher_that_dies_leaves_a_note(tmp_path: Path, memory: Memory, session: LocalSession) -> None:
    table = compacted(make_table(tmp_path / "t"), session, 1)
    memory.dies_at = "t_rt_source"
    with pytest.raises(KeyboardInterrupt):
        place().publish(table)
    assert "t_ro" in {name for _, _, name in memory.standing}
    assert len(notes(table)) == 1


def test_where_nobody_answers_nothing_is_noted(tmp_path: Path, memory: Memory) -> None:
    table = make_table(tmp_path / "t")
    memory.silent.add(URI)
    with pytest.raises(EnvironmentProblem):
        place().publish(table)
    assert notes(table) == []


def test_a_snapshot_view_that_was_left_behind_is_published(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    """A publisher died between the two views, or somebody dropped the second."""
    table = compacted(make_table(tmp_path / "t", clock="commit"), session, 1)
    place().publish(table)
    compacted(table, session, 2)
    memory.dies_at = "t_rt"
    with pytest.raises(KeyboardInterrupt):
        place().publish(table)
    memory.dies_at = None
    assert follow(table.look(), table, place()).properties is not None
    assert memory.said("t_rt")["hudi_assets.instant"] == table.freshness().instant
    memory.drop("default", "t_rt")
    assert follow(table.look(), table, place()).properties is not None
    asked = memory.questions
    assert follow(table.look(), table, place()).properties is None
    assert memory.questions == asked + 2


def test_a_table_that_may_not_be_written_is_published_all_the_same(
    tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path / "t")

    def refuse(self: object, path: str, data: bytes) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(type(open_storage(table.path)), "replace", refuse)
    place().publish(table)
    assert "hudi_assets.path" in memory.said("t_ro")


# -- tables in a bucket -----------------------------------------------------------------------------


def test_notes_are_read_by_what_the_table_was_opened_with(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    """A bucket's credentials may be its caller's alone."""
    table = compacted(external(tmp_path / "t", session), session, 10)
    place().publish(table)
    bucket = MemoryStorage()
    properties = ".hoodie/hoodie.properties"
    bucket.create(properties, table.storage.read(properties))
    for file in table.storage.list_files(PUBLISHED_NOTES):
        bucket.create(file.path, table.storage.read(file.path))
    (note,) = notes_of(HudiTable(bucket, read_config(bucket)))
    assert note.place == place()


def test_a_table_is_published_anew_by_what_it_was_opened_with(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = compacted(external(tmp_path / "t", session), session, 10)
    place().publish(table)
    compacted(table, session, 11)

    def by_path(*_: object, **__: object) -> None:
        raise AssertionError("opened by its path")

    monkeypatch.setattr(HudiTable, "open", by_path)
    assert after_change(HudiTable(table.storage, read_config(table.storage))) == []
    assert memory.said("t_ro")["hudi_assets.freshness_ms"] == str(table.freshness().freshness)
