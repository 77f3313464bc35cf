"""Errors say what is wrong, where (table and file), and what to do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.cli.output import show_error
from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, UnsupportedTable, in_table, located
from tests.tables.local_session import LocalSession

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))])
LOOKS: dict[str, Callable[[HudiTable, LocalSession], object]] = {
    "snapshot": lambda table, session: table.snapshot(session).toArrow(),
    "incremental": lambda table, session: table.incremental(session, "000").toArrow(),
    "compact": lambda table, session: table.compact(session),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("damage", ["no log file", "no instant", "no rows"])
def test_a_damaged_log_file_is_named_with_its_table(
    look: str, damage: str, session: LocalSession, tmp_path: Path
) -> None:
    settings = {"hudi_assets.data.latency": "0s"}
    table = HudiTable.create(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1)
    table.upsert(session, session.rows([{"id": "a", "ts": datetime(2024, 5, 1, 8, tzinfo=UTC)}], SCHEMA))
    (log,) = Path(table.path).glob(".*.log.*")
    data = log.read_bytes()
    if damage == "no log file":
        data = b"nolog!" + data[6:]
    elif damage == "no instant":
        data = data.replace(
            (0).to_bytes(4, "big") + (17).to_bytes(4, "big"), (6).to_bytes(4, "big") + (17).to_bytes(4, "big"), 1
        )
    else:
        data = data.replace(b"PAR1", b"RAP1")
    log.unlink()
    log.write_bytes(data)
    with pytest.raises(CorruptTable) as damaged:
        LOOKS[look](HudiTable.open(table.path, settings=settings), session)
    assert damaged.value.where == f"{table.path}: {log.name}"
    assert damaged.value.next_step


def test_every_kind_that_is_no_fault_of_the_call_says_what_to_do() -> None:
    for kind in (Conflict, CorruptTable, UnsupportedTable):
        assert kind("It is so.").next_step
        assert str(kind("It is so.", where="/t")) == f"It is so. [/t] {kind.usual_hint}"
        assert kind("It is so.", hint="Do this.").next_step == "Do this."
    assert InvalidInput("It is so.").next_step is None


def test_the_command_line_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(CorruptTable("It is so.", where="/t"), as_json=False)
    assert capsys.readouterr().err == f"Error: It is so.\nWhere: /t\nHint: {CorruptTable.usual_hint}\n"


def test_a_place_is_added_where_none_is_known() -> None:
    with pytest.raises(CorruptTable) as found, located("/t: a"):
        raise CorruptTable("It is so.")
    assert found.value.where == "/t: a"
    with pytest.raises(CorruptTable) as found, located("/t: a"):
        raise CorruptTable("It is so.", where="/t: b")
    assert found.value.where == "/t: b"
    with pytest.raises(CorruptTable) as found, in_table("/t"):
        raise CorruptTable("It is so.", where="b")
    assert pickle.loads(pickle.dumps(found.value)).where == "/t: b"
