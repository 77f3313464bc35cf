"""A tick that takes longer than Dagster waits for is lost, with its events and its cursor: the next one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance, SensorResult

from hudi_assets.dagster import round as rounds
from tests.dagster.test_many_tables import Ticks, home, instance

__all__ = ["home", "instance"]


class Daemon:
    """Ticks by a clock that stands but for looks, which take so many seconds; those of over a minute are lost."""

    def __init__(self, ticks: Ticks, monkeypatch: pytest.MonkeyPatch, took: dict[str, float]) -> None:
        self.ticks, self.now, self.looked = ticks, 0.0, []  # type: ignore[var-annotated]
        self.seen: set[str] = set()
        monkeypatch.setattr(rounds, "_memories", {})
        monkeypatch.setattr("time.monotonic", lambda: self.now)

        def slowly(context: Any, table: Any) -> SensorResult:
            self.now += took.get(table.name, 1)
            self.looked.append(table.name)
            return SensorResult(cursor=table.name)

        monkeypatch.setattr(rounds, "evaluate_table", slowly)

    def tick(self) -> list[str]:
        cursor, began, self.looked = self.ticks.cursor, self.now, []
        self.ticks.tick()
        if self.now - began > 60:
            self.ticks.cursor = cursor
        else:
            self.seen |= set(self.looked)
        return list(self.looked)


def test_a_table_that_takes_too_long_keeps_no_other_from_being_seen(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 90})
    assert daemon.tick() == ["t0"]
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert daemon.tick() == ["t0"]  # it is tried again
    assert daemon.tick() == ["t1", "t2", "t3"]


def test_what_takes_too_long_together_is_looked_at_in_two_ticks(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {"t0": 39, "t1": 25})
    assert daemon.tick() == ["t0", "t1"]
    assert daemon.seen == set()
    assert daemon.tick() == ["t1", "t2", "t3"]
    assert daemon.tick() == ["t0"]
    assert daemon.seen == {"t0", "t1", "t2", "t3"}


def test_a_tick_in_time_that_leaves_its_cursor_as_it_was_is_not_lost(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(Ticks(home, instance), monkeypatch, {})
    for _ in range(3):
        assert daemon.tick() == ["t0", "t1", "t2", "t3"]


def test_looks_that_last_longer_than_dagster_waits_are_refused(home: Path, instance: DagsterInstance) -> None:
    with pytest.raises(ValueError, match=r"less than the 60 s after which Dagster gives a tick up"):
        Ticks(home, instance, sensor={"look_seconds": 60})
