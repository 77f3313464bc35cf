"""Which of the values that a process keeps are objects, and which only columns: so many objects at the most.

What a look keeps of a table (`table.slices.kept`) is asked for by the next one, or never. What was made last stays as
it is. What was made long ago gives its objects up for columns, and makes them again when it is asked.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from threading import RLock
from typing import Final, Protocol
from weakref import ref

# Three for each file: an entry of a listing, a file, its place in a slice. So 200,000 files, and some 200 MB.
MOST_OBJECTS: Final = 600_000


class Unloading(Protocol):
    """What keeps the same in fewer bytes once `unload` was called. Asked in any thread, at any time."""

    def unload(self) -> None: ...


class Loaded:
    """Those that have objects, `most` in all; the ones that were loaded first give theirs up."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._objects = 0
        self._loaded: OrderedDict[int, tuple[ref[Unloading], int]] = OrderedDict()
        self._lock = RLock()

    def add(self, one: Unloading, objects: int) -> None:
        """Note that it has so many objects."""
        leave = []
        with self._lock:
            _, before = self._loaded.pop(id(one), (None, 0))
            self._loaded[id(one)] = (ref(one, partial(self._forget, id(one))), objects)
            self._objects += objects - before
            while self._objects > self.most and len(self._loaded) > 1:
                _, (oldest, weight) = self._loaded.popitem(last=False)
                self._objects -= weight
                leave.append(oldest)
        for oldest in leave:
            there = oldest()
            if there is not None:
                there.unload()

    def _forget(self, number: int, gone: ref[Unloading]) -> None:
        """What is gone has none. Its number may be another one's by now."""
        with self._lock:
            found = self._loaded.get(number)
            if found is not None and found[0] is gone:
                del self._loaded[number]
                self._objects -= found[1]


LOADED: Final = Loaded(MOST_OBJECTS)
