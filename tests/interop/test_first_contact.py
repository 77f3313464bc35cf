"""Tables that Apache Hudi 1.2.0 wrote with its defaults, met by the command line for the first time.

What has to be typed is the event-time column and the data latency; of `init` nothing but the path. The event times are
timestamps or days, which say by their type how they count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.cli import commands
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key
from tests.cli.conftest import DONE, NOTHING_TO_DO, WRONG_USE, Answer, contents, run_here, run_process
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

STAMP = pa.timestamp("us", tz="UTC")
COLUMN = ("--event-time-field", "at")
KNOWN = (*COLUMN, "--data-latency", "2h")


@dataclass(frozen=True)
class Column:
    """An event-time column. `options`: what a writer states beyond key, partition and name."""

    name: str
    type: pa.DataType
    value: Callable[[datetime], Any]
    options: tuple[tuple[str, str], ...] = ()


ORDERED_BY = "hoodie.datasource.write.precombine.field"
COLUMNS = (
    Column("micros", STAMP, lambda at: at, ((ORDERED_BY, "at"),)),
    Column(
        "millis",
        STAMP,
        lambda at: at.replace(microsecond=1000),
        ((ORDERED_BY, "at"), ("hoodie.parquet.outputtimestamptype", "TIMESTAMP_MILLIS")),
    ),
    Column("day", pa.date32(), lambda at: at.date(), ((ORDERED_BY, "n"),)),
)


def write(hudi: Hudi, path: Path, column: Column) -> None:
    """An insert of twenty rows, and three updates of eight: event times from four hours ago to one."""
    options = {
        "hoodie.table.name": column.name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.write.table.version": "9",
        "hoodie.write.auto.upgrade": "true",
        **dict(column.options),
    }
    schema = pa.schema([("id", pa.string()), ("at", column.type), ("n", pa.int64()), ("p", pa.string())])
    for number in range(4):
        at = column.value(datetime.now(UTC) - timedelta(hours=4 - number))
        rows = [{"id": f"k{i}", "at": at, "n": number, "p": "ab"[i % 2]} for i in range(8 if number else 20)]
        hudi.write(path, pa.Table.from_pylist(rows, schema), options)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    return run_here(monkeypatch, capsys)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_table_of_hudis_defaults(
    column: Column,
    path: Path,
    hudi_1_2: Hudi,
    session: LocalSession,
    run: Callable[..., Answer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(hudi_1_2, path, column)
    before, files = by_key(hudi_1_2.read(path)), all_but_ours(path)
    _looks_say_what_to_type(run, path)
    known = run("freshness", path, *COLUMN, "--data-latency", "auto", "--json")
    assert known.json["freshness"] is not None
    assert run("plan", path, "--dry-run", *KNOWN).code == DONE
    assert run("init", path, "--out", path.parent / "defs").code == DONE
    assert "event_time_field: at" in (path.parent / "defs" / "t" / "defs.yaml").read_text()
    assert all_but_ours(path) == files
    if column.name == "micros":  # with a Spark of its own
        done = run_process("compact", path, *KNOWN)
    else:
        monkeypatch.setattr(commands, "start_spark", lambda *_: session)
        done = run("compact", path, *KNOWN)
    assert done.code == DONE, done
    assert run("validate", path).code == DONE
    told = run("status", path, *COLUMN, "--json").json
    assert told["freshness"] is not None
    assert told["last_compaction"] is not None
    assert by_key(hudi_1_2.read(path)) == before
    assert run("compact", path, *KNOWN).code == NOTHING_TO_DO
    shown = by_key(hudi_1_2.read(path, "read_optimized"))
    assert {row["n"] for row in shown.values()} > {0}


def all_but_ours(path: Path) -> dict[str, bytes]:
    """Every file but what we keep for ourselves, which no reader of Hudi's looks at."""
    return {name: content for name, content in contents(path).items() if not name.startswith(".hoodie/.aux")}


def _looks_say_what_to_type(run: Callable[..., Answer], path: Path) -> None:
    """Without the column each says how to name it, and which it often is; without the latency, how to state it."""
    for command in (("status",), ("freshness",), ("plan", "--dry-run"), ("compact", "--threshold", "2024-05-01")):
        answer = run(command[0], path, *command[1:], "--json")
        assert answer.code == WRONG_USE, command
        assert "--event-time-field" in answer.error["hint"]
        assert "the ordering field" in answer.error["hint"]
    for command in (("plan",), ("compact",)):
        answer = run(*command, path, *COLUMN, "--json")
        assert answer.code == NOTHING_TO_DO, command
        assert "--data-latency" in answer.json["nothing_to_do"]
    assert run("status", path, *COLUMN).code == DONE
    assert run("validate", path).code == DONE
