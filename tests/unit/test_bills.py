"""What each compaction cost and bought: in its result, by the timeline, and added up by day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_assets.engine import Bill, CompactionResult, DayBill, HudiTable
from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.hudi_table import maintenance
from hudi_assets.engine.past import metrics
from hudi_assets.engine.past.bills import by_day
from tests.tables.life import Life
from tests.tables.local_session import LocalSession
from tests.tables.steps import compact

DAY = 86_400_000
each_version = pytest.mark.parametrize("version", [6, 8, 9])


def compacted(life: Life, upto: int) -> CompactionResult:
    return compact(life.table, life.session, upto * 1000 + 500)


def freshness(table: HudiTable) -> int:
    found = table.freshness().freshness
    assert found is not None
    return found


def sizes(path: Path, ending: str) -> Iterator[int]:
    return (file.stat().st_size for file in path.glob(f"p=*/*{ending}*") if "metadata" not in file.name)


@each_version
def test_a_compaction_says_what_it_cost_and_bought(session: LocalSession, tmp_path: Path, version: int) -> None:
    life = Life(tmp_path / "t", session, version)
    for _ in range(3):
        life.upsert()
    before, logs = freshness(life.table), sum(sizes(life.path, ".log."))
    first = compacted(life, 3).bill
    assert first is not None
    bases = sum(sizes(life.path, ".parquet"))
    assert (first.bytes_read, first.bytes_written) == (logs, bases)
    assert first.gained_ms == freshness(life.table) - before > 0
    life.upsert()
    before, logs = freshness(life.table), sum(log.size for log in life.table.log_bars())
    second = compacted(life, 4).bill
    assert second is not None
    assert second.bytes_read == logs + bases
    assert second.gained_ms == freshness(life.table) - before > 0
    assert life.table.bills() == (second, first)


def test_one_that_moves_nothing_bought_nothing(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    for number in range(1, 5):
        life.upsert("a" if number == 1 else "b")
    compacted(life, 4)
    life.upsert(later=2500)  # its rows are above the watermark
    bill = compacted(life, 7).bill
    assert bill is not None
    assert bill.gained_ms == 0
    assert bill.bytes_per_hour is None


def test_a_bill_that_cannot_be_told_fails_no_compaction(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "t", session)
    life.upsert()

    def damaged(*_: object) -> Bill:
        raise CorruptTable("A log file is gone.", where="x", hint="y")

    monkeypatch.setattr(maintenance, "bill_of", damaged)
    result = compacted(life, 1)
    assert result.bill is None
    assert result.rows == 4


def test_days_add_up_and_say_how_much_is_not_known() -> None:
    first, second = Bill("1", DAY - 1, 10, 20, 5, 100), Bill("2", DAY, None, 40, 5, 200)
    third = Bill("3", DAY + 1, 1, 2, None, None)
    assert by_day([third, second, first]) == (
        DayBill("1970-01-02", 2, 1, 42, 5, 200, 2),
        DayBill("1970-01-01", 1, 10, 20, 5, 100, 0),
    )


def test_a_days_sums_are_among_the_metrics(session: LocalSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(3)
    (day,) = life.table.metrics().days
    bills = life.table.bills()
    assert day.compactions == len(bills) == 2
    assert day.bytes_written == sum(bill.bytes_written for bill in bills)
    assert day.gained_ms == sum(bill.gained_ms or 0 for bill in bills) > 0
    assert day.unknown == 0


def test_a_past_that_cannot_be_read_costs_the_days_alone(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "t", session)
    life.turns(3)

    def damaged(*_: object) -> Bill:
        raise CorruptTable("An old commit is damaged.")

    monkeypatch.setattr(metrics, "bills_of", damaged)
    found = life.table.metrics()
    assert found.days == ()
    assert found.last_compaction is not None


def test_bytes_for_an_hour_of_freshness() -> None:
    assert Bill("1", 0, 10, 20, 5, 7_200_000).bytes_per_hour == 15
    assert Bill("1", 0, None, 20, 5, 7_200_000).bytes_per_hour is None
