"""How an event-time column counts: stated, told by its values, or unknown; nothing is promised on a guess."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, NoPlan, Plan
from hudi_assets.engine.event_time import table_times
from hudi_assets.engine.model.column_unit import Source
from hudi_assets.engine.model.units import parse_time
from tests.tables.local_session import LocalSession
from tests.tables.others import leave_to_others, others
from tests.tables.steps import compact

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
UNIT = "hudi_assets.event.time.unit"
SECOND = 1_700_000_000  # 2023-11-14
A_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
SETTINGS = {"hudi_assets.writers": "stopped", "hudi_assets.data.latency": "1h"}


def opened(path: Path, **settings: str) -> HudiTable:
    return HudiTable.open(str(path), settings={**SETTINGS, **settings})


# ------------------------------------------------------------------------------- told by the values


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_the_values_tell_the_unit(unit: str, session: LocalSession, tmp_path: Path) -> None:
    count = A_SECOND[unit]
    others(tmp_path / "t", session, [SECOND * count, (SECOND + 60) * count], [(SECOND + 30) * count])
    table = opened(tmp_path / "t")
    promise = table.freshness()
    assert promise.freshness == SECOND * 1000 - 1
    assert promise.unit is not None
    assert (promise.unit.unit, promise.unit.source) == (unit, Source.VALUES)
    assert "2023-11-14T22:13:20Z to 2023-11-14T22:14:20Z" in (promise.unit.evidence or "")
    plan = table.plan_compaction(dry_run=True)
    assert isinstance(plan, Plan)
    assert plan.extra_metadata["hudi_assets.event.time"] == f"ts:{unit}"


def test_a_maximum_is_ceiled(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [SECOND * 1_000_000 + 1])
    (bar,) = opened(tmp_path / "t").log_bars()
    assert (bar.min_event_time, bar.max_event_time) == (SECOND * 1000, SECOND * 1000 + 1)


def test_once_all_is_compacted_base_files_tell(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [SECOND * 1_000_000])
    table = opened(tmp_path / "t")
    compact(table, session)
    promise = table.freshness()
    assert promise.freshness == promise.watermark
    assert promise.unit is not None
    assert (promise.unit.unit, promise.unit.source) == ("us", Source.VALUES)
    assert promise.threshold is not None  # the compaction's tag is of the same unit
    assert isinstance(table.plan_compaction(dry_run=True), NoPlan)


def test_records_without_event_time_say_nothing_of_the_unit(session: LocalSession, tmp_path: Path) -> None:
    """A delete in commit order has the ordering value 0, a row may have a null; the other records tell."""
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts", buckets=1)
    rows = [{"id": n, "ts": SECOND * 1_000_000, "v": 1} for n in range(2)]
    table.upsert(session, session.rows(rows, schema))
    table.delete(session, session.rows([{"id": 1}], schema.remove(2).remove(1)))
    leave_to_others(tmp_path / "t")
    promise = opened(tmp_path / "t").freshness()
    assert promise.freshness == SECOND * 1000 - 1
    assert promise.unit is not None
    assert promise.unit.unit == "us"
    others(tmp_path / "n", session, [SECOND * 1_000_000, None])
    promise = opened(tmp_path / "n").freshness()
    assert promise.freshness == SECOND * 1000 - 1


def test_numbers_of_32_bits_are_seconds(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [SECOND], type_=pa.int32())
    assert opened(tmp_path / "t").freshness().freshness == SECOND * 1000 - 1


# ------------------------------------------------------------------------------- where they do not tell


UNCLEAR = [
    pytest.param([[SECOND * 1000], [SECOND * 1_000_000]], "look like milliseconds in", "s, ms, us", id="two-units"),
    pytest.param([[SECOND, SECOND * 1_000_000]], "look like microseconds", f"{UNIT}=us", id="two-units-in-a-file"),
    pytest.param([[SECOND * A_SECOND["ns"]]], "look like nanoseconds", "s, ms, us", id="nanoseconds"),
    pytest.param([[0, SECOND * 1_000_000]], "look like microseconds", f"{UNIT}=us", id="a-zero"),
    pytest.param([[SECOND, 253_402_300_799]], "look like seconds", f"{UNIT}=s", id="until-9999"),
    pytest.param([[1000, 2000]], "fit none of", "s, ms, us", id="small-numbers"),
    pytest.param([[4_000_000_000_000]], "fit none of", "s, ms, us", id="long-after-the-commit"),
]


@pytest.mark.parametrize(("batches", "words", "hint"), UNCLEAR)
def test_what_nobody_can_tell_is_no_promise(
    batches: list[list[int]], words: str, hint: str, session: LocalSession, tmp_path: Path
) -> None:
    others(tmp_path / "t", session, *batches)
    table = opened(tmp_path / "t")
    promise = table.freshness()
    assert (promise.freshness, promise.min_event_time) == (None, None)
    assert words in (promise.reason or "")
    assert hint in (promise.reason or "")
    for ask in ({}, {"threshold": "2026-01-01"}, {"data_latency": "auto"}):
        if ask == {"data_latency": "auto"}:
            found = table.plan_compaction(**ask, dry_run=True)
            assert isinstance(found, NoPlan)
            assert words in found.reason
            continue
        with pytest.raises(InvalidInput, match=words) as refused:
            table.plan_compaction(**ask)  # type: ignore[arg-type]
        assert hint in (refused.value.hint or "")
    seen = table.look()
    assert seen.freshness.freshness is None
    assert isinstance(seen.due, NoPlan)
    assert words in seen.due.reason


def test_an_empty_table_says_nothing_of_its_unit(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [None])
    found = opened(tmp_path / "t").event_time_unit()
    assert found is not None
    assert found.unit is None
    assert "there is no value to tell it by" in (found.problem or "")


def test_text_of_digits_is_no_time(session: LocalSession, tmp_path: Path) -> None:
    """Python reads 1712010112345 as the year 1712: a promise that is much too low, or one of no worth."""
    others(tmp_path / "t", session, ["1712010112345"], type_=pa.string())
    promise = opened(tmp_path / "t").freshness()
    assert promise.freshness is None
    assert "'1712010112345' is not an ISO-8601 event time" in (promise.reason or "")


def test_a_plan_by_a_unit_that_nobody_can_tell_any_more(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [SECOND * 1_000_000])
    table, stated = opened(tmp_path / "t"), opened(tmp_path / "t", **{UNIT: "us"})
    plan = table.plan_compaction()
    assert isinstance(plan, Plan)
    stated.upsert(session, session.rows([{"id": 7, "ts": SECOND * 1000}], SCHEMA))
    with pytest.raises(InvalidInput, match=r"ts:us, but the values of column 'ts' look like") as refused:
        table.execute_compaction(session, plan.instant)
    assert "unit that it was planned with" in (refused.value.hint or "")
    stated.execute_compaction(session, plan.instant)
    assert table.pending_plan() is None


# ------------------------------------------------------------------------------- stated


def test_the_owners_word_settles_it(session: LocalSession, tmp_path: Path) -> None:
    others(tmp_path / "t", session, [0, SECOND * 1_000_000])
    promise = opened(tmp_path / "t", **{UNIT: "us"}).freshness()
    assert promise.freshness == -1
    assert promise.unit is not None
    assert promise.unit.source is Source.SETTING


@pytest.mark.parametrize(
    ("stated", "true"), [("ms", "us"), ("s", "us"), ("s", "ms"), ("ms", "s"), ("us", "ms"), ("us", "s")]
)
def test_a_word_that_the_values_contradict_is_not_believed(
    stated: str, true: str, session: LocalSession, tmp_path: Path
) -> None:
    count = A_SECOND[true]
    others(tmp_path / "t", session, [SECOND * count], [(SECOND + 5) * count])
    table = opened(tmp_path / "t", **{UNIT: stated})
    promise = table.freshness()
    assert promise.freshness is None
    assert f"state {UNIT}={true}" in (promise.reason or "")
    with pytest.raises(InvalidInput, match="look like"):
        table.plan_compaction()
    assert opened(tmp_path / "t", **{UNIT: true}).freshness().freshness == SECOND * 1000 - 1


@pytest.mark.parametrize("values", [[1000, 2000], [4_000_000_000_000]], ids=["of-1970", "of-2096"])
def test_an_odd_time_that_fits_no_other_unit_is_the_owners_word(
    values: list[int], session: LocalSession, tmp_path: Path
) -> None:
    others(tmp_path / "t", session, values)
    table = opened(tmp_path / "t", **{UNIT: "ms"})
    promise = table.freshness()
    assert promise.freshness == min(promise.watermark or 0, values[0] - 1)


def test_a_latency_is_not_learned_from_a_wrong_unit(session: LocalSession, tmp_path: Path) -> None:
    """In milliseconds these microseconds lie ahead of their commits: every record would have come at once."""
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, data_latency="auto"
    )
    rows = session.rows([{"id": 1, "ts": SECOND * 1_000_000}], SCHEMA)
    table.upsert(session, rows)
    assert table.observed_latency() is None


# ------------------------------------------------------------------------------- tables of our own


@pytest.mark.parametrize(("type_", "unit"), [(pa.int64(), "ms"), (pa.int32(), "s"), (pa.timestamp("us"), None)])
def test_a_new_table_states_its_unit(type_: pa.DataType, unit: str | None, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", type_)])
    HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts")
    assert HudiTable.open(str(tmp_path / "t")).config.properties.get(UNIT) == unit


def test_a_table_of_ours_from_before_counts_milliseconds(session: LocalSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, data_latency="1h")
    table.upsert(session, session.rows([{"id": 1, "ts": 5000}], SCHEMA))
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace(f"{UNIT}=ms\n", ""))
    promise = HudiTable.open(str(path)).freshness()
    assert promise.freshness == 4999
    assert promise.unit is not None
    assert promise.unit.source is Source.DEFAULT


# ------------------------------------------------------------------------------- what is kept, what is given


def test_what_was_scanned_holds_whatever_unit_is_stated(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others(tmp_path / "t", session, [SECOND * 1_000_000])
    before = opened(tmp_path / "t").freshness()
    monkeypatch.setattr(table_times, "scan_summary", lambda *_: pytest.fail("scanned again"))
    assert opened(tmp_path / "t", **{UNIT: "us"}).freshness().freshness == before.freshness
    assert opened(tmp_path / "t", **{UNIT: "ms"}).freshness().freshness is None


def test_a_threshold_in_seconds_is_refused() -> None:
    assert parse_time("1700000000000") == SECOND * 1000
    with pytest.raises(InvalidInput, match="looks like seconds"):
        parse_time("1700000000")
