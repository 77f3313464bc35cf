"""The thread that renews a lock while its holder works."""

from __future__ import annotations

import queue
import threading

import pytest

from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.transaction.renewing import renewed


class Renewals:
    """Counts them; the first ones fail, with these errors."""

    def __init__(self, *errors: Exception) -> None:
        self.made: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._errors = iter(errors)

    def __call__(self) -> None:
        self.made.put(None)
        for error in self._errors:
            raise error


def test_a_failed_renewal_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    renew = Renewals(OSError("unreachable"))
    with renewed(renew, every_ms=1, where="/t: lock", thread="renewal"):
        for _ in range(3):
            renew.made.get(timeout=30)
    assert "/t: lock could not be renewed: unreachable" in caplog.text


def test_nothing_is_renewed_after_a_conflict(caplog: pytest.LogCaptureFixture) -> None:
    renew = Renewals(Conflict("Taken by another.", where="/t: lock"))
    with renewed(renew, every_ms=1, where="/t: lock", thread="renewal"):
        renew.made.get(timeout=30)
        for thread in threading.enumerate():
            if thread.name == "renewal":
                thread.join(30)
    assert renew.made.empty()
    assert "Taken by another." in caplog.text


def test_the_thread_ends_with_the_block() -> None:
    with renewed(lambda: None, every_ms=60_000, where="/t: lock", thread="renewal"):
        assert "renewal" in {thread.name for thread in threading.enumerate()}
    assert "renewal" not in {thread.name for thread in threading.enumerate()}
