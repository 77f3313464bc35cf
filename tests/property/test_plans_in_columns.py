"""A plan that is made one partition after the other, in few bytes, is the one that is made of all slices at once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.actions.compaction import strategy
from hudi_assets.engine.actions.compaction.planning import CompactionPlanner
from hudi_assets.engine.actions.compaction.who_executes import refuse_execution
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.event_time.table_times import TableTimes
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.table.settings.config import read_config
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import (
    CLOCK_TIME,
    EVENT_TIME,
    SCHEMA,
    WRITER,
    CommitMetadata,
    WriteStat,
)
from tests.oracle.whole_plan import left, whole_plan
from tests.tables.kept_looks import looks_keep

ROWS: Final = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("ms", "UTC")), ("day", pa.string())])
FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
NOW_MS: Final = int((FIRST + timedelta(days=1)).timestamp() * 1000)
ZERO_MS: Final = int(FIRST.timestamp() * 1000)
HUDIS: Final = {"hoodie.compact.inline.max.delta.commits": "0", "hoodie.compaction.target.io": "3"}
SETTINGS: Final[list[dict[str, str]]] = [
    {},
    {"hoodie.compaction.target.io": "4"},
    {"hoodie.compaction.daybased.target.partitions": "2"},
    {"hudi_assets.compaction.whole.slices": "true"},
    *(
        {**HUDIS, "hoodie.compaction.strategy": name}
        for name in (
            "UnBoundedCompactionStrategy",
            "LogFileSizeBasedCompactionStrategy",
            "LogFileNumBasedCompactionStrategy",
            "DayBasedCompactionStrategy",
            "UnBoundedPartitionAwareCompactionStrategy",
        )
    ),
    {
        **HUDIS,
        "hoodie.compaction.strategy": "LogFileNumBasedCompactionStrategy",
        "hoodie.compact.inline.trigger.strategy": "EVENT_TIME_TRIGGER",
    },
]
FOUND: Counter[str] = Counter()


@dataclass(frozen=True)
class Log:
    """A log file: which file group of which partition, and its event times (None: its commit states none)."""

    partition: str
    group: int
    low: int
    more: int
    deletes: int
    size: int


LOGS = st.builds(
    Log,
    st.sampled_from(["2026/01/01", "2026/01/02", "2026/01/03"]),
    st.integers(0, 2),
    st.integers(0, 20),
    st.integers(0, 12),
    st.integers(0, 1),
    st.integers(1, 3).map(lambda mb: mb << 20),
)
COMMITS = st.lists(
    st.lists(LOGS, min_size=2, max_size=6, unique_by=lambda log: (log.partition, log.group)), min_size=1, max_size=5
)


def instant(number: int, seconds: int = 0) -> str:
    return f"{FIRST + timedelta(minutes=number, seconds=seconds):%Y%m%d%H%M%S}000"


class Maker:
    """Writes a table by names and commits: its files are holes of the stated size, which no plan opens."""

    def __init__(self, path: str, version: int) -> None:
        self.version, self.path = version, path
        self.table = HudiTable.create(
            path,
            ROWS,
            record_key=["id"],
            ordering_field="ts",
            partition_fields=["day"],
            hive_style=False,
            buckets=3,
            table_version=version,
            event_time_unit="ms",
            clock="commit",
            data_latency="1s",
        )
        self.state = self.table.state()
        self.logs: Counter[tuple[str, int]] = Counter()

    def commit(self, number: int, logs: list[Log], *, late: int = 0, done: bool = True) -> None:
        """`late`: completed so many minutes after it was requested. One that is not done has not written a byte yet."""
        layout = self.state.layout
        stats = [self._log(number, log) if number else self._base(log) for log in logs]
        extra = {SCHEMA: self.state.avro_schema, EVENT_TIME: TableTimes(self.state).tag, WRITER: "hudi-assets"}
        extra[CLOCK_TIME] = str(NOW_MS)
        content = layout.encode_commit(CommitMetadata("UPSERT", tuple(stats), extra))
        for state in (State.REQUESTED, State.INFLIGHT):
            self._write(layout.instant_path(instant(number), Action.DELTA_COMMIT, state), b"")
        if done:
            completed = instant(number + late, 30)
            self._write(layout.instant_path(instant(number), Action.DELTA_COMMIT, State.COMPLETED, completed), content)

    def _base(self, log: Log) -> WriteStat:
        name = self.state.layout.base_file_name(self._file_id(log), "0-1-0", instant(0))
        self._hole(f"{log.partition}/{name}", log.size)
        return WriteStat(f"{log.partition}/{name}", log.partition, self._file_id(log), "null", log.size, num_writes=9)

    def _log(self, number: int, log: Log) -> WriteStat:
        key = log.partition, log.group
        self.logs[key] += 1
        at, version = (instant(number), 1) if self.state.layout.cuts_by_completion else (instant(0), self.logs[key])
        name = self.state.layout.log_file_name(self._file_id(log), at, version, "0-1-0")
        self._hole(f"{log.partition}/{name}", log.size)
        return WriteStat(
            path=f"{log.partition}/{name}",
            partition=log.partition,
            file_id=self._file_id(log),
            prev_commit=instant(0),
            size=log.size,
            num_writes=9,
            num_deletes=log.deletes,
            min_event_time=ZERO_MS + log.low,
            max_event_time=ZERO_MS + log.low + log.more,
            log_version=version,
            log_files=(name,),
        )

    def _file_id(self, log: Log) -> str:
        return f"{log.group:08d}-0000-4000-8000-{int(log.partition[-2:]):012d}-0"

    def _hole(self, path: str, size: int) -> None:
        file = Path(self.path, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / ".hoodie_partition_metadata").write_bytes(b"")
        with file.open("xb") as hole:
            hole.truncate(size)

    def _write(self, path: str, content: bytes) -> None:
        Path(self.path, path).write_bytes(content)


@pytest.fixture
def _in_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with looks_keep(monkeypatch, columns=True):
        yield


def answer(planner: CompactionPlanner, state: TableState, threshold: int | None) -> Plan | NoPlan | str:
    try:
        found = planner.due(state, threshold)
        if isinstance(found, Plan):
            refuse_execution(state, found)
    except HudiAssetsError as error:
        return str(error)
    return found


@pytest.mark.usefixtures("_in_columns")
@pytest.mark.parametrize("version", [6, 8, 9])
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(LOGS, min_size=4, max_size=9, unique_by=lambda log: (log.partition, log.group)),
    COMMITS,
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(SETTINGS),
    st.integers(3, 25),
)
def test_the_plan_is_the_same(
    version: int,
    bases: list[Log],
    commits: list[list[Log]],
    late: int,
    unfinished: bool,
    options: dict[str, str],
    threshold: int,
) -> None:
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patch:
        maker = Maker(path, version)
        maker.commit(0, bases)
        based = {(log.partition, log.group) for log in bases}
        for number, logs in enumerate(commits, start=1):
            # On version 6 a log file is named by its base file.
            written = (
                logs if maker.state.layout.cuts_by_completion else [g for g in logs if (g.partition, g.group) in based]
            )
            is_last = number == len(commits)
            done = not (unfinished and is_last)
            written = written if done else [replace(log, size=0) for log in written]
            maker.commit(number, written, late=late * (number % 2), done=done)
        storage = maker.table.storage
        table = HudiTable(
            storage,
            read_config(storage, {"hudi_assets.writers": "locked", "hudi_assets.table.services": "ours", **options}),
            now_ms=lambda: NOW_MS,
        )
        planner = CompactionPlanner(table._table)
        at = (
            ZERO_MS + threshold if table.config.compaction.by_event_time or "trigger.strategy" in str(options) else None
        )
        in_columns = answer(planner, table._table.read_in_columns(), at)
        patch.setattr(strategy, "plan", whole_plan)
        whole = answer(planner, table._table.read(), at)
        assert in_columns == whole
        FOUND[f"{version} {type(whole).__name__}"] += 1
        if isinstance(in_columns, Plan) and isinstance(whole, Plan):
            assert (in_columns.left, in_columns.query_time) == (left(table.state().view, whole), whole.query_time)
            assert (in_columns.asked_for, in_columns.left) == (whole.asked_for, whole.left)
            FOUND[f"{version} operations"] += len(whole.operations)
