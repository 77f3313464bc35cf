"""The life of one table of the zoo, and what was seen in it.

Hudi writes five commits. Its four queries are kept as the answer. Compacted in part, by us or by Hudi from our plan,
the table gives that answer again. Hudi writes a sixth commit, and all is compacted; the same holds again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiAssetsError, HudiTable, NoPlan, Plan
from hudi_assets.engine.actions.compaction.hudi_executor import hudi_options as execution_options
from hudi_assets.engine.model import Action, Instant
from scripts.hudi_client import Hudi, HudiError
from scripts.hudi_rows import Rows, by_key, differences
from tests.interop.readers import FIRST
from tests.interop.zoo.configuration import (
    BEFORE,
    DAY,
    LATENCY_MS,
    STORY,
    THRESHOLD,
    Configuration,
    Deletes,
    Refused,
)
from tests.interop.zoo.seen import Seen
from tests.interop.zoo.writes import write
from tests.tables.local_session import LocalSession

BY_HUDI = {"hudi_assets.executor": "hudi"}
Question = dict[str, Any]
Answers = dict[str, Rows]
SNAPSHOT, READ_OPTIMIZED = "snapshot", "read-optimized"
AS_OF, RANGE, OPEN_RANGE = "as of the last but one", "range to the last but one", "range to the last"


@dataclass
class Life:
    """One table, its Hudi and our session."""

    configuration: Configuration
    hudi: Hudi
    path: Path
    session: LocalSession
    seen: Seen = field(default_factory=Seen)
    known: tuple[Instant, ...] = ()  # the commits of which the past is asked

    def run(self) -> Seen:
        for number in range(BEFORE):
            self.writes(number)
        if self.configuration.looked:
            self.refuses_looks(self.configuration.looked)
            return self.seen
        self.looks("written")
        if self.configuration.merged and self.configuration.by_hudi:
            self.is_looked_at_alone(self.configuration.merged, self.configuration.by_hudi)
            return self.seen
        answers = self.answers("written")
        self.compacts("part", self.open(), THRESHOLD, answers)
        self.writes(BEFORE)
        self.looks("sixth")
        answers |= self.answers("sixth", SNAPSHOT, OPEN_RANGE)
        self.compacts("whole", self.open(), None, answers)
        return self.seen

    # -- steps ----------------------------------------------------------------------------------------

    def writes(self, number: int) -> None:
        write(self.hudi, self.configuration, self.path, number)

    def compacts(self, step: str, table: HudiTable, minute: int | None, before: Answers) -> None:
        """By us in part and by Hudi as a whole, where both can; else by the one that can, and the other refuses."""
        merged, by_hudi = self.configuration.merged or self.configuration.compacted, self.configuration.by_hudi
        threshold = None if minute is None else self.configuration.time.at(minute)
        if merged:
            self.refuses(f"{step}: by us", merged, lambda: table.plan_compaction(threshold=threshold))
        willing = self.open(**BY_HUDI)
        if by_hudi:
            self.refuses(f"{step}: by Hudi", by_hudi, lambda: willing.plan_compaction(threshold=threshold))
        natively = merged is None and (step == "part" or by_hudi is not None)
        if natively:
            self.executes_natively(step, table, threshold)
        else:
            self.executes_by_hudi(step, willing, threshold)
        self.looks(f"{step} compacted")
        after = self.answers(f"{step} compacted")
        same(before, after, f"{step} compacted")
        self.promise_holds(after)

    def executes_natively(self, step: str, table: HudiTable, threshold: int | None) -> None:
        for plan in self.plans(step, table, threshold):
            table.execute_compaction(self.session, plan.instant)

    def executes_by_hudi(self, step: str, table: HudiTable, threshold: int | None) -> None:
        for plan in self.plans(step, table, threshold):
            metadata = {"hoodie.metadata.enable": str(self.configuration.metadata).lower()}
            self.hudi.compaction(self.path, "execute", **{**metadata, **execution_options(table.config)})
            completed = {instant.timestamp for instant in self.open().state().timeline.completed(Action.COMMIT)}
            assert plan.instant in completed, f"Hudi did not execute {plan.instant}"

    def plans(self, step: str, table: HudiTable, threshold: int | None) -> Iterator[Plan]:
        """Plans until nothing is due: on versions 8 and 9 several may be needed. Each is executed before the next."""
        taken = 0
        while isinstance(plan := table.plan_compaction(threshold=threshold), Plan):
            taken += sum(len(op.log_files) for op in plan.operations)
            yield plan
            assert not table.state().timeline.pending_compactions
        assert isinstance(plan, NoPlan)
        self.seen.plans[step] = (taken, table.stats().remaining_log_files)

    # -- looks and refusals ---------------------------------------------------------------------------

    def open(self, **more: str) -> HudiTable:
        return HudiTable.open(str(self.path), settings={**self.configuration.stated(), **more})

    def looks(self, step: str) -> None:
        """Each look answers, and writes nothing."""
        before = files(self.path)
        table = self.open()
        promise = table.freshness()
        assert table.validate() == ()
        assert isinstance(table.plan_compaction(dry_run=True), Plan | NoPlan)
        table.look()
        table.profile()
        assert files(self.path) == before
        shown = None
        if promise.freshness is not None:
            lately = promise.freshness >= promise.computed_at - LATENCY_MS - DAY
            shown = "now" if lately else datetime.fromtimestamp(promise.freshness / 1000, UTC).isoformat()
        self.seen.looks[step] = (shown, table.stats().remaining_log_files)

    def refuses_looks(self, refused: Refused) -> None:
        for name, call in {
            "freshness": lambda: self.open().freshness(),
            "plan": lambda: self.open().plan_compaction(dry_run=True),
            "snapshot": lambda: self.open().snapshot(self.session),
        }.items():
            self.refuses(name, refused, call)

    def is_looked_at_alone(self, merged: Refused, by_hudi: Refused) -> None:
        """Neither we nor Hudi execute a plan, and our queries are refused, the read-optimized one too."""
        self.refuses("part: by us", merged, self.open().plan_compaction)
        self.refuses("part: by Hudi", by_hudi, self.open(**BY_HUDI).plan_compaction)
        for question in self.questions().values():
            self.refuses(f"query {question['query']}", merged, partial(self.ours, self.open(), question))

    def refuses(self, name: str, refused: Refused, call: Callable[[], object]) -> None:
        """By its words and kind, and nothing was written."""
        before = files(self.path)
        with pytest.raises(refused.error, match=re.escape(refused.words)) as raised:
            call()
        assert files(self.path) == before
        error = raised.value
        assert isinstance(error, HudiAssetsError)
        self.seen.refused[name] = f"{type(error).__name__}: {error.what}"

    # -- the four queries -----------------------------------------------------------------------------

    def questions(self) -> dict[str, Question]:
        """All that is asked. What lies in the past is asked of the same commits after each step."""
        ends = [commit.completion or commit.timestamp for commit in self.commits()]
        self.known = known = self.known or self.commits()
        middle = len(known) - 2
        bounds = [commit.completion or commit.timestamp for commit in known]
        return {
            SNAPSHOT: {"query": "snapshot"},
            READ_OPTIMIZED: {"query": "read_optimized"},
            "as of the first": {"query": "time_travel", "as_of": known[0].timestamp},
            AS_OF: {"query": "time_travel", "as_of": known[middle].timestamp},
            RANGE: {"query": "incremental", "begin": bounds[min(1, middle)], "end": bounds[middle]},
            OPEN_RANGE: {"query": "incremental", "begin": FIRST, "end": ends[-1]},
        }

    def commits(self) -> tuple[Instant, ...]:
        """Hudi's writes, in order."""
        return tuple(self.open().state().timeline.completed(Action.DELTA_COMMIT))

    def answers(self, step: str, *names: str) -> Answers:
        """Hudi's answers, to all questions or to these. Ours are the same, or refused."""
        asked = {name: question for name, question in self.questions().items() if not names or name in names}
        for name in [name for name, question in asked.items() if question["query"] in self.configuration.failing]:
            self.may_fail(step, name, asked)
        answered = self.hudi.answers(self.path, list(asked.values()), self.query_options())
        told = {name: self.rows(rows) for name, rows in zip(asked, answered, strict=True)}
        theirs = held(told)
        table = self.open()
        merged = self.configuration.merged
        ours = {}
        for name, question in asked.items():
            if merged and name != READ_OPTIMIZED:
                self.refuses(f"query {question['query']}", merged, partial(self.ours, table, question))
            else:
                ours[name] = self.rows(self.ours(table, question))
        mine = held(ours)
        if self.configuration.fills:
            mine |= {name: but_for_filled(mine[name], told[name]) for name in (RANGE, OPEN_RANGE) if name in mine}
        same({name: theirs[name] for name in ours}, mine, f"{step}, ours", changed=())
        return theirs

    def may_fail(self, step: str, name: str, asked: dict[str, Question]) -> None:
        """A query that fails in Hudi, by the words expected, is not asked for further; it is noted."""
        words = self.configuration.failing[asked[name]["query"]]
        try:
            self.hudi.answers(self.path, [asked[name]], self.query_options())
        except HudiError as error:
            if words not in str(error):
                raise
            self.seen.failed[step] = (*self.seen.failed.get(step, ()), name)
            del asked[name]

    def query_options(self) -> dict[str, str]:
        on = str(self.configuration.metadata).lower()
        return {"hoodie.metadata.enable": on, "hoodie.enable.data.skipping": on}

    def ours(self, table: HudiTable, question: Question) -> Any:
        match question["query"]:
            case "snapshot":
                frame = table.snapshot(self.session)
            case "read_optimized":
                frame = table.read_optimized(self.session)
            case "time_travel":
                frame = table.time_travel(self.session, question["as_of"])
            case _:
                frame = table.incremental(self.session, question["begin"], question["end"])
        return frame.toArrow()

    def rows(self, table: Any) -> Rows:
        """By key, without nulls (a column that is not yet there is null) and what Hudi shows from the path."""
        left_out = self.configuration.by_path
        return {
            key: {name: value for name, value in row.items() if value is not None and name not in left_out}
            for key, row in by_key(table).items()
        }

    def promise_holds(self, answers: Answers) -> None:
        """Up to the freshness the read-optimized view is the snapshot."""
        table = self.open()
        promise, remain = table.freshness(), table.stats().remaining_log_files
        if promise.freshness is None:
            return
        time = self.configuration.time
        # A delete that is no row has no event time: by the data latency it happened lately.
        undated = remain and self.configuration.deletes is not Deletes.ROW
        later = {
            f"k{key}"
            for batch in STORY
            for key in batch.keys
            if time.at(batch.minute + key) > promise.freshness or (undated and batch.kind == "D")
        }
        shown, rows = (
            {key: row for key, row in answers[view].items() if row["id"] not in later}
            for view in (READ_OPTIMIZED, SNAPSHOT)
        )
        unlike = differences(rows, shown)
        assert not unlike, "the read-optimized view:\n" + "\n".join(unlike)


def held(answers: Answers) -> Answers:
    """Of a range, the rows that the table held at its end: Hudi shows late ones too, until a compaction."""
    ends = {RANGE: answers.get(AS_OF), OPEN_RANGE: answers.get(SNAPSHOT)}
    return {
        name: rows
        if (end := ends.get(name)) is None
        else {key: row for key, row in rows.items() if end.get(key) == row}
        for name, rows in answers.items()
    }


def but_for_filled(ours: Rows, theirs: Rows) -> Rows:
    """Our rows without those that Hudi shows with nulls, and else alike."""
    return {key: row for key, row in ours.items() if row == theirs.get(key) or not row.items() >= theirs[key].items()}


def same(left: Answers, right: Answers, step: str, changed: Sequence[str] = (READ_OPTIMIZED,)) -> None:
    """What both were asked has one answer."""
    for name in sorted(left.keys() & right.keys() - set(changed)):
        unlike = differences(left[name], right[name])
        assert not unlike, f"{step}, {name}:\n" + "\n".join(unlike)


def files(path: Path) -> list[str]:
    """What is written to a table, but for what a look keeps beside it."""
    return sorted(str(file) for file in path.rglob("*") if ".aux" not in file.parts and file.suffix != ".crc")
