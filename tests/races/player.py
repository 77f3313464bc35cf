"""One of several processes on a table: writes, deletes, plans, executes, cleans at random, and keeps a journal."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction import executor as compaction
from hudi_assets.engine.actions.writing import delta_commit as writer
from hudi_assets.engine.errors import Conflict, CorruptTable, HudiAssetsError, InvalidInput
from hudi_assets.engine.model import NoPlan, Plan
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.table.settings.merging import TABLE_SERVICES
from hudi_assets.engine.transaction import transaction
from tests.races.ledger import Journal, Row
from tests.tables.local_session import LocalSession
from tests.tables.steps import created, with_properties

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
MOST_PLAYERS = 4096
BEGINNING = 1_704_067_200_000  # 2024 in ms: what lies below 1980 or so might be seconds, and no plan is made then
OWN_KEYS, SHARED_KEYS = 24, 16
WEIGHTS: Mapping[str, int] = {
    "write": 40,
    "delete": 8,
    "plan": 16,
    "execute": 16,
    "clean": 5,
    "archive": 3,
    "recover": 3,
}


# What tables the processes meet on: the table's version and settings, by a name.
KINDS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "shared": (6, {TABLE_SERVICES: "shared"}),
    "ours": (6, {TABLE_SERVICES: "ours"}),
    "version 9": (9, {"hudi_assets.query.grace": "0s"}),
}


def create(path: Path, kind: str = "shared", **settings: str) -> HudiTable:
    version, own = KINDS[kind]
    return with_properties(created(path, SCHEMA, name="t", table_version=version), {**own, **settings})


def timeline_of(path: Path) -> Path:
    """The folder of a table's timeline."""
    folder = path / ".hoodie/timeline"
    return folder if folder.is_dir() else path / ".hoodie"


def rows_of(table: HudiTable) -> dict[str, Row]:
    """The snapshot: key → (event time, id of the write). Raises AssertionError where a key comes twice."""
    found: dict[str, Row] = {}
    for task in table.snapshot_tasks():
        for batch in read_task(task):
            for row in batch.to_pylist():
                assert row["id"] not in found, f"{row['id']} comes twice"
                found[row["id"]] = (row["ts"], row["v"])
    return found


class Player:
    """`number` (below MOST_PLAYERS) is a process's own, and so are the event times and write ids it makes."""

    def __init__(
        self, path: Path, journal: Path, number: int, session: LocalSession, *, start: int = 0, wait_s: float = 2.0
    ) -> None:
        # Losers are wanted here, so nobody waits for long.
        writer._LOCK_WAIT_S = wait_s
        compaction._LOCK_WAIT_S = wait_s
        transaction.LOCK_WAIT_S = wait_s
        self.path = path
        self.number = number
        self.session = session
        self.random = random.Random(number * 7919 + start)
        self.journal = Journal(journal)
        self.step_number = start
        self._used: set[int] = set()
        self.plan_reach = 60  # how many steps back a threshold may lie
        self._actions: dict[str, Callable[[HudiTable], None]] = {
            "write": self.write,
            "delete": self.delete,
            "plan": self.plan,
            "execute": self.execute,
            "clean": self.clean,
            "archive": self.archive,
            "recover": self.recover,
        }

    def step(self, weights: Mapping[str, int] = WEIGHTS) -> str:
        """One action, on a table opened anew. Errors that a loser may get go into the journal, others pass."""
        self.step_number += 1
        names = list(weights)
        name = self.random.choices(names, [weights[n] for n in names])[0]
        try:
            self._actions[name](HudiTable.open(str(self.path)))
        except Conflict as error:
            self.journal.say(lost=name, why=str(error))
        return name

    # -- writing ----------------------------------------------------------------------------------

    def _time(self, *, late: bool) -> int:
        """An event time that no other write has; those of a process's own keys rise."""
        while True:
            back = self.random.randint(1, 40) if late else 0
            time = (max(0, self.step_number - back) * 2 + late) * 32 + self.random.randrange(32)
            if time not in self._used:
                self._used.add(time)
                return BEGINNING + time * MOST_PLAYERS + self.number

    def write(self, table: HudiTable) -> None:
        own = self.random.sample(range(OWN_KEYS), self.random.randint(0, 4))
        shared = self.random.sample(range(SHARED_KEYS), self.random.randint(1, 4))
        times = {f"p{self.number}-{n}": self._time(late=False) for n in own}
        times |= {f"s{n}": self._time(late=True) for n in shared}
        self._commit(times, deletes=False, commit=lambda frame: table.upsert(self.session, frame).instant)  # type: ignore[arg-type]

    def delete(self, table: HudiTable) -> None:
        own = self.random.sample(range(OWN_KEYS), self.random.randint(1, 3))
        times = {f"p{self.number}-{n}": self._time(late=False) for n in own}
        self._commit(times, deletes=True, commit=lambda frame: table.delete(self.session, frame).instant)  # type: ignore[arg-type]

    def _commit(self, times: dict[str, int], *, deletes: bool, commit: Callable[[object], str | None]) -> None:
        number = self.step_number * MOST_PLAYERS + self.number
        frame = self.session.rows([{"id": k, "ts": t, "v": number} for k, t in times.items()], SCHEMA)
        self.journal.say(begin=number, times=times, deletes=deletes)
        try:
            instant = commit(frame)
        except HudiAssetsError as error:
            self.journal.say(refused=number, why=str(error))
            raise
        self.journal.say(done=number, instant=instant)

    # -- services ---------------------------------------------------------------------------------

    def plan(self, table: HudiTable) -> None:
        reach = self.random.randint(0, min(self.step_number // 2, self.plan_reach))
        threshold = BEGINNING + max(0, self.step_number - reach) * 64 * MOST_PLAYERS
        planned = table.plan_compaction(threshold=threshold)
        self.journal.say(planned=planned.instant if isinstance(planned, Plan) else None)
        if isinstance(planned, NoPlan):
            assert planned.reason

    def execute(self, table: HudiTable) -> None:
        plan = table.pending_plan()
        if plan is None:
            return
        try:
            table.execute_compaction(self.session, plan.instant)
        except InvalidInput as error:
            if not any(words in error.what for words in ("completed already", "No compaction is pending")):
                raise
            self.journal.say(lost="execute", why=str(error))  # another process was faster
        else:
            self.journal.say(executed=plan.instant)

    def clean(self, table: HudiTable) -> None:
        self.journal.say(cleaned=type(table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=2)).__name__)

    def archive(self, table: HudiTable) -> None:
        self.journal.say(archived=type(table.archive()).__name__)

    def recover(self, table: HudiTable) -> None:
        self.journal.say(recovered=table.recover())

    # -- looking ----------------------------------------------------------------------------------

    def look(self, *, tries: int = 20) -> dict[str, Row]:
        """The snapshot of another moment where a cleaner deleted this one's files under it."""
        for _ in range(tries):
            try:
                return rows_of(HudiTable.open(str(self.path)))
            except (Conflict, CorruptTable, FileNotFoundError) as error:
                last = error
        raise last
