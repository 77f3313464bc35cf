"""The one way to change a table: lock it, recover what a crash left, read it, act, check the lock, publish.

Every action goes this way, so none can forget a step. Two locks exist. The write lock is held by whatever changes the
timeline. The executors' lock is held, outside the write lock, by an execution of a compaction from begin to end, and by
what must not run beside one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.table.settings.config import WRITERS, TableConfig
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.transaction.lease import has_leases
from hudi_assets.engine.transaction.lock import EXECUTE, HeldLock, table_lock, write_lock
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.recover import recover_dead_work

LOCK_WAIT_S = 30.0
_EXECUTORS_WAIT_S: Final = 1.0


@dataclass(frozen=True)
class Transaction:
    """A table under its write lock."""

    table: OpenTable
    lock: HeldLock
    late: tuple[str, ...] = ()
    """Commits that arrived after they were taken back, and are removed by now; a sentence each."""

    def read(self) -> TableState:
        """The table as it stands now: read again after each change."""
        return self.table.read()

    def read_in_columns(self) -> TableState:
        """The same in few bytes (`OpenTable.read_in_columns`)."""
        return self.table.read_in_columns()

    def recover(self, *, spare: str = "") -> tuple[str, ...]:
        """Finish or undo what dead processes of ours left; what was done, a sentence each. `spare`: see there."""
        return (*self.late, *recover_dead_work(self.table, self.read(), spare=spare))

    def check(self) -> None:
        """Raise `Conflict` where another engine took the lock from this process: write nothing then. Ask it last."""
        self.lock.check()


@contextmanager
def transaction(
    table: OpenTable,
    action: str,
    *,
    wait_s: float | None = None,
    beside_executors: bool = True,
    needs_stated_writers: bool = False,
    recovers: bool = True,
) -> Iterator[Transaction]:
    """A table under its write lock, after what a crash left has been recovered.

    `action` tells others who wait what holds the lock ("cleans"). `beside_executors=False`: nobody executes a
    compaction meanwhile. `needs_stated_writers`: refused unless the settings say how other engines write the table.
    `recovers=False`: the caller calls `Transaction.recover` at its own moment, or needs none.

    Raises `Conflict` where somebody else holds the lock, or another engine's rollback or restore is unfinished;
    `InvalidInput` in another time zone than the writers'; `EnvironmentProblem` where the table cannot be written.
    """
    if needs_stated_writers:
        refuse_unstated_writers(table.config, table.path)
    table.check_writable()
    with ExitStack() as held:
        if not beside_executors:
            held.enter_context(
                table_lock(table.storage, EXECUTE, config=table.config, wait_s=_EXECUTORS_WAIT_S, action=action)
            )
        patience = LOCK_WAIT_S if wait_s is None else wait_s
        lock = held.enter_context(write_lock(table.storage, table.config, wait_s=patience, action=action))
        table.refuse_other_version()
        late = table.publisher.taken_back.forget_late() if has_leases(table.storage) else ()
        state = table.read()
        state.refuse_other_zone()
        if recovers:
            recover_dead_work(table, state)
        yield Transaction(table, lock, late)


def refuse_unstated_writers(config: TableConfig, where: str) -> None:
    """Refuse to change a table while nothing says how other engines write it."""
    if config.writers is None:
        raise InvalidInput(
            "Nothing says how other engines write this table.",
            where=where,
            hint=f"State it: {WRITERS}=stopped (nobody writes meanwhile) or locked (every writer takes "
            "the table's lock); on the command line --writers.",
        )
