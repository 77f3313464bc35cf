"""What a table tells about itself: event-time columns with their evidence, writers, table services, pace."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, TableProfile
from hudi_assets.engine.model.units import EventTimeUnit
from hudi_assets.engine.profile import sample
from hudi_assets.engine.profile.columns import Asked, choose
from hudi_assets.engine.profile.sample import SampledFile
from tests.tables.local_session import LocalSession
from tests.tables.others import leave_to_others

NOW_S = int(time.time())
INSTANT = "20240501120000000"
AT_S = int(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp())
ASKED = Asked(ordering=None, partitions=(), stated=None, unit=None, quantile=0.99)


def known(instant: str) -> int:
    return AT_S * 1000


def sampled(**columns: list[Any] | pa.Array) -> list[SampledFile]:
    rows = len(next(iter(columns.values())))
    return [SampledFile("a.parquet", pa.table({"_hoodie_commit_time": [INSTANT] * rows, **columns}))]


def chosen(asked: Asked = ASKED, **columns: list[Any] | pa.Array) -> Any:
    return choose(list(columns), sampled(**columns), asked, known)


def of(name: str | None = None, **more: Any) -> Asked:
    return Asked(**{**{f: getattr(ASKED, f) for f in ASKED.__dataclass_fields__}, "ordering": name, **more})


@pytest.mark.parametrize(("count", "unit"), [(1, "s"), (1000, "ms"), (1_000_000, "us")])
def test_integers_count_as_their_values_tell(count: int, unit: str) -> None:
    found = chosen(version=[1, 2], at=[(AT_S - 60) * count, (AT_S - 30) * count])
    assert found.column.name == "at"
    assert (found.column.unit, found.column.inferred) == (unit, True)
    assert (found.column.low, found.column.high) == ((AT_S - 60) * 1000, (AT_S - 30) * 1000)
    assert found.column.lateness.latency_ms == found.column.lateness.max_ms == 60_000
    assert [one.name for one in found.ruled_out] == ["version"]


def test_text_and_dates_and_timestamps() -> None:
    stamp = pa.array([datetime(2024, 5, 1, 11, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    assert chosen(at=stamp).column.unit is EventTimeUnit.TIMESTAMP
    assert chosen(at=["2024-05-01T11:00:00Z"], name=["2 boxes"]).column.unit is EventTimeUnit.ISO
    assert chosen(day=[date(2024, 5, 1)]).column.unit is EventTimeUnit.DATE
    assert chosen(name=["x"]).column is None


def test_a_birthday_and_an_expiry_are_no_event_times() -> None:
    found = chosen(at=[(AT_S - 5) * 1000], born=[date(1950, 1, 2)], until=[date(9999, 12, 31)])
    assert found.column.name == "at"
    assert {one.name for one in found.ruled_out} == {"born", "until"}


def test_the_ordering_field_is_taken_unless_another_name_speaks_of_events() -> None:
    times = {"updated_at": [AT_S - 1], "created_at": [AT_S - 60]}
    assert chosen(of("updated_at"), **times).column.name == "updated_at"
    found = chosen(of("updated_at"), **times, event_time=[AT_S - 90])
    assert found.column is None
    assert "event_time, updated_at (orders records), created_at" in found.question
    assert [one.name for one in found.candidates] == ["event_time", "updated_at", "created_at"]
    assert chosen(of("event_time"), **times, event_time=[AT_S - 90]).column.name == "event_time"


def test_several_columns_are_a_question_and_the_only_event_is_an_answer() -> None:
    assert chosen(a_ts=[AT_S - 1], b_ts=[AT_S - 2]).column is None
    assert chosen(a_ts=[AT_S - 1], event_ts=[AT_S - 2]).column.name == "event_ts"


def test_what_the_table_states_is_taken_or_questioned() -> None:
    found = chosen(of("at", stated="seq", unit="ms"), at=[AT_S - 1], seq=[5])
    assert found.column.name == "seq"  # the owner's word, even where it looks odd
    found = chosen(of("at", stated="seq"), at=[AT_S - 1], seq=[5])
    assert found.column is None
    assert "'seq'" in found.question


def test_lateness_counts_rows_and_keeps_to_the_quantile() -> None:
    found = chosen(of(quantile=0.5), at=[(AT_S - late) * 1000 for late in (1, 2, 3, 500)]).column.lateness
    assert (found.latency_ms, found.max_ms, found.rows) == (2000, 500_000, 4)
    ahead = chosen(at=[(AT_S + 3600) * 1000]).column.lateness
    assert ahead.max_ms == 0


def test_no_values_tell_nothing() -> None:
    found = chosen(at=pa.array([None, None], pa.timestamp("us")))
    assert (found.column, found.candidates) == (None, ())


# ------------------------------------------------------------------------------- of a table


SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("note", pa.string())])


def written(path: Path, session: LocalSession, *batches: list[int], version: int = 6) -> HudiTable:
    table = HudiTable.create(
        str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, table_version=version
    )
    for seconds in batches:
        rows = [{"id": n, "ts": second * 1000, "note": "x"} for n, second in enumerate(seconds)]
        table.upsert(session, session.rows(rows, SCHEMA))
    return table


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_tells_about_itself(version: int, session: LocalSession, tmp_path: Path) -> None:
    table = written(tmp_path / "t", session, [NOW_S - 60, NOW_S - 50], [NOW_S - 5], version=version)
    passed_ms = int(time.time() * 1000) - NOW_S * 1000  # since this module was read
    found = table.profile()
    assert isinstance(found, TableProfile)
    assert (found.table_version, found.ordering_field, found.stated_field) == (version, "ts", "ts")
    assert found.choice.column is not None
    assert not found.choice.column.inferred
    assert (found.sampled_files, found.sampled_rows, found.commits) == (2, 3, 2)
    assert [(one.name, one.commits, one.ours) for one in found.writers] == [("hudi-assets", 2, True)]
    assert found.services == ()
    late = found.choice.column.lateness
    assert late is not None
    assert 59_000 <= late.max_ms <= 60_000 + passed_ms


def test_after_a_compaction_base_files_tell_the_same(session: LocalSession, tmp_path: Path) -> None:
    table = written(tmp_path / "t", session, [NOW_S - 60, NOW_S - 50], [NOW_S - 5])
    before = table.profile().choice.column
    plan = table.plan_compaction(threshold=NOW_S * 1000)
    table.execute_compaction(session, plan.instant)  # type: ignore[union-attr]
    for log in (tmp_path / "t").rglob(".*.log.*"):
        log.unlink()
    after = table.profile()
    assert after.remaining_log_files == 0
    assert after.choice.column is not None
    assert before is not None
    assert after.choice.column.unit == before.unit
    assert after.choice.column.high == before.high


def test_a_damaged_file_says_nothing(session: LocalSession, tmp_path: Path) -> None:
    table = written(tmp_path / "t", session, [NOW_S - 60], [NOW_S - 5])
    newest = max((tmp_path / "t").rglob(".*.log.*"), key=lambda file: int(file.name.split(".log.")[1].split("_")[0]))
    newest.write_bytes(newest.read_bytes()[:40])
    found = table.profile()
    assert found.sampled_rows == 1


def test_the_sample_is_bounded(session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path / "t", session, [NOW_S - 60], [NOW_S - 5], [NOW_S - 4])
    monkeypatch.setattr(sample, "_FILES", 2)
    assert table.profile().sampled_files == 2
    monkeypatch.setattr(sample, "_BYTES", 1)
    found = table.profile()
    assert (found.sampled_files, found.sampled_rows) == (1, 1)
    assert found.choice.column is not None
    assert found.choice.column.high == (NOW_S - 4) * 1000  # of the newest commit


def test_of_a_table_of_others_nothing_is_stated(session: LocalSession, tmp_path: Path) -> None:
    written(tmp_path / "t", session, [NOW_S - 60], [NOW_S - 5])
    leave_to_others(tmp_path / "t")
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if "event.time.field" not in one]
    properties.write_text("\n".join(lines) + "\n")
    found = HudiTable.open(str(tmp_path / "t")).profile()
    assert found.stated_field is None
    assert found.choice.column is not None
    assert (found.choice.column.name, found.choice.column.unit, found.choice.column.inferred) == ("ts", "ms", True)


def test_a_flink_job_is_told_by_what_it_leaves(session: LocalSession, tmp_path: Path) -> None:
    """Its commits name no engine, unless they carry its checkpoint's id."""
    path = tmp_path / "t"
    written(path, session, [NOW_S - 60], [NOW_S - 5])
    leave_to_others(path)
    for commit in path.glob(".hoodie/*.deltacommit"):
        commit.write_text(json.dumps({**json.loads(commit.read_text()), "extraMetadata": {}}))
    trace = path / ".hoodie/.aux/view_storage_conf.properties"
    assert not [one for one in HudiTable.open(str(path)).profile().writers if "Flink" in one.name]
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.touch()
    assert [one for one in HudiTable.open(str(path)).profile().writers if "Flink" in one.name]
