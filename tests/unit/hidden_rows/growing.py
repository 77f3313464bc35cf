"""A table whose inserts grow its small base file, and what another engine does to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hudi_assets.engine.model import Action
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from tests.unit.test_past_instants import Table, moved

FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}


class GrowingTable(Table):
    """A table whose inserts grow its small base file."""

    @property
    def timeline(self) -> Path:
        return self.path / self.open().state().layout.timeline_folder

    def base_of(self, instant: str) -> Path:
        return self.only(f"*_{instant}.parquet")

    def completed(self, instant: str) -> Path:
        """Its completed file on the timeline."""
        state = self.open().state()
        return self.timeline / next(i.file_name for i in state.timeline.instants if i.timestamp == instant)

    def body(self, instant: str) -> CommitMetadata:
        state = self.open().state()
        return state.commit(next(i for i in state.timeline.instants if i.timestamp == instant))

    def writes(self, at: str, action: Action, body: CommitMetadata) -> None:
        """As a write of another engine leaves it on the timeline."""
        state = self.open().state()
        name = f"{at}.{action}" if state.config.table_version == 6 else f"{at}_{moved(at, 2)}.{action}"
        state.storage.replace(f"{state.layout.timeline_folder}/{name}", state.layout.encode_commit(body))

    def begun_at(self, instant: str, at: str) -> str:
        """A write as if its writer's clock had shown another time: its base file and its files on the timeline."""
        body = self.body(instant)
        stats = tuple(stat._replace(path=stat.path.replace(instant, at)) for stat in body.stats)
        timeline = self.timeline
        self.completed(instant).unlink()
        for path in (*self.path.glob(f"*{instant}*"), *timeline.glob(f"{instant}*")):
            path.rename(path.with_name(path.name.replace(instant, at)))
        self.writes(at, Action.DELTA_COMMIT, replace(body, stats=stats))
        return at

    @contextmanager
    def without(self, *instants: str) -> Iterator[None]:
        """A look from before these writes: their files are not there meanwhile."""
        away = self.path.with_name("away")
        away.mkdir()
        there = {path: away / path.name for i in instants for path in (*self.timeline.glob(f"{i}*"), self.base_of(i))}
        for path, put in there.items():
            path.rename(put)
        yield
        for path, put in there.items():
            put.rename(path)
        away.rmdir()

    def vanishes(self, instant: str) -> None:
        """It is rolled back by another engine."""
        for path in (*self.timeline.glob(f"{instant}*"), self.base_of(instant)):
            path.unlink()
