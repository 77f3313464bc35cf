"""A bucket in this process's memory: what all stores of objects share, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obstore.store import MemoryStore

from hudi_assets.engine.storage import Capabilities
from hudi_assets.engine.storage.objects import ObjectStorage

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class MemoryStorage(ObjectStorage):
    """An empty bucket, which nobody else sees."""

    def __init__(self, base: str = "memory://bucket/table") -> None:
        super().__init__(base)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            put_if_absent=True,
            put_if_match=True,
            links=False,
            exact_times=False,
            at_once=8,
            late_requests=True,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (MemoryStorage, (self.base,))

    def _client(self, request_s: float | None) -> ObjectStore:
        del request_s
        return MemoryStore()

    def _in_time(self, request_s: float) -> ObjectStore:
        del request_s
        return self._made
