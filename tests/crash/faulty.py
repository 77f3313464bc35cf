"""A storage that dies: before or after its n-th changing operation, and for good from then on.

`faults` lets an action die at every one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.storage import LOCKS, LocalStorage

_CHANGING = (
    "create",
    "touch",
    "replace",
    "replace_if",
    "open_new",
    "publish",
    "hard_link",
    "symlink",
    "own",
    "copy",
    "delete",
    "delete_tree",
)


class Crash(BaseException):
    """The process dies here: nothing that runs after it may change the table."""


class DyingStorage:
    """LocalStorage until changing operation number `n` (from 1), then dead.

    `after`: the operation itself still happens. `operations` lists what was asked for.
    """

    def __init__(self, base: str, n: int | None = None, *, after: bool = False) -> None:
        self.base = base
        self._local = LocalStorage(base)
        self._n = n
        self._after = after
        self.operations: list[str] = []
        self.dead = False

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._local, name)
        if not callable(real):
            return real
        return self._wrapped(name, real) if name in _CHANGING else self._alive(real)

    def _alive(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self.dead:
                raise Crash("dead already")
            return real(*args)

        return call

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self.dead:
                raise Crash("dead already")
            if name == "replace_if" and args[0].startswith(LOCKS):
                return self._alive(real)(*args)
            by_last = name.endswith("link") or name == "publish"
            self.operations.append(f"{name} {args[-1] if by_last else args[0]}")
            dies = len(self.operations) == self._n
            if dies and not self._after:
                self.dead = True
                raise Crash(self.operations[-1])
            result = real(*args)
            if dies:
                self.dead = True
                if hasattr(result, "raw"):
                    result.raw.close()  # a stream's hidden file stays, as after a real crash
                raise Crash(self.operations[-1])
            return result

        return call


def dying(path: Path, n: int | None = None, *, after: bool = False) -> tuple[HudiTable, DyingStorage]:
    """The table on a storage that dies, and that storage."""
    storage: Any = DyingStorage(str(path), n, after=after)
    return HudiTable(storage, HudiTable.open(str(path)).config), storage


def faults(path: Path, tmp_path: Path, action: Callable[[HudiTable], object]) -> Iterator[tuple[Path, str]]:
    """A copy of the table (links kept) for each fault, after `action` died there; and what it died of.

    Dead after an operation leaves what dead before the next one leaves, but for a stream that was only opened.
    """
    table, storage = dying(shutil.copytree(path, tmp_path / "rehearsal", symlinks=True))
    action(table)
    assert len(storage.operations) >= 2
    for n, operation in enumerate(storage.operations, 1):
        only_here = operation.startswith("open_new") or n == len(storage.operations)
        for after in (False, True) if only_here else (False,):
            copy = shutil.copytree(path, tmp_path / f"fault-{n}-{after}", symlinks=True)
            victim, _ = dying(copy, n, after=after)
            with pytest.raises(Crash):
                action(victim)
            yield copy, f"operation {n} ({operation}), {'after' if after else 'before'}"
            shutil.rmtree(copy)
