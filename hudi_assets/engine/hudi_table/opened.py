"""An opened table: its settings, its layout, and its state whenever it is asked. Each part of `HudiTable` has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Self

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.files.missing import missing_files
from hudi_assets.engine.table.settings.config import TableConfig, read_config, says_how_to_read
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.publish import system_now_ms

_READINGS: Final = 3


class OpenedTable:
    """A table's storage, settings, layout and publisher. Nothing of it is kept between two calls but these."""

    def __init__(self, storage: Storage, config: TableConfig, *, now_ms: Callable[[], int] = system_now_ms) -> None:
        self.config = config
        self._table = OpenTable.of(storage, config, now_ms)

    @property
    def path(self) -> str:
        """The table's base path."""
        return self._table.storage.base

    @property
    def storage(self) -> Storage:
        """Where its files are, by what it was opened with."""
        return self._table.storage

    def given_settings(self) -> dict[str, str]:
        """What was given over the table's own settings and says how to read it: by it another process reads the same.

        What of it is published is among it too; nothing of locks or writers is.
        """
        own = read_config(self._table.storage).properties
        given = self.config.properties.items()
        return {key: value for key, value in given if says_how_to_read(key) and own.get(key) != value}

    def read_by(self, settings: Mapping[str, str]) -> Self:
        """The same table, read by these settings in place of those that were given.

        Args:
            settings: Keys `hoodie.…` and `hudi_assets.…`. They overlay the table's own for this process.

        Returns:
            The table, open, where and with what it was opened.

        Raises:
            InvalidInput: A setting is wrong.
            UnsupportedTable: The table has a feature, named, that cannot be handled rightly.
        """
        storage = self._table.storage
        return type(self)(storage, read_config(storage, settings))

    def check_writable(self) -> None:
        """Ask whether this process may write to the table; no write needs to ask first.

        Raises:
            EnvironmentProblem: It may not. The error names the folder or the file.
        """
        self._table.check_writable()

    def state(self) -> TableState:
        """The table as it stands now."""
        return self._table.read()

    def _readable(self) -> TableState:
        """As `state`, read again where another process has just deleted what a reading still names.

        A clean takes files, a planner that withdraws its plan a file of the timeline.
        """
        return self._of(lambda number: self.state())

    def _looked_at(self) -> TableState:
        """The same for those who only report: the files are moved on from this process's last look."""
        state = self._of(lambda number: self._table.look(anew=number > 0))
        state.keep()
        return state

    def _of(self, read: Callable[[int], TableState]) -> TableState:
        """The first of some readings that lacks nothing. `read` is told which one it makes."""
        for number in range(_READINGS - 1):
            state = read(number)
            with suppress(Conflict, FileNotFoundError):
                _ = state.view  # reads what is listed
                if next(missing_files(state), None) is None:
                    return state
        return self.state()

    def exists(self, path: str) -> bool:
        """True where a file is there. A link whose target is gone is not.

        Args:
            path: Relative to the table's base path.
        """
        return self._table.storage.exists(path)
