"""Tables that are not merged here, on the command line: each look answers, and only what merges or writes refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from tests.cli.conftest import DONE, FAILED, NOTHING_TO_DO, Answer, contents
from tests.tables.local_session import LocalSession
from tests.tables.steps import with_properties

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])

WRITERS = ("--writers", "stopped")


@pytest.fixture
def table(session: LocalSession, tmp_path: Path) -> str:
    made = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, table_version=9
    )
    for ts in (3_600_000, 7_200_000):
        made.upsert(session, session.rows([{"id": "a", "ts": ts}], SCHEMA))
    return with_properties(
        made, {"hoodie.table.partial.update.mode": "KEEP_VALUES", "hudi_assets.data.latency": "1h"}
    ).path


def test_looks_answer(run: Callable[..., Answer], table: str) -> None:
    for command in ("status", "freshness"):
        found = run(command, table, "--json")
        assert found.code == DONE, found.err
        assert "1970-01-01T00:59:59.999Z" in found.out
    assert run("validate", table).code == DONE
    assert run("report", table, "--out", f"{table}/../report.html").code == DONE
    for command in ("plan", "compact"):
        dry = run(command, table, *WRITERS, "--dry-run", "--json")
        assert dry.code == DONE, dry.err
        assert "hudi_assets.executor=hudi" in dry.json["refused"]
        assert "Refused: " in run(command, table, *WRITERS, "--dry-run").out


@pytest.mark.parametrize("command", ["plan", "compact"])
def test_what_merges_names_who_can(run: Callable[..., Answer], table: str, command: str) -> None:
    """Before Spark starts, and before anything is written."""
    before = contents(Path(table))
    found = run(command, table, *WRITERS)
    assert found.code == FAILED
    for words in ("partial updates", "hudi_assets.executor=hudi", "--hudi-bundle"):
        assert words in " ".join(found.err.split())
    assert contents(Path(table)) == before


def test_a_plan_for_hudi_is_published(run: Callable[..., Answer], table: str) -> None:
    by_hudi = ("--set", "hudi_assets.executor=hudi")
    dry = run("plan", table, *WRITERS, *by_hudi, "--dry-run", "--json")
    assert (dry.code, dry.json["refused"]) == (DONE, None)
    assert run("plan", table, *WRITERS, *by_hudi).code == DONE
    assert run("plan", table, *WRITERS, *by_hudi).code == NOTHING_TO_DO
