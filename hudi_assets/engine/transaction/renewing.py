"""A lock that ends by time is renewed by a thread, for as long as its holder works."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hudi_assets.engine.errors import Conflict

log = logging.getLogger(__name__)


@contextmanager
def renewed(renew: Callable[[], None], *, every_ms: float, where: str, thread: str) -> Iterator[None]:
    """Call `renew` in a thread of that name, first after `every_ms`, until the block ends.

    A failed call is tried again at the next time. After a `Conflict` there is nothing left to renew.
    """
    done = threading.Event()

    def work() -> None:
        while not done.wait(every_ms / 1000):
            try:
                renew()
            except Conflict as error:
                log.error("%s", error)
                return
            except OSError as error:
                log.warning("%s could not be renewed: %s", where, error)

    worker = threading.Thread(target=work, name=thread, daemon=True)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()
