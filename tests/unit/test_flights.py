"""The flight stream: what it says about known flights, and that it is the same every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pytest

from hudi_assets.demo.flights import DELIVERY_SCHEMA, KEY_FIELDS, UPDATE_SCHEMA, Batch, FlightStream
from hudi_assets.demo.flights.source import flights

HOUR_MS = 3_600_000
TWO_WEEKS = FlightStream(14)
ALL = FlightStream(368)


def utc(text: str) -> datetime:
    return datetime.strptime(f"2013-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def everything(stream: FlightStream) -> pl.DataFrame:
    frame = pl.from_arrow(stream.delivered(stream.end_ms))
    assert isinstance(frame, pl.DataFrame)
    return frame


def test_every_flight_of_the_source_is_there_once() -> None:
    assert flights().height == 336_776
    assert not flights().select(KEY_FIELDS).is_duplicated().any()
    # 8,255 flights never left, 458 more never landed anywhere: counted in flights.csv.
    assert dict(everything(ALL).group_by("status").len().iter_rows()) == {
        "scheduled": 336_776,
        "cancelled": 8_255,
        "departed": 336_776 - 8_255,
        "arrived": 336_776 - 8_255 - 458,
    }


# Scheduled departure, departure, arrival in UTC, worked out by hand from the local times in flights.csv.
KNOWN = [
    ("2013-01-01", "UA", 1545, "EWR", "01-01 10:15", "01-01 10:17", "01-01 14:30"),  # 08:30 in Houston
    ("2013-01-01", "B6", 1109, "JFK", "01-02 02:55", "01-02 03:09", "01-02 05:00"),  # arr_time is 2400
    ("2013-01-09", "HA", 51, "JFK", "01-09 14:00", "01-10 11:41", "01-10 22:42"),  # 1301 minutes late
    ("2013-07-04", "HA", 51, "JFK", "07-04 14:00", "07-04 13:50", "07-04 23:59"),  # Honolulu, summer
    ("2013-10-30", "B6", 839, "JFK", "10-31 03:59", "10-31 04:00", "10-31 07:27"),  # dep_time is 2400
    # Clocks went forward on 2013-03-10 at 07:00 UTC in New York: one flight before, one across, one after.
    ("2013-03-09", "B6", 727, "JFK", "03-10 04:59", "03-10 05:53", "03-10 09:04"),
    ("2013-03-09", "B6", 35, "JFK", "03-10 02:45", "03-10 04:06", "03-10 07:03"),
    ("2013-03-10", "UA", 1236, "EWR", "03-10 10:19", "03-10 10:15", "03-10 15:51"),  # Phoenix does not change
    # And back on 2013-11-03; in Los Angeles 01:14 came twice that night, VX 413 landed in the first.
    ("2013-11-02", "VX", 413, "JFK", "11-02 20:55", "11-03 02:17", "11-03 08:14"),
    ("2013-11-03", "UA", 322, "EWR", "11-03 10:20", "11-03 10:19", "11-03 13:51"),
]


@pytest.mark.parametrize(("day", "carrier", "flight", "origin", "scheduled", "departed", "arrived"), KNOWN)
def test_local_times_become_the_right_instants(
    day: str, carrier: str, flight: int, origin: str, scheduled: str, departed: str, arrived: str
) -> None:
    key = {"flight_date": day, "carrier": carrier, "flight": flight, "origin": origin}
    updates = everything(ALL).filter(**key).sort("event_time").to_dicts()
    assert [row["status"] for row in updates] == ["scheduled", "departed", "arrived"]
    assert [row["sched_dep"] for row in updates] == [utc(scheduled)] * 3
    assert [row["dep_time"] for row in updates] == [None, utc(departed), utc(departed)]
    assert [row["arr_time"] for row in updates] == [None, None, utc(arrived)]
    assert [row["event_time"] for row in updates[1:]] == [utc(departed), utc(arrived)]


def test_values_are_known_only_from_their_update_on() -> None:
    rows = everything(ALL)
    for status, empty in {
        "scheduled": ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"),
        "cancelled": ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"),
        "departed": ("arr_time", "arr_delay", "air_time"),
    }.items():
        some = rows.filter(status=status)
        assert [some[name].null_count() for name in empty] == [some.height] * len(empty)
    arrived = rows.filter(status="arrived")
    assert arrived["dep_delay"].null_count() == arrived["arr_time"].null_count() == 0
    assert arrived["air_time"].null_count() == 717  # diverted, landed elsewhere first
    always = [*KEY_FIELDS, "dest", "status", "sched_dep", "distance", "event_time", "delivered_at"]
    assert rows.select(always).null_count().row(0) == (0,) * len(always)


def test_events_of_a_flight_follow_each_other() -> None:
    ordered = everything(ALL).sort(*KEY_FIELDS, "event_time")
    steps = ordered.group_by(KEY_FIELDS, maintain_order=True).agg("status", gap=pl.col("event_time").diff().min())
    assert steps.filter(pl.col("gap") <= pl.duration()).height == 0
    assert {tuple(statuses) for statuses in steps["status"].unique()} == {
        ("scheduled", "departed", "arrived"),
        ("scheduled", "departed"),
        ("scheduled", "cancelled"),
    }


def test_times_that_the_source_does_not_tell_stay_within_their_rule() -> None:
    rows = everything(ALL).with_columns(shift=(pl.col("event_time") - pl.col("sched_dep")).dt.total_minutes())
    scheduled = rows.filter(status="scheduled")["shift"]
    cancelled = rows.filter(status="cancelled")["shift"]
    assert (scheduled.min(), scheduled.max()) == (-539, -180)
    assert (cancelled.min(), cancelled.max()) == (-60, 59)


def latency_hours(stream: FlightStream) -> npt.NDArray[np.float64]:
    rows = everything(stream)
    return (rows["delivered_at"] - rows["event_time"]).dt.total_milliseconds().to_numpy() / HOUR_MS


def test_latencies() -> None:
    hours = latency_hours(ALL)
    assert 0 <= hours.min() < 0.001
    assert 47 < hours.max() <= 48
    assert np.mean(hours < 0.5) == pytest.approx(0.9, abs=0.003)
    # Nothing at exactly two hours: a data latency of 2 h holds for everything but the late ones.
    assert not (hours == 2).any()
    late = hours[hours > 2]
    assert late.size / hours.size == pytest.approx(0.001, abs=0.0001)
    assert late.min() < 2.5
    assert np.mean(late) == pytest.approx(25, abs=1.5)


def test_two_weeks_have_late_updates() -> None:
    hours = latency_hours(TWO_WEEKS)
    assert (hours > 2).sum() == 39
    assert (hours <= 48).all()


def test_two_weeks_in_batches_of_three_hours() -> None:
    batches = TWO_WEEKS.batches
    assert len(batches) == 112
    start = round(utc("01-01 00:00").timestamp() * 1000)
    assert batches[1] == Batch(1, "2013-01-01T03:00:00Z", start + 3 * HOUR_MS, start + 6 * HOUR_MS)
    sizes = [TWO_WEEKS.rows(batch).num_rows for batch in batches]
    assert min(sizes) > 0
    assert sum(sizes) == TWO_WEEKS.delivered(TWO_WEEKS.end_ms).num_rows == 36_024
    # Several updates of one flight meet in one batch: upsert must combine them.
    keys = [TWO_WEEKS.rows(batch).select(KEY_FIELDS) for batch in batches]
    assert sum(table.group_by(KEY_FIELDS).aggregate([]).num_rows < table.num_rows for table in keys) > 50


@pytest.mark.parametrize(
    "stream",
    [
        TWO_WEEKS,
        FlightStream(3, batch_hours=0.35),
        FlightStream(3, date(2013, 11, 2), 7),
        FlightStream(368, batch_hours=24),
    ],
    ids=str,
)
def test_batches_partition_the_deliveries(stream: FlightStream) -> None:
    batches = stream.batches
    assert [batch.index for batch in batches] == list(range(len(batches)))
    assert (batches[0].start_ms, batches[-1].end_ms) == (stream.start_ms, stream.end_ms)
    assert [b.start_ms for b in batches[1:]] == [b.end_ms for b in batches[:-1]]
    delivered = stream.delivered(stream.end_ms)
    assert pa.concat_tables([stream.rows(b) for b in batches]).equals(delivered.drop_columns("delivered_at"))
    for batch in (batches[0], batches[len(batches) // 2], batches[-1]):
        before = 0 if batch.index == 0 else stream.delivered(batch.start_ms).num_rows
        window = stream.delivered(batch.end_ms).slice(before)
        assert window.drop_columns("delivered_at").equals(stream.rows(batch))
        times = window["delivered_at"].cast(pa.int64()).to_numpy() // 1000
        assert ((times >= batch.start_ms) & (times < batch.end_ms)).all()


def test_the_second_that_a_window_ends_belongs_to_the_next_one() -> None:
    times = everything(TWO_WEEKS)["delivered_at"].dt.epoch("ms")
    moment = int(times[1000])
    assert TWO_WEEKS.delivered(moment).num_rows == (times < moment).sum() <= 1000
    assert TWO_WEEKS.delivered(moment + 1).num_rows > 1000


def test_a_longer_stream_begins_with_the_shorter_one() -> None:
    short = FlightStream(5, date(2013, 3, 8))
    long = FlightStream(9, date(2013, 3, 8))
    assert long.batches[: len(short.batches)] == short.batches
    assert all(long.rows(batch).equals(short.rows(batch)) for batch in short.batches)
    assert long.delivered(short.end_ms).equals(short.delivered(2**60))
    assert everything(short)["flight_date"].min() == "2013-03-08"


def test_announced_the_day_before() -> None:
    """US 1632 of 2013-07-27 is the one flight that is announced before midnight UTC of its own date."""
    key = pl.col("flight") == 1632, pl.col("carrier") == "US", pl.col("flight_date") == "2013-07-27"
    day_before, same_day = FlightStream(1, date(2013, 7, 26)), FlightStream(1, date(2013, 7, 27))
    assert everything(day_before).filter(*key)["status"].to_list() == ["scheduled"]
    first = pl.DataFrame(pl.from_arrow(same_day.rows(same_day.batches[0])))
    assert first.filter(*key)["status"].to_list() == ["scheduled"]


def test_schema() -> None:
    assert TWO_WEEKS.schema is UPDATE_SCHEMA
    assert TWO_WEEKS.rows(TWO_WEEKS.batches[40]).schema.equals(UPDATE_SCHEMA)
    assert TWO_WEEKS.delivered(0).schema.equals(DELIVERY_SCHEMA)
    assert TWO_WEEKS.delivered(0).num_rows == 0
    assert UPDATE_SCHEMA.field("event_time").type == pa.timestamp("us", tz="UTC")


def test_batch_by_id() -> None:
    assert TWO_WEEKS.batch("2013-01-02T21:00:00Z") == TWO_WEEKS.batches[15]
    with pytest.raises(KeyError, match="2013-01-02T22:00:00Z"):
        TWO_WEEKS.batch("2013-01-02T22:00:00Z")
    with pytest.raises(ValueError, match="is no batch of"):
        TWO_WEEKS.rows(FlightStream(14, batch_hours=6).batches[3])


@pytest.mark.parametrize(
    ("days", "start", "hours", "message"),
    [
        (0, date(2013, 1, 1), 3, "days must be 1 to 368"),
        (369, date(2013, 1, 1), 3, "days must be 1 to 368"),
        (10, date(2013, 12, 30), 3, "days must be 1 to 5"),
        (1, date(2014, 1, 1), 3, "start 2014-01-01"),
        (1, date(2013, 1, 1), -3, "whole seconds"),
        (1, date(2013, 1, 1), 0, "whole seconds"),
        (1, date(2013, 1, 1), 0.0001, "whole seconds"),
        (1, date(2013, 1, 1), float("nan"), "whole seconds"),
        (1, date(2013, 1, 1), float("inf"), "whole seconds"),
    ],
)
def test_wrong_settings(days: int, start: date, hours: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FlightStream(days, start, hours)


def _digest() -> str:
    table = FlightStream(2).delivered(2**60)
    return hashlib.sha256(str(table.to_pylist()).encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_same_in_every_process(hash_seed: str) -> None:
    path = [os.path.dirname(__file__), *sys.path]
    program = f"import sys; sys.path[:0] = {path!r}; import test_flights; print(test_flights._digest())"
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == _digest()


def test_no_engine_no_dagster_no_spark() -> None:
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; import hudi_assets.demo.flights; "
        "print([name for name in ('dagster', 'pyspark', 'hudi_assets.engine') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
