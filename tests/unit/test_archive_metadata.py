"""The metadata table's own timeline leaves for its archive too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_assets.engine.actions.archiving.metadata_table import archive_metadata_table
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import Action
from hudi_assets.engine.storage import LocalStorage, Storage
from hudi_assets.engine.table.metadata.own_timeline import ROOT, OwnTimeline
from tests.crash.faulty import Crash, DyingStorage
from tests.tables.life import Life
from tests.tables.local_session import LocalSession
from tests.tables.metadata import in_metadata_table, on_disk, switch_on
from tests.unit.test_housekeeping_v2 import FEW

METADATA = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.metadata.keep.min.commits": "2",
    "hoodie.metadata.keep.max.commits": "4",
}


@pytest.fixture(params=[6, 9])
def life(request: pytest.FixtureRequest, tmp_path: Path, session: LocalSession) -> Life:
    life = Life(tmp_path / "t", session, request.param, **FEW, **METADATA)
    switch_on(life.table)
    return life


def own(life: Life) -> OwnTimeline:
    return OwnTimeline.read(LocalStorage(str(life.path)), life.table.state().layout)


def archived(life: Life) -> int:
    folders = (life.path / ROOT / ".hoodie" / name for name in ("archived", "timeline/history"))
    return sum(1 for folder in folders for _ in folder.glob("*archive*" if folder.name == "archived" else "*.parquet"))


@pytest.mark.slow
def test_it_stays_small_and_right(life: Life) -> None:
    for _ in range(8):
        life.turns(2)
        life.table.clean(retained=1)
        before = life.snapshot()
        life.table.archive()
        assert life.snapshot() == before
        assert in_metadata_table(life.table) == on_disk(life.table)
        assert life.table.validate() == ()
    assert archived(life) >= 1
    assert len({file.timestamp for file in own(life).files}) < 25


@pytest.mark.slow
def test_a_crash(life: Life, tmp_path: Path) -> None:
    life.turns(8)
    life.table.clean(retained=1)
    layout, before = life.table.state().layout, life.snapshot()
    start = life.table.state().timeline.instants[-1].timestamp
    crashes = 0
    for step in range(1, 200, 4):
        copy = Life.__new__(Life)
        copy.path, copy.session, copy.number, copy.hours = tmp_path / f"c{step}", life.session, life.number, 0
        shutil.copytree(life.path, copy.path)
        dying: Storage = DyingStorage(str(copy.path), step)
        fine = LocalStorage(str(copy.path))
        try:
            gone = archive_metadata_table(dying, layout, METADATA, data_start=start, timezone="UTC")
            assert len(gone) > 2
            break
        except Crash:
            crashes += 1
        assert copy.snapshot() == before
        assert in_metadata_table(copy.table) == on_disk(copy.table), step
        archive_metadata_table(fine, layout, METADATA, data_start=start, timezone="UTC")
        assert not list(own(copy).unfinished), step
        assert archived(copy) == 1, step
        assert in_metadata_table(copy.table) == on_disk(copy.table), step
    assert crashes > 2


@pytest.mark.slow
def test_what_holds_it(life: Life) -> None:
    life.turns(8)
    layout, storage = life.table.state().layout, LocalStorage(str(life.path))
    first = own(life).completed(Action.DELTA_COMMIT)[0].timestamp
    for start in (None, first):
        assert archive_metadata_table(storage, layout, METADATA, data_start=start, timezone="UTC") == ()
    many = METADATA | {"hoodie.metadata.keep.max.commits": "1000"}
    last = life.table.state().timeline.instants[-1].timestamp
    assert archive_metadata_table(storage, layout, many, data_start=last, timezone="UTC") == ()
    with pytest.raises(InvalidInput, match="keep"):
        archive_metadata_table(
            storage, layout, {"hoodie.metadata.keep.min.commits": "some"}, data_start=last, timezone="UTC"
        )
    compaction = own(life).last_compaction
    assert compaction is not None
    gone = archive_metadata_table(storage, layout, METADATA, data_start=last, timezone="UTC")
    assert gone
    assert max(gone) < compaction.timestamp
