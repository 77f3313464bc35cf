"""Markers of other engines' writes: nothing of a live, a completed or an archived write is taken for left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.markers import TEMP
from hudi_assets.engine.transaction.recover import forget_old_markers
from tests.races.player import SCHEMA, create
from tests.tables.local_session import LocalSession

ROW = {"id": "a", "ts": 1, "v": 1}


@pytest.fixture
def table(tmp_path: Path, session: LocalSession) -> HudiTable:
    table = create(tmp_path / "t")
    table.upsert(session, session.rows([ROW], SCHEMA))
    return table


def marked(table: HudiTable, instant: str) -> Path:
    """A data file of an instant, with a direct marker."""
    name = f"00000000-0000-0000-0000-000000000000-0_0-1-1_{instant}.parquet"
    marker = Path(table.path, TEMP, instant, f"{name}.marker.CREATE")
    marker.parent.mkdir(parents=True)
    marker.touch()
    file = Path(table.path, name)
    file.touch()
    return file


def forget(table: HudiTable) -> tuple[str, ...]:
    return forget_old_markers(table._table)


def test_a_write_that_begins_meanwhile_keeps_its_files(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = table._table.publisher.new_instant(table.state().timeline)
    listed = LocalStorage.list_directories
    begun: list[Path] = []

    def begin_and_list(storage: LocalStorage, directory: str) -> list[str]:
        if not begun:  # whoever has read the timeline before does not know the write
            Path(table.path, ".hoodie", f"{instant}.deltacommit.requested").touch()
            begun.append(marked(table, instant))
        return listed(storage, directory)

    monkeypatch.setattr(LocalStorage, "list_directories", begin_and_list)
    assert forget(table) == ()
    (file,) = begun
    assert file.exists()
    assert Path(table.path, TEMP, instant).exists()


def test_an_archived_write_keeps_its_files_and_loses_its_markers(table: HudiTable) -> None:
    file = marked(table, "20200101000000000")
    assert forget(table)
    assert file.exists()
    assert not Path(table.path, TEMP, "20200101000000000").exists()


def test_files_of_a_write_that_is_gone_from_the_timeline_are_deleted(table: HudiTable) -> None:
    instant = table._table.publisher.new_instant(table.state().timeline)
    file = marked(table, instant)
    assert forget(table)
    assert not file.exists()


def test_only_log_files_of_unfinished_writes_may_vanish(table: HudiTable) -> None:
    """Markers of a write that was archived, or is completed, were left behind: its files are not to be missed."""
    (instant,) = table.state().timeline.completed(Action.DELTA_COMMIT)
    begun = table._table.publisher.new_instant(table.state().timeline)
    for number, one in enumerate(("20200101000000000", instant.timestamp, begun)):
        marker = Path(table.path, TEMP, one, f".f_{one}.log.{number}_0-1-1.marker.APPEND")
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    assert table.state().committed.unfinished == {f".f_{begun}.log.2_0-1-1"}
