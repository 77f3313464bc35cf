"""What is published follows the table: at a look, before a clean, after a rollback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hudi_assets import cli
from hudi_assets.catalog import hive
from hudi_assets.catalog.follow import after_change, before_clean, follow
from hudi_assets.catalog.places import Place, found_together, notes_of
from hudi_assets.catalog.publishing import Names
from hudi_assets.engine import Conflict, HudiTable
from tests.catalog.conftest import Served
from tests.catalog.tables import HOUR, compacted, make_table, row, write
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def place(served: Served, name: str) -> Place:
    return Place(served.uri, Names("default", f"{name}_ro", f"{name}_rt"))


def said(served: Served, name: str) -> dict[str, str]:
    with hive.connect(served.uri) as metastore:
        entry = metastore.entry("default", name)
    assert entry is not None
    return entry.parameters | {"text": entry.text or ""}


def test_a_look_publishes_what_has_changed_and_nothing_else(
    tmp_path: Path, served: Served, session: LocalSession
) -> None:
    table = make_table(tmp_path / "followed", clock="commit")
    here = place(served, "followed")
    assert follow(table.look(), table, here).why == "the table is not published there yet"
    compacted(table, session, 1)
    here.publish(table)
    assert follow(table.look(), table, here).properties is None
    compacted(table, session, 2)  # by somebody else
    found = follow(table.look(), table, here)
    assert found.stands
    assert found.why == "the read-optimized view names other files or columns than the table has"
    assert found.properties is not None
    assert said(served, "followed_ro")["hudi_assets.instant"] == table.freshness().instant
    write(table, session, row("late", 1), clock=3 * HOUR)
    fallen = follow(table.look(), table, here)
    assert fallen.why is not None
    assert "is published" in fallen.why
    assert said(served, "followed_rt")["hudi_assets.freshness_ms"] == "0"
    assert follow(table.look(), table, here).properties is None


def test_a_quiet_tables_freshness_moves_on(tmp_path: Path, served: Served, session: LocalSession) -> None:
    table = make_table(tmp_path / "quiet")
    here = place(served, "quiet")
    compacted(table, session, 1)
    here.publish(table)
    assert follow(table.look(), table, here, step_ms=HOUR).properties is None
    found = follow(table.look(), table, here)
    assert found.properties is not None
    assert said(served, "quiet_ro")["hudi_assets.freshness"] == found.properties["hudi_assets.freshness"]


def test_another_tables_view_and_a_dead_metastore_are_left_alone(
    tmp_path: Path, served: Served, session: LocalSession
) -> None:
    here = place(served, "one")
    here.publish(make_table(tmp_path / "one"))
    other = make_table(tmp_path / "other")
    assert not follow(other.look(), other, here).stands
    dead = Place("thrift://127.0.0.1:1", here.names)
    found = follow(other.look(), other, dead)
    assert not found.stands
    assert found.why is not None
    assert "does not answer" in found.why


def test_a_clean_makes_the_view_true_first(
    tmp_path: Path, served: Served, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path / "cleaned")
    compacted(table, session, 1)
    place(served, "cleaned").publish(table)
    (named,) = table.read_optimized_files()
    for hour in (2, 3):
        compacted(table, session, hour)
    assert named in said(served, "cleaned_ro")["text"]
    monkeypatch.setattr(sys, "argv", ["hudi-assets", "clean", table.path, "--retained", "1"])
    true_clean = HudiTable.clean

    def clean(self: HudiTable, **options: object) -> object:
        assert named not in said(served, "cleaned_ro")["text"]
        assert Path(named).exists()
        return true_clean(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(HudiTable, "clean", clean)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)
    assert not Path(named).exists()


def test_a_clean_waits_for_a_catalog_that_does_not_answer(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = make_table(tmp_path / "unasked")
    for hour in (1, 2, 3):
        compacted(table, session, hour)
    notes = tmp_path / "unasked/.hoodie/.aux/hudi_assets/published"
    notes.mkdir(parents=True)
    names = {"database": "default", "ro": "u_ro", "rt": "u_rt", "form": "views"}
    (notes / "x.json").write_text(json.dumps({"metastore": "thrift://127.0.0.1:1", "names": names}))
    with pytest.raises(Conflict, match=r"u_ro may name files"):
        before_clean(table)
    for options, code in (((), 1), (("--unasked",), 0)):
        monkeypatch.setattr(sys, "argv", ["hudi-assets", "clean", table.path, "--retained", "1", *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == code
    assert "--unasked" in capsys.readouterr().err


def test_a_rollback_takes_its_files_out_of_the_view(tmp_path: Path, served: Served, session: LocalSession) -> None:
    table = make_table(tmp_path / "undone")
    compacted(table, session, 1)
    (kept,) = table.read_optimized_files()
    compacted(table, session, 2)
    here = place(served, "undone")
    here.publish(table)
    assert [note.place for note in notes_of(table)] == [here]
    instant = table.freshness().instant
    assert instant is not None
    table.rollback(instant)
    assert kept not in said(served, "undone_ro")["text"]
    assert after_change(table) == []
    assert kept in said(served, "undone_ro")["text"]


def test_a_view_that_was_dropped_is_forgotten(tmp_path: Path, served: Served, session: LocalSession) -> None:
    table = make_table(tmp_path / "dropped")
    here = place(served, "dropped")
    here.publish(table)
    with hive.connect(served.uri) as metastore:
        metastore.drop("default", "dropped_ro")
    before_clean(table)
    assert list(notes_of(table)) == []


# -- many tables at once ------------------------------------------------------------------------------


def test_many_places_are_asked_for_at_once(tmp_path: Path, served: Served) -> None:
    names = ["Together1", "together2"]
    for name in names:
        place(served, name).publish(make_table(tmp_path / name, clock="commit"))
    places = [place(served, name) for name in (*names, "nowhere")]
    places.append(Place(served.uri, Names("no_such_database", "a", "b")))
    found = found_together(places)
    assert found == {one: one.found() for one in places}
    assert [one is not None for one in found.values()] == [True, True, False, False]


def test_a_metastore_that_knows_no_question_of_many_is_asked_one_by_one(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(served, "alone").publish(make_table(tmp_path / "alone", clock="commit"))
    monkeypatch.setattr(hive, "_QUESTION_OF_MANY", "get_nothing_req")
    places = [place(served, name) for name in ("alone", "nowhere")]
    assert found_together(places) == {one: one.found() for one in places}
