"""As much of kazoo's client as its lock and ours use, on a dictionary: for faults that a real server shows at no call.

What ZooKeeper does beside Curator is tried in tests/zookeeper, on a real one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import SequentialThreadingHandler


@dataclass
class Stat:
    ctime: int
    ephemeralOwner: int = 1  # noqa: N815 — ZooKeeper's


@dataclass
class Tree:
    """What the server has, for all of its clients."""

    nodes: dict[str, bytes] = field(default_factory=dict)
    numbered: int = 0
    watchers: dict[str, list[Callable[[object], None]]] = field(default_factory=dict)

    def create(self, path: str, data: bytes) -> str:
        made = f"{path}{self.numbered:010d}"
        self.numbered += 1
        self.nodes[made] = data
        return made

    def delete(self, path: str) -> None:
        self.nodes.pop(path, None)
        for watcher in self.watchers.pop(path, []):
            watcher(None)


class FakeClient:
    """A session. `faults`: what the next questions raise, in this order."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.handler = SequentialThreadingHandler()
        self.faults: list[Exception] = []
        self.asked: list[str] = []
        self.stopped = False

    def retry(self, call: Callable[[], object]) -> object:
        return call()

    def ensure_path(self, path: str) -> None: ...
    def add_listener(self, listener: object) -> None: ...
    def remove_listener(self, listener: object) -> None: ...

    def create(self, path: str, data: bytes, ephemeral: bool, sequence: bool) -> str:
        assert ephemeral
        assert sequence
        return self.tree.create(path, data)

    def get_children(self, path: str) -> list[str]:
        return [node.rpartition("/")[2] for node in self.tree.nodes if node.startswith(f"{path}/")]

    def get(self, path: str, watch: Callable[[object], None] | None = None) -> tuple[bytes, Stat]:
        if path not in self.tree.nodes:
            raise NoNodeError
        if watch is not None:
            self.tree.watchers.setdefault(path, []).append(watch)
        return self.tree.nodes[path], Stat(1_700_000_000_000)

    def delete(self, path: str) -> None:
        self.tree.delete(path)

    def sync_async(self, path: str) -> Any:
        return self._answer(f"sync {path}", path)

    def exists_async(self, path: str) -> Any:
        return self._answer(f"exists {path}", Stat(0) if path in self.tree.nodes else None)

    def stop(self) -> None:
        self.stopped = True

    def _answer(self, asked: str, value: object) -> Any:
        self.asked.append(asked)
        answer = self.handler.async_result()
        if self.faults:
            answer.set_exception(self.faults.pop(0))
        else:
            answer.set(value)
        return answer


def goes_away(tree: Tree, node: str, after_s: float) -> threading.Timer:
    timer = threading.Timer(after_s, tree.delete, [node])
    timer.daemon = True
    timer.start()
    return timer
