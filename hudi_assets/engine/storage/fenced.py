"""The locks of this process that end by themselves: a store asks them before each change (`Storage.fenced`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_assets.engine.errors import LockLost
from hudi_assets.engine.storage.interface import LOCKS, Fence


class Fenced:
    """The part of a store that asks whether its process still has its locks."""

    def __init__(self) -> None:
        self._fences: list[Fence] = []

    @contextmanager
    def fenced(self, fence: Fence) -> Iterator[None]:
        self._fences.append(fence)
        try:
            yield
        finally:
            self._fences.remove(fence)

    def renew_fences(self) -> None:
        for fence in tuple(self._fences):
            fence.renew_soon()

    def _may_change(self, path: str) -> None:
        """Before each request that changes something: whoever has lost its lock changes nothing more."""
        if not path.startswith(f"{LOCKS}/"):
            for fence in tuple(self._fences):
                try:
                    fence.fence()
                except LockLost:
                    if fence in self._fences:  # else this process has released it meanwhile, in another thread
                        raise

    def _tell_doubt(self, path: str) -> None:
        """A request may arrive at the store yet."""
        if not path.startswith(f"{LOCKS}/"):
            for fence in tuple(self._fences):
                fence.doubt()

    @property
    def _request_s(self) -> float | None:
        """For how long a request may be under way; None where no lock is held."""
        return min((fence.request_s for fence in tuple(self._fences)), default=None)
