"""A table as one process has it open: everything that an action needs to read it and to change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.config import TableConfig, refuse_other_version
from hudi_assets.engine.table.settings.in_a_bucket import refuse_in_a_bucket
from hudi_assets.engine.table.slices.kept import Keeper, keeper_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.transaction.publish import Publisher, system_now_ms


@dataclass(frozen=True)
class OpenTable:
    """Where a table is, its settings, its layout, and the writer of its timeline: what is kept between two calls."""

    storage: Storage
    config: TableConfig
    layout: Layout
    publisher: Publisher

    @classmethod
    def of(cls, storage: Storage, config: TableConfig, now_ms: Callable[[], int] = system_now_ms) -> OpenTable:
        """Open a table. `now_ms` is the true clock, epoch ms."""
        layout = layout_of(config.table_version, storage.base)
        return cls(storage, config, layout, Publisher(storage, layout, now_ms, config.timezone))

    @property
    def path(self) -> str:
        """The table's base path."""
        return self.storage.base

    def check_writable(self) -> None:
        """Raise where this process may not write here, or such a table cannot be changed."""
        self.config.refuse_other_files(self.path)
        refuse_in_a_bucket(self.config, self.layout, self.storage)
        self.storage.check_writable()

    def now_ms(self) -> int:
        """The true clock, epoch ms; not that of a replayed stream."""
        return self.publisher.now_ms()

    def read(self) -> TableState:
        """The table as it stands now."""
        return self._read(None)

    def read_in_columns(self) -> TableState:
        """The same in few bytes, for whoever asks of one partition after the other: only some have objects at once."""
        return self._read(Keeper())

    def look(self, *, anew: bool = False) -> TableState:
        """The same for whoever changes nothing by it: its files are moved on from this process's last look.

        Args:
            anew: All of it is listed, whatever was kept.
        """
        properties = frozenset(self.config.properties.items())
        keeper = keeper_of((self.storage, self.layout, properties))
        if anew:
            keeper.keep(None)
        return self._read(keeper)

    def _read(self, keeper: Keeper | None) -> TableState:
        state = TableState.read(self.storage, self.config, self.layout, self.publisher.now_ms, keeper)
        if state.timeline.last_write is None:  # or it is on a timeline elsewhere
            self.refuse_other_version()
        return state

    def refuse_other_version(self) -> None:
        """Raise `Conflict` where somebody has upgraded the table since it was opened, or made another at its path."""
        refuse_other_version(self.storage, self.config)
