"""The picture and the words of the metadata."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from hudi_assets.dagster.report import picture_metadata, planned_operations
from hudi_assets.engine.model import LogBar, Operation
from hudi_assets.engine.model.units import duration
from hudi_assets.reporting.pictures import event_time_picture

_H = 3_600_000
_START = 1_357_000_000_000


def _bars(count: int) -> list[LogBar]:
    return [
        LogBar(f"log{n}", f"origin={'ABC'[n % 3]}", _START + n * _H, _START + (n + 2) * _H, 10, n < count / 2)
        for n in range(count)
    ]


def _colours(png: bytes) -> set[tuple[int, ...]]:
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
    return {tuple(int(c) // 16 for c in pixel) for pixel in np.unique(pixels, axis=0)}


_BLUE, _ORANGE, _RED = (2, 7, 11), (15, 10, 3), (11, 2, 2)


def test_the_picture_has_both_kinds_of_logs_and_the_threshold() -> None:
    assert {_BLUE, _ORANGE, _RED} <= _colours(event_time_picture(_bars(30), _START + 15 * _H, "flights"))


def test_nothing_is_drawn_that_is_not_there() -> None:
    colours = _colours(event_time_picture([bar for bar in _bars(30) if bar.compacted], None, "flights"))
    assert _BLUE in colours
    assert _RED not in colours


@pytest.mark.parametrize("count", [1, 60, 3000])
def test_the_picture_stays_small(count: int) -> None:
    assert len(event_time_picture(_bars(count), _START, "flights")) < 75_000  # base64 adds a third


def test_log_files_without_a_range_are_no_picture() -> None:
    unknown = LogBar("log", "", None, None, 10, False)
    assert "no log files" in picture_metadata([unknown], None, "flights").value
    assert event_time_picture([unknown, *_bars(3)], None, "flights")


def test_tables_hold_at_most_twenty_rows() -> None:
    operations = [Operation("", f"f{n}", "1", None, (), (), {}) for n in range(50)]
    assert len(planned_operations(operations).records) == 20


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 s"),
        (1500, "1.5 s"),
        (_H, "1 h"),
        (26 * _H, "1 d 2 h"),
        (90 * 60_000, "1 h 30 min"),
        (-_H, "-1 h"),
    ],
)
def test_durations(ms: int, words: str) -> None:
    assert duration(ms) == words
