"""Many small tables in one code location: what a round of looks asks of the machine and of the instance, and loading.

    scripts/with-env python benchmarks/many_tables.py --tables 1000 --folder DIR

Makes one table by the engine in this process, copies its files, and lets Dagster evaluate the sensor of one block on an
instance in a folder (SQLite), as the daemon would, but in this process. In each round every table asks for a run, which
nobody starts: the dearest answer. With `--quiet` nothing is due. In the first round all is reported; later it is known.
Rounds by `--look-seconds`, as in the block. With `--published` each table stands in a metastore. `asked` is how often a
round speaks to it, and `sql` the statements of the looks, without those of what is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa

from hudi_assets.catalog.metastore import Metastore

_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("amount", pa.float64())])


def resident_mb() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def make_tables(folder: Path, count: int, commits: int, *, quiet: bool = False) -> None:
    """One table with some commits of the last hour, or of a day to come, and copies of it."""
    from hudi_assets.engine import HudiTable
    from tests.tables.local_session import LocalSession, install

    first = folder / "t0"
    install(setattr)
    session: Any = LocalSession()
    table = HudiTable.create(str(first), _SCHEMA, record_key=["id"], ordering_field="at", buckets=2, table_version=9)
    start = int(time.time()) + (86_400 if quiet else -3600)
    for commit in range(commits):
        rows = [{"id": n, "at": datetime.fromtimestamp(start + 60 * commit + n, UTC), "amount": 1.0} for n in range(20)]
        table.upsert(session, session.rows(rows, _SCHEMA))
    for number in range(1, count):
        shutil.copytree(first, folder / f"t{number}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--look-seconds", type=float, default=40)
    parser.add_argument("--quiet", action="store_true", help="nothing is due")
    parser.add_argument("--published", action="store_true", help="each table is published")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="many-tables-"))
    os.environ["HUDI_ASSETS_HOME"] = str(folder / "home")
    try:
        make_tables(folder, asked.tables, asked.commits, quiet=asked.quiet)
        if asked.published:
            publish_tables(folder, asked.tables)
        measure(folder, asked.tables, asked.rounds, asked.look_seconds)
    finally:
        if asked.published:
            Metastore(folder / "home").stop()
        shutil.rmtree(folder)


def publish_tables(folder: Path, count: int) -> None:
    from hudi_assets.engine import HudiTable
    from hudi_assets.resources import Catalog

    for number in range(count):
        place = Catalog(home=True).place(ro=f"t{number}_ro", rt=f"t{number}_rt")
        assert place is not None
        place.publish(HudiTable.open(str(folder / f"t{number}")))


def count_questions() -> list[int]:
    """How often this process speaks to a metastore, from now on."""
    from hudi_assets.catalog import hive

    calls: Any = vars(hive)
    count, real = [0], calls["call"]

    def counted(*given: Any) -> Any:
        count[0] += 1
        return real(*given)

    calls["call"] = counted
    return count


def measure(folder: Path, count: int, rounds: int, look_seconds: float) -> None:
    from dagster import DagsterInstance, build_sensor_context
    from dagster.components import build_defs_for_component

    from hudi_assets.components import HudiTablesComponent

    statements, questions = count_statements(), count_questions()
    before, started, cpu = resident_mb(), time.monotonic(), time.process_time()
    block = HudiTablesComponent(
        name="many",
        defaults={"external": True, "data_latency": "5m", "compact_every": "30m", "freshness_slo": "2h"},
        tables=[{"name": f"t{number}", "path": str(folder / f"t{number}")} for number in range(count)],
        sensor={"look_seconds": look_seconds},  # type: ignore[arg-type]
    )
    definitions = build_defs_for_component(block)
    definitions.get_repository_def().load_all_definitions()
    show("load", seconds=time.monotonic() - started, cpu=time.process_time() - cpu, mb=resident_mb() - before)
    (sensor,) = definitions.sensors or []
    instance_folder = folder / "instance"
    instance_folder.mkdir()
    with DagsterInstance.local_temp(str(instance_folder)) as instance:
        cursor = None
        for number in range(rounds):
            ticks, requests, events, began, cpu = 0, 0, 0, time.monotonic(), time.process_time()
            longest = looks = 0.0
            sql, asked = 0, questions[0]
            while True:
                tick = time.monotonic()
                catalog = {"hudi_catalog": (definitions.resources or {})["hudi_catalog"]}
                context = build_sensor_context(
                    instance=instance, definitions=definitions, cursor=cursor, resources=catalog
                )
                before_sql, used = statements[0], time.process_time()
                found = sensor.evaluate_tick(context)
                longest = max(longest, time.monotonic() - tick)
                sql, looks = sql + statements[0] - before_sql, looks + time.process_time() - used
                cursor = found.cursor
                ticks, requests = ticks + 1, requests + len(found.run_requests or [])
                for event in found.asset_events:
                    instance.report_runless_asset_event(event)
                    events += 1
                if json.loads(cursor or "[null]")[0] is None:
                    break
            show(
                f"round {number + 1}",
                ticks=ticks,
                seconds=time.monotonic() - began,
                cpu=time.process_time() - cpu,
                cpu_of_looks=looks,
                sql=sql,
                asked=questions[0] - asked,
                longest_tick=longest,
                requests=requests,
                events=events,
                cursor_bytes=len(cursor or ""),
                mb=resident_mb(),
            )


def count_statements() -> list[int]:
    """How many SQL statements this process has made, from now on."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    count = [0]

    def note(*_: Any) -> None:
        count[0] += 1

    event.listen(Engine, "before_cursor_execute", note)
    return count


def show(what: str, **numbers: float) -> None:
    print(what, json.dumps({name: round(value, 2) for name, value in numbers.items()}), flush=True)


if __name__ == "__main__":
    main()
