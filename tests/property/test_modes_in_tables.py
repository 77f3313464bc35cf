"""Every merge mode through a table, against the plain loop: what is written, compacted and queried goes by it too.

`test_merge_modes.py` proves the merge alone. Here a mode fails that a writer, a compaction or an incremental query
takes for another one.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import MergeMode, Plan
from tests.property.test_merge_modes import LOOPS, Record, Shown, shown
from tests.tables.local_session import LocalSession
from tests.tables.steps import created

COMMIT_TIME = "_hoodie_commit_time"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
# Each key's file group has to be there: a delete of a key that has none is not written.
FIRST = (Record("z", 1, "row", 0),)


@dataclass(frozen=True)
class Batch:
    """The records of one commit, all rows or all delete records."""

    records: tuple[Record, ...]


def _row(key: str, ts: int | None, value: int) -> Record:
    return Record(key, ts, "row", value)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    kinds = st.sampled_from(["rows", "rows", "rows", "deletes", "deletes in commit order"])
    found: list[Batch] = []
    for number, kind in enumerate(draw(st.lists(kinds, max_size=3)), start=1):
        one = st.tuples(st.sampled_from("ab"), st.integers(1, 5), st.booleans())
        keys = draw(st.lists(one, min_size=1, max_size=3))
        records = []
        for at, (key, ts, flag) in enumerate(keys):
            if kind == "rows":
                records.append(Record(key, ts, "deleted row" if flag and at else "row", 10 * number + at))
            else:
                records.append(Record(key, ts if kind == "deletes" else None, "delete", 0))
        found.append(Batch(tuple(records)))
    return found


def write(table: HudiTable, session: LocalSession, batch: Batch) -> str:
    if batch.records[0].kind == "delete":
        columns = {"id": [r.key for r in batch.records]}
        times = [r.ts for r in batch.records]
        frame = session.frame(pa.table(columns if None in times else {**columns, "ts": pa.array(times, pa.int64())}))
        instant = table.delete(session, frame).instant
    else:
        rows = [{"id": r.key, "ts": r.ts, "v": r.value, "_hoodie_is_deleted": r.kind != "row"} for r in batch.records]
        instant = table.upsert(session, session.rows(rows, SCHEMA)).instant
    assert instant is not None
    return instant


def rows_of(table: pa.Table) -> Shown:
    return {(row["id"], row["ts"], row["v"]) for row in table.to_pylist()}


def compact(table: HudiTable, session: LocalSession, threshold: int) -> None:
    plan = table.plan_compaction(threshold=threshold)
    if isinstance(plan, Plan):
        table.execute_compaction(session, plan.instant)


def check(table: HudiTable, session: LocalSession, state: dict[str, Record], instants: list[str]) -> None:
    """The snapshot is the loop's, and what came after an instant is the snapshot's rows of later commits."""
    whole = table.snapshot(session).toArrow()
    assert rows_of(whole) == shown(state)
    for begin in instants:
        later = pa.Table.from_pylist([row for row in whole.to_pylist() if row[COMMIT_TIME] > begin], whole.schema)
        assert rows_of(table.incremental(session, begin).toArrow()) == rows_of(later), begin


@pytest.mark.parametrize("mode", list(MergeMode))
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(before=batches(), after=batches(), compacts=st.booleans(), threshold=st.integers(0, 6))
@example([], [Batch((_row("a", 4, 1), _row("a", 5, 2), _row("a", 3, 3)))], False, 0)  # a key thrice in one batch
@example([], [Batch((_row("a", 2, 1),)), Batch((_row("a", 3, 2),))], False, 2)  # what came first is less, or greater
@example([], [Batch((_row("a", 3, 1),)), Batch((_row("a", 2, 2),))], False, 2)
@example([Batch((_row("a", 2, 1),))], [Batch((_row("a", 3, 2),))], True, 2)  # the same against a base row
@example([Batch((_row("a", 3, 1),))], [Batch((_row("a", 2, 2),))], True, 2)
@example(  # of two deletes of a key in one batch either may count
    [], [Batch((_row("a", 3, 1),)), Batch((Record("a", 2, "delete", 0), Record("a", 4, "delete", 0)))], False, 0
)
def test_a_table_answers_as_the_loop(
    session: LocalSession, mode: MergeMode, before: list[Batch], after: list[Batch], compacts: bool, threshold: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ordering = None if mode is MergeMode.COMMIT_TIME_ORDERING else "ts"
        how = {"ordering_field": ordering, "event_time_field": "ts", "merge_mode": mode, "table_version": 6}
        table = created(f"{folder}/t", SCHEMA, buckets=1, **how)
        assert HudiTable.open(table.path).config.merging.mode is mode
        instants = [write(table, session, batch) for batch in (Batch(FIRST), *before)]
        log = [*FIRST, *(record for batch in before for record in batch.records)]
        state: dict[str, Record] = {}
        if compacts:  # of all that there is: it forgets deletes
            compact(table, session, 100)
            state = {key: record for key, record in LOOPS[mode]({}, log, False).items() if record.kind == "row"}
            log = []
        instants += [write(table, session, batch) for batch in after]
        state = LOOPS[mode](state, [*log, *(record for batch in after for record in batch.records)], False)
        check(table, session, state, instants)
        compact(table, session, threshold)
        check(table, session, state, instants)
