"""`hudi_assets.compaction.whole.slices`: all of a slice with something due is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable, InvalidInput, NoPlan, StartNow, WaitUntil
from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.strategy import EventTimeBased, candidates
from hudi_assets.engine.model import FileSlice, LogFile, MergeMode
from hudi_assets.engine.model.log_summary import LogSummary
from hudi_assets.engine.past.rewriting import view_of
from hudi_assets.engine.slo.terms import terms_of
from hudi_assets.engine.slo.values import Cut
from hudi_assets.engine.table.slices.file_view import FileView
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

WHOLE = {"hudi_assets.compaction.whole.slices": "true", "hudi_assets.writers": "stopped"}
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
MINUTE = 60_000
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


@VERSIONS
def test_a_slice_with_something_due_is_taken_whole(tmp_path: Path, session: LocalSession, version: int) -> None:
    life = Life(tmp_path / "t", session, version, **WHOLE)
    life.upsert("a")
    life.upsert("b")
    life.upsert("a", later=10_000)
    before = life.snapshot()
    life.compact(1)
    (left,) = life.table.log_bars()
    assert (left.partition, left.min_event_time) == ("p=b", 2000)
    assert life.snapshot() == before
    # What is promised is what was asked for, though the base file holds more.
    assert life.table.freshness().threshold == 1500
    assert not life.table.validate()


@VERSIONS
def test_a_slice_with_nothing_due_is_left(tmp_path: Path, session: LocalSession, version: int) -> None:
    life = Life(tmp_path / "t", session, version, **WHOLE)
    life.upsert()
    assert isinstance(life.table.plan_compaction(threshold=999), NoPlan)


def test_a_log_file_that_holds_nothing_makes_no_slice_due() -> None:
    files = tuple(LogFile(f"l{n}", "p", "f", "1", n, "", 1, f"l{n}") for n in range(2))
    known = {"l0": LogSummary(None, None, 0, records=0), "l1": LogSummary(50, 60, 0)}
    slice_ = FileSlice("p", "f", "1", None, files)
    whole = EventTimeBased(10, known, MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=False), whole_slices=True)
    assert whole.filter_log_files(slice_) == (files[:1], files[1:])


Steps = list[tuple[int | None, list[tuple[int, int]]]]
STEPS: st.SearchStrategy[Steps] = st.lists(
    st.tuples(
        st.none() | st.integers(0, 12),
        st.lists(
            st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=5, unique_by=lambda one: one[0]
        ),
    ),
    min_size=2,
    max_size=6,
)


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
@given(steps=STEPS)
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_answer_changes_and_nothing_due_remains(version: int, steps: Steps, session: LocalSession) -> None:
    """The oracle is a dictionary: of each key the greatest event time, of equal ones the last."""
    with TemporaryDirectory() as folder:
        table = HudiTable.create(
            f"{folder}/t",
            SCHEMA,
            record_key=["id"],
            ordering_field="ts",
            event_time_unit="ms",
            buckets=3,
            table_version=version,
        )
        table = HudiTable.open(table.path, settings=WHOLE)
        best: dict[int, tuple[int, int]] = {}
        for number, (threshold, rows) in enumerate(steps):
            table.upsert(session, session.rows([{"id": k, "ts": at, "v": number} for k, at in rows], SCHEMA))
            for key, at in rows:
                if key not in best or at >= best[key][0]:
                    best[key] = (at, number)
            if threshold is not None:
                before = {bar.name: bar for bar in table.log_bars()}
                table.compact(session, threshold=threshold)
                left = table.log_bars()
                assert all((bar.min_event_time or 0) > threshold for bar in left)
                if all((bar.min_event_time or 0) > threshold for bar in before.values()):
                    assert {bar.name for bar in left} == before.keys()
            found = {row["id"]: (row["ts"], row["v"]) for row in table.snapshot(session).rows()}
            assert found == best
        assert not table.validate()


@dataclass(frozen=True)
class _UpTo:
    """A placement beside a write in progress: no more than so many log files of a slice."""

    count: int

    def considered(self, slice_: FileSlice) -> FileSlice:
        return slice_

    def settle(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        return slice_.log_files[: min(len(chosen), self.count)]

    def span(self, slice_: FileSlice, settled: tuple[LogFile, ...]) -> tuple[str, str]:
        return "", "~"

    def place(self, spans: Sequence[tuple[str, str]]) -> tuple[str, frozenset[int]]:
        return "9", frozenset(range(len(spans)))


@pytest.mark.parametrize(("up_to", "taken"), [(3, 3), (2, 1), (1, 1), (0, 0)])
def test_beside_a_write_in_progress_what_is_due_is_taken(up_to: int, taken: int) -> None:
    """The deletes of the second log file cannot go without the third."""
    logs = tuple(LogFile(f"l{n}", "p", "f", "1", n, "", 1, f"l{n}") for n in range(3))
    deletes = LogSummary(5, 50, 1)
    known = {"l0": LogSummary(1, 1, 0), "l1": deletes, "l2": LogSummary(7, 7, 0)}
    slice_ = FileSlice("p", "f", "1", None, logs)
    strategy = EventTimeBased(1, known, MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True), whole_slices=True)
    found, held = candidates(FileView({("p", "f"): (slice_,)}, {}), strategy, _UpTo(up_to), ["p"], 1)
    assert [one.number for one in found] == ([taken] if taken else [])
    assert [log.name for one in held for log in one.whole.chosen] == ([] if taken else ["l0"])


@VERSIONS
def test_the_policy_knows_of_it(tmp_path: Path, session: LocalSession, version: int) -> None:
    life = Life(tmp_path / "t", session, version, **WHOLE)
    life.upsert()
    assert view_of(life.table.state(), "1s").cut is Cut.SLICE
    assert life.table.past_feed(data_latency="1s").cut is Cut.SLICE


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_the_policy_waits_longer(tmp_path: Path, session: LocalSession, version: int) -> None:
    """At an hour, half of it data latency: rows above the watermark come along, so the next one is due later."""

    def compactions(path: Path, given: dict[str, str]) -> int:
        table = HudiTable.create(
            str(path),
            SCHEMA,
            record_key=["id"],
            ordering_field="ts",
            event_time_unit="ms",
            buckets=1,
            table_version=version,
            clock="commit",
            data_latency="30m",
        )
        table = HudiTable.open(table.path, settings={"hudi_assets.writers": "stopped", **given})
        start, count = 1_700_006_400_000, 0
        for minute in range(10, 250, 10):
            rows = [{"id": minute * 10 + n, "ts": start + minute * MINUTE - n * MINUTE, "v": n} for n in range(5)]
            at = datetime.fromtimestamp(start / 1000 + minute * 60, UTC)
            table.upsert(session, session.rows(rows, SCHEMA), clock_time=at)
            found = table.propose_compaction(terms_of("1h"), publish_ms=0)
            if isinstance(found, WaitUntil):
                continue
            assert isinstance(found, StartNow)
            table.compact(session, threshold=found.threshold)
            count += 1
            promise = table.freshness().freshness
            assert promise is not None
            assert start + minute * MINUTE - promise <= 60 * MINUTE
        return count

    due = compactions(tmp_path / "due", {})
    whole = compactions(tmp_path / "whole", WHOLE)
    assert whole <= 0.8 * due


SPLIT = {"hudi_assets.exact.split": "true", "hudi_assets.table.services": "ours"}


@pytest.mark.slow
def test_an_exact_split_and_whole_slices_contradict_each_other(tmp_path: Path, session: LocalSession) -> None:
    """A split would write what is above the threshold into another log file, and so leave something of each slice."""
    life = Life(tmp_path / "t", session, 6, **WHOLE)
    life.upsert()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match=r"contradict each other.* Leave one of them out"):
        HudiTable.open(str(life.path), settings=WHOLE | SPLIT)
    HudiTable.open(str(life.path), settings=WHOLE | SPLIT | {"hudi_assets.exact.split": "false"})
    assert sorted(tmp_path.rglob("*")) == before


def test_an_exact_split_of_the_table_and_whole_slices_over_it(tmp_path: Path) -> None:
    table = HudiTable.create(
        str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering_field="ts", event_time_unit="ms", exact_split=True
    )
    with pytest.raises(InvalidInput, match="contradict each other"):
        HudiTable.open(table.path, settings=WHOLE)
