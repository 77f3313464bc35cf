"""Read a Hudi table with Apache Hudi itself, or with hudi-rs: a second opinion on what our engine reads.

    .venv/bin/python scripts/hudi_read.py TABLE [--with 0.15.0|1.2.0|hudi-rs]
        [--query snapshot|read_optimized] [--out FILE.parquet|FILE.json] [--compare]

Without --out it prints the number of rows. --compare reads the table with our engine as well and exits 1
when any row differs, naming the first ones. Apache Hudi needs `scripts/interop-setup` to have been run.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_client import RELEASES, Hudi, HudiError, InteropMissing
from hudi_rows import by_key, differences, read_with_hudi_rs

HUDI_RS = "hudi-rs"


def read_with(reader: str, table: str, query: str) -> pa.Table:
    """All rows of a query by Apache Hudi of that release, or by hudi-rs."""
    if reader == HUDI_RS:
        return read_with_hudi_rs(table, query)
    with Hudi(reader) as hudi:
        return hudi.read(table, query)


def write_out(rows: pa.Table, out: Path) -> None:
    if out.suffix == ".parquet":
        pq.write_table(rows, out)
    elif out.suffix == ".json":
        out.write_text(json.dumps(rows.to_pylist(), default=as_json, ensure_ascii=False, indent=1) + "\n")
    else:
        raise SystemExit(f"{out}: give a name that ends in .parquet or .json")


def as_json(value: Any) -> Any:
    """What JSON has no type for: bytes as Base64, decimals and times as text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(type(value).__name__)


def compare(theirs: pa.Table, table: str, query: str) -> int:
    """1 when any row is not the same in both (the first few are printed), else 0."""
    ours = read_with_engine(table, query)
    differing = differences(by_key(ours), by_key(theirs))
    for line in differing:
        print(line)
    verdict = "not the same" if differing else "the same, row by row"
    print(f"{len(ours)} rows by the engine, {len(theirs)} by the other: {verdict}")
    return 1 if differing else 0


def read_with_engine(table: str, query: str) -> pa.Table:
    from pyspark.sql import SparkSession

    from hudi_assets.engine import HudiTable

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    try:
        opened = HudiTable.open(table)
        read: Callable[..., Any] = opened.snapshot if query == "snapshot" else opened.read_optimized
        rows: pa.Table = read(spark).toArrow()
        return rows
    finally:
        spark.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", help="path of the table")
    parser.add_argument("--with", dest="reader", choices=[*RELEASES, HUDI_RS], default=RELEASES[0])
    parser.add_argument("--query", choices=["snapshot", "read_optimized"], default="snapshot")
    parser.add_argument("--out", type=Path, help="write the rows there (.parquet or .json)")
    parser.add_argument("--compare", action="store_true", help="compare with our engine's rows, exit 1 if they differ")
    arguments = parser.parse_args()
    table = str(Path(arguments.table).resolve())
    try:
        rows = read_with(arguments.reader, table, arguments.query)
    except (HudiError, InteropMissing) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.out:
        write_out(rows, arguments.out)
    if arguments.compare:
        return compare(rows, table, arguments.query)
    print(f"{arguments.reader}: {rows.num_rows} rows in the {arguments.query} view")
    return 0


if __name__ == "__main__":
    sys.exit(main())
