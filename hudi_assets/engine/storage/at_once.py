"""Many requests at a time, where a store has to be waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from hudi_assets.engine.storage.interface import Storage

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def each(storage: Storage, ask: Callable[[Asked], Answer], asked: Iterable[Asked]) -> list[Answer]:
    """Each answer, in the order asked: one after another, or as many at a time as the store states.

    An error is raised once all that has begun has ended, the first in the order asked; nothing is begun after it.
    """
    waiting = list(asked)
    width = min(storage.capabilities.at_once, len(waiting))
    if width <= 1:
        return [ask(one) for one in waiting]
    with ThreadPoolExecutor(width, thread_name_prefix="storage") as pool:
        futures = [pool.submit(ask, one) for one in waiting]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return [future.result() for future in futures]
