"""What people write for an instant, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hudi_assets.engine import InvalidInput
from hudi_assets.engine.queries.moments import EARLIEST, parse_begin, parse_instant

_CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("20260102030405678", "20260102030405678"),
        (" 20260102030405678 ", "20260102030405678"),
        ("20260102030405", "20260102030405"),  # as text: before every instant of that second, as in Hudi
        ("2026-01-02 03:04:05.678", "20260102030405678"),
        ("2026-01-02T03:04:05.678999", "20260102030405678"),
        ("2026-01-02T03:04:05.000", "20260102030405000"),
        ("2026-01-02 03:04:05", "20260102030405999"),  # the whole second, as in Hudi
        ("2026-01-02T03:04:05Z", "20260102030405999"),
        ("2026-01-02T03:04:05+01:00", "20260102020405999"),
        ("2026-01-02T03:04:05.678-01:00", "20260102040405678"),
        ("2026-01-02T03:04", "20260102030400000"),
        ("2026-01-02", "20260102000000000"),
        (datetime(2026, 1, 2, 3, 4, 5, 678_999, UTC), "20260102030405678"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=_CET), "20260102020405000"),
        ("0900-01-02T03:04:05", "09000102030405999"),
    ],
)
def test_forms(given: str | datetime, instant: str) -> None:
    assert parse_instant(given, "UTC") == instant


def test_a_datetime_is_put_into_the_timeline_s_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert parse_instant("2026-01-02T03:04:05Z", "LOCAL") == "20260102120405999"
        assert parse_instant("2026-01-02T03:04:05", "LOCAL") == "20260102030405999"
        assert parse_instant("2026-01-02T03:04:05Z", "UTC") == "20260102030405999"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "given",
    [
        "",
        "now",
        "2026",
        "202601020304",
        "2026010203040567",
        "20261301000000000",
        "20260102030405678x",
        "earliest",
        "000",
    ],
)
def test_garbage_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="is not a point in time"):
        parse_instant(given, "UTC")


def test_what_is_neither_text_nor_an_aware_datetime_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        parse_instant(datetime(2026, 1, 2), "UTC")  # noqa: DTZ001
    with pytest.raises(InvalidInput, match="is not a point in time"):
        parse_instant(20260102030405678, "UTC")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["0", "000", "00000000000000", "earliest", "EARLIEST "])
def test_the_earliest_begin(given: str) -> None:
    assert parse_begin(given, "UTC") == EARLIEST
    assert EARLIEST < "00010101000000000"


def test_a_begin_is_an_instant_otherwise() -> None:
    assert parse_begin("2026-01-02T03:04:05.678Z", "UTC") == "20260102030405678"
    with pytest.raises(InvalidInput, match="The begin 'yesterday'"):
        parse_begin("yesterday", "UTC")
