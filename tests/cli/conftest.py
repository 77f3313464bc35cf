"""A small table and the command line against it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets import cli
from hudi_assets.engine import HudiTable
from tests.tables.local_session import LocalSession, install

DONE, FAILED, WRONG_USE, NOTHING_TO_DO = 0, 1, 2, 3
START = datetime(2024, 5, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("amount", pa.float64()), ("note", pa.string())])
# Event times that split the table's log files in two: the first commit lies below, the second above.
SPLIT = "2024-05-01T06:00:00Z"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)


def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """What runs a command in this process: for those that start no Spark."""

    def call(*args: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["hudi-assets", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Answer(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    return run_here(monkeypatch, capsys)


def run_process(*args: object, env: Mapping[str, str] | None = None, **options: Any) -> Answer:
    """Runs a command as its own process, as a user does."""
    command = [sys.executable, "-m", "hudi_assets.cli", *map(str, args)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(env or {})}, check=False, **options
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def commit(session: LocalSession, table: HudiTable, hour: int, ids: range) -> str:
    """One delta commit of a row per id, with event times in the hour after START; its instant."""
    first = int((START + timedelta(hours=hour)).timestamp() * 1000)
    rows = [{"id": f"k{i}", "ts": first + i * 1000, "amount": float(i), "note": f'say "{i}", {hour}'} for i in ids]
    instant = table.upsert(session, session.rows(rows, SCHEMA)).instant
    assert instant is not None
    return instant


def make_table(path: Path) -> HudiTable:
    return HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", event_time_unit="ms", buckets=2, data_latency="2h"
    )


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two delta commits: k0-k19 at hour 0, then k10-k29 at hour 12. Nothing is compacted."""
    path = tmp_path_factory.mktemp("tables") / "payments"
    with pytest.MonkeyPatch.context() as patch:
        session = install(patch.setattr)
        table = make_table(path)
        commit(session, table, 0, range(20))
        commit(session, table, 12, range(10, 30))
    return path


@pytest.fixture
def table(made_once: Path, tmp_path: Path) -> Path:
    """A copy of that table, to be changed freely."""
    return Path(shutil.copytree(made_once, tmp_path / "payments", symlinks=True))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path: equal before and after means that nothing was changed."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def set_property(table: Path, key: str, value: str | None) -> None:
    """Edits hoodie.properties as another tool would; None removes the key."""
    path = table / ".hoodie" / "hoodie.properties"
    lines = [line for line in path.read_text("latin-1").splitlines() if not line.startswith(f"{key}=")]
    path.write_text("\n".join([*lines, *([] if value is None else [f"{key}={value}"])]) + "\n", "latin-1")
