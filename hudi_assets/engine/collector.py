"""Python's cyclic garbage collector, kept off what lives on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """For code that makes very many values which all live on, and no cycles.

    The collector would walk through them again and again, and find nothing: a third of the time of a plan over
    100,000 log files. What else is garbage meanwhile, in other threads too, is collected after it. Not left switched
    off by whatever order threads enter and leave in: who finds it on switches it on again.

    What was made goes to the oldest generation at once, where it would get by surviving: switched on, the collector
    would begin by walking through all of it. Not where the program froze values of its own, which that would thaw.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
