"""`compact` goes on until the threshold is reached, or says what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.cli import commands
from hudi_assets.engine import Conflict, HudiTable, NoPlan
from hudi_assets.engine.actions.compaction.series import CompactionSeries
from hudi_assets.engine.model.units import iso
from tests.cli.conftest import DONE, FAILED, NOTHING_TO_DO, SPLIT, START, Answer, contents
from tests.tables.local_session import LocalSession

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string())])
LIVE = ("--writers", "locked", "--set", "hudi_assets.table.services=ours")


def put(table: HudiTable, session: LocalSession, *rows: tuple[int, float, str]) -> None:
    """Rows of (key, hours after START, partition) as one delta commit."""
    first = int(START.timestamp() * 1000)
    frame = session.rows([{"id": k, "ts": first + round(h * 3_600_000), "p": p} for k, h, p in rows], SCHEMA)
    table.upsert(session, frame)


def files(table: HudiTable) -> dict[str, bytes]:
    """All but what is kept beside the table of each look."""
    return {name: data for name, data in contents(Path(table.path)).items() if "/.aux/" not in name}


def make(path: Path, session: LocalSession, version: int) -> HudiTable:
    """Up to SPLIT two commits are due of `a` and one of `b`: on versions 8 and 9 no instant parts both at once."""
    table = HudiTable.create(
        str(path),
        SCHEMA,
        record_key=["id"],
        ordering_field="ts",
        event_time_unit="ms",
        partition_fields=["p"],
        buckets=1,
        table_version=version,
        data_latency="2h",
    )
    put(table, session, (1, 0, "a"), (2, 0, "b"))
    put(table, session, (1, 1, "a"), (2, 12, "b"))
    put(table, session, (1, 12, "a"))
    return table


@pytest.fixture(params=[6, 8, 9])
def series(request: pytest.FixtureRequest, session: LocalSession, tmp_path: Path) -> HudiTable:
    return make(tmp_path / "t", session, request.param)


@pytest.fixture(autouse=True)
def no_spark(session: LocalSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "start_spark", lambda _: session)


def test_the_threshold_is_reached(run: Callable[..., Answer], series: HudiTable) -> None:
    answer = run("compact", series.path, "--threshold", SPLIT, *LIVE, "--json")
    assert answer.code == DONE, answer
    found = answer.json
    rounds = 1 if series.config.table_version == 6 else 2
    assert len(found["compactions"]) == rounds
    assert (found["threshold"], found["asked_for"], found["reached"]) == (SPLIT, SPLIT, True)
    assert (found["in_the_way"], found["file_groups_due"]) == (None, 0)
    assert series.freshness().threshold == int((START + timedelta(hours=6)).timestamp() * 1000)
    # Numbers of the whole; instant and threshold of the last.
    last = found["compactions"][-1]
    assert (found["instant"], last["threshold"]) == (last["instant"], SPLIT)
    assert found["instant"] == run("status", series.path, "--json").json["last_compaction"]
    bills = series.bills()
    assert found["bytes_read"] == sum(bill.bytes_read or 0 for bill in bills) > 0
    assert found["bytes_written"] == sum(bill.bytes_written for bill in bills) > 0
    assert found["freshness_gained_ms"] == sum(bill.gained_ms or 0 for bill in bills) > 0
    for key in ("logs_compacted", "rows", "file_groups", "bytes_read", "bytes_written", "freshness_gained_ms"):
        assert found[key] == sum(one[key] for one in found["compactions"])
    assert (found["file_groups"], found["logs_compacted"]) == (2, 3)
    assert run("compact", series.path, "--threshold", SPLIT, *LIVE).code == NOTHING_TO_DO


def test_progress_for_people(run: Callable[..., Answer], session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", session, 9)
    answer = run("compact", table.path, "--threshold", SPLIT, *LIVE)
    assert answer.code == DONE, answer
    lines = answer.out.splitlines()
    begun = [n for n, line in enumerate(lines) if line.endswith("1 file group …")]
    done = [n for n, line in enumerate(lines) if " done in " in line]
    assert begun[0] < done[0] < begun[1] < done[1]
    assert f"All event times up to {SPLIT} are compacted, by 2 compactions." in lines
    bills = [lines[n + 1] for n in done]
    assert all(line.startswith("It read ") and " and wrote " in line for line in bills), bills
    # The first one of a series may buy nothing: the log files that hold the freshness back are the second one's.
    assert [line.rpartition(", ")[2] for line in bills] == [
        "and the freshness did not move.",
        "and the freshness moved on by 12 h.",
    ]
    warned = [line for line in lines if line.startswith("Warning: Queries that still read what")]
    assert len(warned) == 1


def test_once_is_one_compaction(run: Callable[..., Answer], session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", session, 9)
    first = run("compact", table.path, "--threshold", SPLIT, *LIVE, "--once", "--json").json
    assert len(first["compactions"]) == 1
    assert (first["reached"], first["file_groups_due"]) == (False, 1)
    assert first["threshold"] < SPLIT
    second = run("compact", table.path, "--threshold", SPLIT, *LIVE, "--once")
    assert "run it again" not in second.out
    assert table.freshness().threshold == int((START + timedelta(hours=6)).timestamp() * 1000)


def test_a_plan_says_that_the_threshold_takes_more(
    run: Callable[..., Answer], session: LocalSession, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", session, 9)
    for command in ("plan", "compact"):
        shown = run(command, table.path, "--threshold", SPLIT, *LIVE, "--dry-run")
        assert f"{SPLIT} takes more plans than this one: compact makes them all." in shown.out.splitlines()
        found = run(command, table.path, "--threshold", SPLIT, *LIVE, "--dry-run", "--json").json
        assert found["threshold"] < found["asked_for"] == SPLIT
    run("compact", table.path, "--threshold", SPLIT, *LIVE, "--once")
    last = run("plan", table.path, "--threshold", SPLIT, *LIVE)
    assert "takes more plans" not in last.out


def test_a_pending_plan_is_executed_alone(run: Callable[..., Answer], session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", session, 9)
    planned = run("plan", table.path, "--threshold", SPLIT, *LIVE, "--json").json
    found = run("compact", table.path, *LIVE, "--json").json
    assert [one["instant"] for one in found["compactions"]] == [planned["instant"]]
    assert found["reached"] is None


def test_what_is_in_the_way(run: Callable[..., Answer], session: LocalSession, tmp_path: Path) -> None:
    """Hudi's trigger wants three delta commits since the last compaction; the series' first one leaves two."""
    table = make(tmp_path / "t", session, 9)
    trigger = "--set", "hoodie.compact.inline.trigger.strategy=NUM_COMMITS"
    three = "--set", "hoodie.compact.inline.max.delta.commits=3"
    found = run("compact", table.path, "--threshold", SPLIT, *LIVE, *trigger, *three, "--json").json
    assert len(found["compactions"]) == 1
    assert found["reached"] is False
    assert "delta commit" in found["in_the_way"]
    shown = run("compact", table.path, "--threshold", SPLIT, *LIVE, *trigger, *three)
    assert shown.code == NOTHING_TO_DO


def test_an_error_on_the_way_keeps_what_was_done(
    run: Callable[..., Answer], session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", session, 9)
    real, calls = HudiTable.execute_compaction, []

    def once(self: HudiTable, spark: LocalSession, instant: str) -> object:
        calls.append(instant)
        if len(calls) == 2:
            raise Conflict("Another process holds the table's execute lock: it has just taken it.")
        return real(self, spark, instant)

    monkeypatch.setattr(HudiTable, "execute_compaction", once)
    answer = run("compact", table.path, "--threshold", SPLIT, *LIVE, "--json")
    assert answer.code == FAILED
    assert answer.error["error"] == "Conflict"
    assert [one["instant"] for one in answer.json["compactions"]] == calls[:1]
    assert (answer.json["reached"], "execute lock" in answer.json["in_the_way"]) == (False, True)
    monkeypatch.setattr(HudiTable, "execute_compaction", real)
    assert run("compact", table.path, *LIVE).code == DONE  # the plan that was left
    assert table.freshness().threshold == int((START + timedelta(hours=6)).timestamp() * 1000)


def test_records_that_come_late_meanwhile_do_not_keep_it_going(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", session, 9)
    rounds = []

    def late(_: object) -> None:
        rounds.append(1)
        put(table, session, (len(rounds) + 10, 0, "b"))
        put(table, session, (len(rounds) + 10, 12, "b"))
        put(table, session, (len(rounds) + 20, 0, "a"))

    found = table.compact(session, threshold=SPLIT, on_done=late)
    assert isinstance(found, CompactionSeries)
    assert len(found.compactions) == len(rounds) <= 2
    assert found.in_the_way is None or "late" in found.in_the_way


def test_from_python(session: LocalSession, series: HudiTable) -> None:
    seen: list[str] = []
    found = series.compact(session, threshold=SPLIT, on_plan=lambda plan: seen.append(plan.instant))
    assert isinstance(found, CompactionSeries)
    assert [one.instant for one in found.compactions] == seen
    assert (iso(found.threshold), found.in_the_way) == (SPLIT, None)
    assert isinstance(series.compact(session, threshold=SPLIT), NoPlan)


# -- the time that running queries have -----------------------------------------------------------


def test_a_dry_run_shows_the_plan_with_the_warning(
    run: Callable[..., Answer], session: LocalSession, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", session, 9)
    before = files(table)
    for command in ("plan", "compact"):
        for more in ((), ("--set", "hudi_assets.query.grace.least=1h")):
            args = (command, table.path, "--threshold", SPLIT, "--writers", "locked", *more, "--dry-run")
            found = run(*args, "--json")
            assert found.code == DONE, found
            assert found.json["operations"]
            assert found.json["query_minutes"] < 60
            assert "Hudi's cleaner" in found.json["warning"]
            shown = run(*args).out
            assert ("Refused: Queries" if more else "Warning: Queries") in shown.replace("\n", " ")
    refused = run("compact", table.path, "--threshold", SPLIT, "--writers", "locked", *more, "--json")
    assert refused.error["error"] == "InvalidInput"
    assert files(table) == before
    quiet = run("plan", table.path, "--threshold", SPLIT, "--writers", "stopped", "--json").json
    assert (quiet["query_minutes"], quiet["warning"]) == (None, None)
