"""A table in a bucket that Apache Hudi and we use in turn; what either says is held against the rows expected."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, InvalidInput, NothingToDo, Plan
from hudi_assets.engine.model import Action
from hudi_assets.engine.queries.query import ReadTask
from hudi_assets.engine.table.settings.config import WRITERS
from scripts.hudi_client import Hudi, InteropMissing
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.beside import SETTINGS
from tests.interop.tables import MINUTE, START, hudi_options, rows
from tests.interop.test_queries_v9 import answer
from tests.stores.test_changes import new_path
from tests.tables.local_session import Frame, LocalSession


@contextmanager
def started(release: str, jars: list[Path] | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Hudi]:
    """A Hudi whose Java starts quickly; the test is skipped where there is none."""
    with pytest.MonkeyPatch.context() as patch:
        if "INTEROP_JAVA_OPTIONS" not in os.environ:
            patch.setenv("INTEROP_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        try:
            hudi = Hudi(release, jars=jars or [], settings=dict(settings or {}))
        except InteropMissing as missing:
            pytest.skip(str(missing))
        with hudi:
            yield hudi


@dataclass
class Life:
    """A table that Hudi has made, and the rows that it should have: key → (minute, mark)."""

    hudi: Hudi
    session: LocalSession
    version: str
    path: str = field(default_factory=lambda: new_path().replace("s3://", "s3a://"))
    expected: dict[int, tuple[int, int]] = field(default_factory=dict)
    mark: int = 0
    lock: Mapping[str, str] = field(default_factory=dict)  # of Hudi's writers, and then of ours

    @property
    def table(self) -> HudiTable:
        shared = {**self.lock, WRITERS: "locked"} if self.lock else {}
        return HudiTable.open(self.path, settings={**SETTINGS, **shared})

    @property
    def options(self) -> dict[str, str]:
        """Of Hudi's writes."""
        return {**hudi_options(name="t"), "hoodie.write.table.version": self.version, **self.lock}

    def hudi_writes(self, numbers: Iterable[int], minute: int, operation: str = "upsert") -> None:
        batch = self._batch(numbers, minute, gone=operation == "delete")
        self.hudi.write(self.path, batch, self.options | {"hoodie.datasource.write.operation": operation})

    def we_write(self, numbers: Iterable[int], minute: int) -> None:
        self.table.upsert(self.session, Frame(self._batch(numbers, minute)))

    def we_delete(self, numbers: Iterable[int], minute: int) -> None:
        batch = self._batch(numbers, minute, gone=True)
        self.table.delete(self.session, Frame(batch.select(["id", "p", "ts"])))

    def takes_turns(self, rounds: int) -> None:
        """Each round: Hudi writes, we compact and clean, Hudi reads, we write, Hudi compacts and cleans, we read."""
        self.hudi_writes(range(12), 0, "bulk_insert")
        for round_ in range(rounds):
            start = 100 * round_
            self.hudi_writes([0, 1, 2, 20 + round_], start + 10)
            self.hudi_writes([3, 4, 5, 30 + round_], start + 50)
            self.hudi_writes([6 + round_, 0], start + 60, "delete")
            self.hudi_writes([0, 1, 9 - round_], start + 70)
            self.hudi_writes([3, 4], start + 40)  # late, and older than what is there
            self.we_compact(start + 45)
            cleaned: Any = self.table.clean()
            assert isinstance(cleaned, NothingToDo) or cleaned.files, cleaned
            self.agree(f"round {round_}, we compacted and cleaned")
            self.we_write([1, 2, 40 + round_], start + 80)
            self.we_delete([20 + round_], start + 85)
            self.agree(f"round {round_}, we wrote")
            self.hudi_compacts_and_cleans()
            self.agree(f"round {round_}, Hudi compacted and cleaned")
        assert self.table.archive() is not None
        self.agree("at the end")

    def _batch(self, numbers: Iterable[int], minute: int, *, gone: bool = False) -> pa.Table:
        """The rows, noted by event time: a late one that is older than what is there changes nothing."""
        numbers, self.mark = list(numbers), self.mark + 1
        for number in numbers:
            if gone:
                del self.expected[number]
            elif minute >= self.expected.get(number, (minute, 0))[0]:
                self.expected[number] = (minute, self.mark)
        return rows(numbers, lambda _: minute, self.mark)

    def agree(self, step: str) -> Rows:
        """Hudi's four queries and ours are the same, and the snapshot is what is expected; it is returned."""
        table = self.table
        times = dict(sorted(table.state().timeline.completions.items()))
        questions: list[tuple[dict[str, Any], list[ReadTask]]] = [
            ({"query": "snapshot"}, table.snapshot_tasks()),
            ({"query": "read_optimized"}, table.read_optimized_tasks()),
        ]
        for instant in list(times)[-3:]:
            with suppress(InvalidInput):  # cleaned: Hudi answers all the same, with less
                questions.append(({"query": "time_travel", "as_of": instant}, table.time_travel_tasks(instant)))
        begin, end = sorted(times.values())[-3:-1]
        for low, high in ((begin, None), (begin, end)):
            with suppress(InvalidInput):
                question = {"query": "incremental", "begin": low, "end": high}
                questions.append((question, table.incremental_tasks(low, high)))
        assert len(questions) > 3, step
        answers = [by_key(found) for found in self.hudi.answers(self.path, [asked for asked, _ in questions])]
        for (asked, tasks), theirs in zip(questions, answers, strict=True):
            ours = by_key(pa.Table.from_batches([batch for task in tasks for batch in task.read()], table.schema()))
            if asked["query"] == "incremental":
                # Of Hudi's those that the end state holds: it also shows a late record that lost, read alone.
                held = answer(table, table.incremental_tasks("000", asked["end"]))
                theirs = {key: row for key, row in theirs.items() if held.get(key) == row}
            same(theirs, ours, f"{step}, {asked}: ours is not Hudi's")
        same(self.wanted(), _values(answers[0]), f"{step}: the snapshot is not what is expected")
        assert table.validate() == (), step
        return answers[0]

    def agree_by_requests(self, step: str) -> None:
        """The same on version 6, which has no times of completion."""
        table = self.table
        instants = sorted(i.timestamp for i in table.state().timeline.completed(Action.DELTA_COMMIT))
        questions: list[tuple[dict[str, Any], list[ReadTask]]] = [
            ({"query": "snapshot"}, table.snapshot_tasks()),
            ({"query": "read_optimized"}, table.read_optimized_tasks()),
        ]
        for one in instants[-3:]:
            with suppress(InvalidInput):  # cleaned
                questions.append(({"query": "time_travel", "as_of": one}, table.time_travel_tasks(one)))
        for asked, tasks in questions:
            theirs = by_key(self.hudi.read(self.path, **asked))
            same(theirs, answer(table, tasks), f"{step}, {asked}: ours is not Hudi's")
        same(self.wanted(), _values(answer(table, table.snapshot_tasks())), f"{step}: not what is expected")
        assert table.validate() == (), step

    def takes_turns_on_6(self, rounds: int) -> None:
        """The same on version 6, where Hudi writes into the slice of our plan while it is pending."""
        self.hudi_writes(range(12), 0)  # of a bulk insert Hudi's own compaction loses lists here
        for round_ in range(rounds):
            start = 100 * round_
            self.hudi_writes([0, 1, 2, 20 + round_], start + 10)
            self.hudi_writes([3, 4, 5, 30 + round_], start + 50)
            self.hudi_writes([6 + round_, 0], start + 60, "delete")
            self.we_write([0, 1, 9 - round_], start + 70)
            plan = self.table.plan_compaction(threshold=START + (start + 45) * MINUTE)
            assert isinstance(plan, Plan), plan
            assert not any(operation.carried_over for operation in plan.operations)
            self.hudi_writes([3, 4, 50 + round_], start + 75)
            self.agree_by_requests(f"round {round_}, with our plan")
            self.table.execute_compaction(self.session, plan.instant)
            self.table.clean()
            self.agree_by_requests(f"round {round_}, we compacted and cleaned")
            self.we_write([1, 2, 40 + round_], start + 80)
            self.we_delete([20 + round_], start + 85)
            self.agree_by_requests(f"round {round_}, we wrote")
            assert self.hudi.compaction(self.path, "run", **{"hoodie.write.table.version": self.version})
            self.hudi.clean(self.path)
            self.agree_by_requests(f"round {round_}, Hudi compacted and cleaned")
        assert self.table.archive() is not None
        self.agree_by_requests("at the end")

    def we_compact(self, minute: int) -> None:
        """Hudi's answers stay, of before too, and the read-optimized view has all up to the threshold."""
        plan = self.table.plan_compaction(threshold=START + minute * MINUTE)
        assert isinstance(plan, Plan), plan
        snapshot, times = self.agree("with our plan"), dict(sorted(self.table.state().timeline.completions.items()))
        asked: list[dict[str, Any]] = [{"query": "snapshot"}]
        asked += [{"query": "time_travel", "as_of": instant} for instant in list(times)[-3:]]
        asked += [{"query": "incremental", "begin": sorted(times.values())[-4], "end": None}]
        before = self._hudi(asked)
        while isinstance(plan, Plan):  # one for each cut: the log files that may go at a time
            self.table.execute_compaction(self.session, plan.instant)
            plan = self.table.plan_compaction(threshold=START + minute * MINUTE)
        after = self._hudi([*asked, {"query": "read_optimized"}])
        for question, old, new in zip(asked, before, after, strict=False):
            if question["query"] == "incremental":  # as above
                old, new = ({k: row for k, row in one.items() if snapshot.get(k) == row} for one in (old, new))
            same(old, new, f"{question}: our compaction has changed Hudi's answer")
        ro = _values(after[-1])
        due = _values(_rows_of({n: told for n, told in self.expected.items() if told[0] <= minute}))
        assert due
        same(due, {key: row for key, row in ro.items() if key in due}, "the view lacks what is due")

    def _hudi(self, questions: list[dict[str, Any]]) -> list[Rows]:
        return [by_key(found) for found in self.hudi.answers(self.path, questions)]

    def hudi_compacts_and_cleans(self) -> None:
        assert self.hudi.compaction(self.path, "run", **{"hoodie.write.table.version": self.version, **self.lock})
        self.hudi.clean(self.path)
        same(self.wanted(), _values(by_key(self.hudi.read(self.path, "read_optimized"))), "Hudi compacted")

    def wanted(self) -> Rows:
        return _values(_rows_of(self.expected))


def same(left: Rows, right: Rows, what: str) -> None:
    unlike = differences(left, right)
    assert not unlike, f"{what}:\n" + "\n".join(unlike)


def _rows_of(expected: dict[int, tuple[int, int]]) -> Rows:
    parts = [rows([number], lambda _, m=minute: m, mark) for number, (minute, mark) in sorted(expected.items())]  # type: ignore[misc]
    table = pa.concat_tables(parts)
    keys, places = table["id"], [f"p={value}" for value in table["p"].to_pylist()]
    return by_key(table.append_column("_hoodie_record_key", keys).append_column("_hoodie_partition_path", [places]))


def _values(found: Rows) -> Rows:
    """Without what says which commit wrote a row."""
    return {
        key: {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
        for key, row in found.items()
    }
