"""`HudiTable.clean` asks no catalog: the table's own notes say whether a published view may name what it would delete.

The metastore is one in memory; the tables are real.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.catalog import places
from hudi_assets.catalog.follow import after_change, before_clean, follow, publish_and_clean
from hudi_assets.catalog.hive import Entry
from hudi_assets.catalog.places import Note, Place, forget, notes_of
from hudi_assets.catalog.publication import VIEW_DIGEST
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.dagster.housekeeping import _keep_house
from hudi_assets.engine import NOTED_DIGESTS, Conflict, HudiTable, OutdatedView
from hudi_assets.engine.storage import LocalStorage
from tests.catalog.in_memory import Memory, memory
from tests.catalog.tables import compacted, make_table
from tests.catalog.test_notes import URI, command, notes, place
from tests.tables.local_session import LocalSession

__all__ = ["memory"]


@pytest.fixture
def table(tmp_path: Path, memory: Memory, session: LocalSession) -> HudiTable:
    """Published, and compacted since."""
    made = compacted(make_table(tmp_path / "t", clock="commit"), session, 9)
    place().publish(made)
    return compacted(made, session, 10, 11)


def noted(table: HudiTable) -> Any:
    (file,) = notes(table)
    return json.loads(file.read_text())[NOTED_DIGESTS]


def refused(table: HudiTable) -> str:
    with pytest.raises(Conflict, match="may name files that a clean would delete") as said:
        table.clean(retained=1)
    return str(said.value)


def test_a_clean_that_a_view_is_in_the_way_of_says_which(table: HudiTable) -> None:
    (named,) = notes(table)
    said = refused(table)
    assert f"default.t_ro in {URI}" in said
    assert str(named) in said
    assert not table.clean(retained=1, dry_run=True).instant  # type: ignore[union-attr]
    assert table.clean(retained=1, unasked=True).instant  # type: ignore[union-attr]


def test_after_a_publication_it_cleans(table: HudiTable) -> None:
    place().publish(table)
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_a_table_that_stands_nowhere_is_cleaned(table: HudiTable) -> None:
    for note in notes(table):
        note.unlink()
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_readers_of_synced_tables_list_the_folders_themselves(table: HudiTable) -> None:
    (file,) = notes(table)
    said = json.loads(file.read_text())
    names = Names("default", "t_ro", "t_rt", Form.SYNCED)
    file.write_text(json.dumps({**said, "names": {**said["names"], "form": str(names.form)}}))
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_a_publisher_that_dies_after_the_view_leaves_both_digests(table: HudiTable, memory: Memory) -> None:
    memory.dies_at = "t_rt"
    with pytest.raises(KeyboardInterrupt):
        place().publish(table)
    assert len(json.loads(notes(table)[0].read_text())[NOTED_DIGESTS]) == 2
    refused(table)
    memory.dies_at = None
    before_clean(table)  # the read-optimized view is true already
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_a_first_publisher_that_dies_leaves_nobody_knowing(
    tmp_path: Path, memory: Memory, session: LocalSession
) -> None:
    table = compacted(make_table(tmp_path / "t", clock="commit"), session, 9)
    memory.dies_at = "t_rt"
    with pytest.raises(KeyboardInterrupt):
        place().publish(table)
    compacted(table, session, 10, 11)
    refused(table)


def test_a_note_of_an_earlier_day_says_nothing_until_somebody_asks(table: HudiTable) -> None:
    place().publish(table)
    (file,) = notes(table)
    said = json.loads(file.read_text())
    file.write_text(json.dumps({key: value for key, value in said.items() if key != NOTED_DIGESTS}))
    refused(table)
    before_clean(table)
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_what_was_noted_stays_where_the_settings_change(table: HudiTable) -> None:
    place().publish(table)
    other = HudiTable.open(table.path, settings={"hudi_assets.data.latency": "3h"})
    before = json.loads(notes(table)[0].read_text())[NOTED_DIGESTS]
    Place(URI, Names("default", "t_ro", "t_rt")).publish(other)
    said = json.loads(notes(table)[0].read_text())
    assert (said["settings"], said[NOTED_DIGESTS]) == ({"hudi_assets.data.latency": "3h"}, before)


def test_what_goes_wrong_while_a_note_is_compared_is_no_lack_of_a_note(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_: object) -> str:
        raise ValueError("wrong")

    monkeypatch.setattr("hudi_assets.engine.table.files.published.view_digest", wrong)
    with pytest.raises(ValueError, match="wrong"):
        table.clean(retained=1)


def test_a_note_that_is_deleted_while_notes_are_read_is_none(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = notes(table)
    place().publish(table)
    (file.parent / "gone.json").write_text("{}")
    read = LocalStorage.read

    def gone(self: LocalStorage, path: str) -> bytes:
        if path.endswith("gone.json"):
            raise FileNotFoundError(path)
        return read(self, path)

    monkeypatch.setattr(LocalStorage, "read", gone)
    assert [Path(note.path(table)) for note in notes_of(table)] == [file]
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_a_clean_beside_a_first_publication_leaves_its_note(
    tmp_path: Path, memory: Memory, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds no view yet, and forgets the place; the publisher notes it again."""
    table = compacted(make_table(tmp_path / "t", clock="commit"), session, 9)
    create = Memory.create

    def beside(self: Memory, database: str, name: str, entry: Entry) -> None:
        if name == "t_ro" and not memory.standing:
            before_clean(table)
            assert notes(table) == []
        create(self, database, name, entry)

    monkeypatch.setattr(Memory, "create", beside)
    place().publish(table)
    assert noted(table) == [table.view_digest()]
    compacted(table, session, 10, 11)
    refused(table)


@pytest.mark.parametrize("by", [before_clean, after_change])
def test_a_first_publication_that_comes_while_the_place_is_forgotten_is_noted(
    tmp_path: Path,
    memory: Memory,
    session: LocalSession,
    monkeypatch: pytest.MonkeyPatch,
    by: Callable[[HudiTable], object],
) -> None:
    table = compacted(make_table(tmp_path / "t", clock="commit"), session, 9)
    place().publish(table)
    memory.standing.clear()

    def beside(table: HudiTable, note: Note) -> None:
        place().publish(table)
        forget(table, note)

    monkeypatch.setattr("hudi_assets.catalog.follow.forget", beside)
    by(table)
    assert noted(table) == [table.view_digest()]


def test_a_look_at_true_views_mends_the_note(table: HudiTable, memory: Memory) -> None:
    """As after a publisher that died right behind the views, or where an earlier day's note has no digests."""
    before = noted(table)
    place().publish(table)
    (file,) = notes(table)
    for left in ([*before, table.view_digest()], None):
        file.write_text(json.dumps({**json.loads(file.read_text()), NOTED_DIGESTS: left}))
        refused(table)
        assert follow(table.look(), table, place()).properties is None
        assert noted(table) == [table.view_digest()]
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_publishers_that_never_come_to_an_end_do_not_fill_the_note(
    table: HudiTable, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.dies_at = "t_ro"
    for number in range(25):
        monkeypatch.setattr("hudi_assets.engine.hudi_table.reports.view_digest", lambda _, at=number: f"d{at}")
        with pytest.raises(KeyboardInterrupt):
            place().publish(table)
        found = noted(table)
        assert len(found) == number + 2 if number < 19 else found is None
    refused(table)


@pytest.mark.parametrize(("commits", "well"), [(2, True), (3, False)])
def test_a_commit_between_publishing_and_cleaning_puts_no_clean_off(
    table: HudiTable, session: LocalSession, commits: int, well: bool
) -> None:
    """As where the clean waits for the lock of a writer who makes base files. Those of every time put it off."""
    hours = list(range(12, 12 + commits))

    def beside() -> object:
        if hours:
            compacted(table, session, hours.pop(0))
        return table.clean(retained=1)

    if well:
        assert publish_and_clean(table, beside).instant  # type: ignore[attr-defined]
    else:
        with pytest.raises(OutdatedView, match="published anew 3 times, and each time writers made base files"):
            publish_and_clean(table, beside)
    assert hours == []


def outdated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next clean finds a view that a writer's commit has made outdated."""
    real, refusals = HudiTable.clean, [OutdatedView("a writer was quicker")]

    def clean(table: HudiTable, **how: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return real(table, **how)

    monkeypatch.setattr(HudiTable, "clean", clean)


def test_the_command_cleans_again_after_a_writer_was_quicker(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outdated_once(monkeypatch)
    assert command(monkeypatch, "clean", table.path, "--retained", "1") == 0
    assert "deleted by clean" in capsys.readouterr().out


def test_housekeeping_cleans_again_after_a_writer_was_quicker(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    outdated_once(monkeypatch)
    metadata, errors = _keep_house(table, {"clean": True, "archive": False})
    assert not errors
    assert "put off" not in str(metadata.get("clean"))


# -- notes that cannot be written, and those of an earlier day ------------------------------------


def test_a_note_that_cannot_be_written_afterwards_hides_no_publication(
    table: HudiTable, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers were told: it has to be reported."""
    real = places._note

    def note(table: HudiTable, place: Place, address: str | None) -> None:
        if address is None:
            raise OSError(errno.EIO, "Input/output error")
        real(table, place, address)

    monkeypatch.setattr(places, "_note", note)
    published = place().publish(table)
    assert memory.said("t_ro")[VIEW_DIGEST] == published[VIEW_DIGEST]


def earlier_note(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A note as it was before notes named a machine: of a place that means this one alone."""
    monkeypatch.setattr(Place, "machine", "this one")
    (note,) = notes(table)
    said = json.loads(note.read_text())
    del said["machine"], said[NOTED_DIGESTS]
    note.write_text(json.dumps(said))
    return note


def test_who_follows_mends_a_note_of_an_earlier_day(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    place().publish(table)
    earlier_note(table, monkeypatch)
    refused(table)
    assert follow(table.look(), table, place()).stands
    assert table.clean(retained=1).instant  # type: ignore[union-attr]


def test_publishing_anew_forgets_a_note_of_an_earlier_day(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    place().publish(table)
    said = earlier_note(table, monkeypatch)
    kept = said.read_bytes()
    place().publish(table)
    said.write_bytes(kept)  # somebody's who did not know better
    place().publish(table)
    assert not said.exists()
