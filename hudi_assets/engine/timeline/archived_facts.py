"""What must outlive the archiving of commits: thresholds, ranges and origins of remaining log files, batch ids, and
which files are in no view (`table.files.hidden`).

A commit's metadata is out of reach once an archiver, ours or Hudi's, has moved it away; so what is still needed is
kept in the table's scratch folder, at the looks before that. It is believed only for instants before the active
timeline's start. A later one that is not on the timeline was rolled back: it is forgotten before the start passes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final, NamedTuple

from hudi_assets.engine.storage import SCRATCH, Storage
from hudi_assets.engine.timeline.checked_json import as_json, seal, seal_pieces, sealed_text, unseal
from hudi_assets.engine.timeline.commit_metadata import EVENT_TIME, CommitMetadata
from hudi_assets.engine.timeline.stat_columns import stats_in

MEMORY: Final = f"{SCRATCH}/memory.json"
_MOST_BATCHES: Final = 10_000
_LOGS_AT_ONCE: Final = 10_000


class LogMemory(NamedTuple):
    """A write stat of ours: the commit that stated it, the log file's size then, event times in epoch ms."""

    instant: str
    size: int
    min_event_time: int
    max_event_time: int
    deletes: int


@dataclass(frozen=True, slots=True)
class EventTimeMemory:
    """What was stated for one event-time column: (instant, threshold) of the last compaction, log files by path."""

    threshold: tuple[str, int] | None = None
    logs: Mapping[str, LogMemory] = field(default_factory=dict)

    def only(self, stands: Callable[[str], bool]) -> EventTimeMemory:
        threshold = self.threshold if self.threshold is not None and stands(self.threshold[0]) else None
        return EventTimeMemory(threshold, {path: log for path, log in self.logs.items() if stands(log.instant)})


class HiddenMemory(NamedTuple):
    """A file in no view: its delta commit, when that was completed, and its size; what it lies behind, and that
    one's action. `made_of`: the base instant that its write read, "null" where it is not known."""

    delta_commit: str
    completion: str
    size: int
    behind: str
    action: str
    made_of: str = "null"


@dataclass(frozen=True, slots=True)
class Memory:
    """`columns`: event-time column and unit → what is remembered; `batches`: batch id → instant.

    `origins`: compaction → the log files that it carried over, each with the path where its bytes first were written.
    `hidden`: files in no view, by path.
    """

    columns: Mapping[str, EventTimeMemory] = field(default_factory=dict)
    batches: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hidden: Mapping[str, HiddenMemory] = field(default_factory=dict)

    def of(self, tag: str) -> EventTimeMemory:
        return self.columns.get(tag, EventTimeMemory())

    def only(self, stands: Callable[[str], bool]) -> Memory:
        """Without what instants said that do not stand: once the timeline's start has passed one, nobody can tell."""
        columns = {tag: column.only(stands) for tag, column in self.columns.items()}
        batches = {batch: instant for batch, instant in self.batches.items() if stands(instant)}
        hidden = {path: log for path, log in self.hidden.items() if stands(log.delta_commit)}
        return Memory(columns, batches, {i: links for i, links in self.origins.items() if stands(i)}, hidden)


def stated_logs(
    commits: Iterable[tuple[str, CommitMetadata]], tag: str, paths: Collection[str]
) -> dict[str, LogMemory]:
    """What commits of ours (instant, metadata) state for an event-time column of the files at `paths`."""
    found = {}
    partitions = {path.rpartition("/")[0] for path in paths}
    for instant, commit in commits:
        if commit.extra.get(EVENT_TIME) != tag:
            continue
        for stat in stats_in(commit.stats, partitions):
            low, high = stat.min_event_time, stat.max_event_time
            if stat.path in paths and low is not None and high is not None:
                found[stat.path] = LogMemory(instant, stat.size, low, high, stat.num_deletes)
    return found


def newest_batches(batches: Mapping[str, str]) -> dict[str, str]:
    """As many of the batches as are kept, the newest ones."""
    return dict(sorted(batches.items(), key=lambda item: item[1])[-_MOST_BATCHES:])


@dataclass(frozen=True)
class KeptMemory:
    """The memory as it is kept: what it was made from, and the rest, which is read when it is asked for.

    `made_from` names the commits that it holds all of ("": it does not say); `oldest` is the oldest instant of which
    it holds log files ("": none); `thresholds` are the columns' (instant, threshold); `hides`: it holds files that
    are in no view.
    """

    made_from: str = ""
    oldest: str = ""
    thresholds: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    body: Callable[[], bytes] = bytes
    hides: bool = False

    @cached_property
    def memory(self) -> Memory:
        try:
            body = json.loads(self.body())
            columns = {tag: _column(value) for tag, value in body["columns"].items()}
            origins = {str(instant): _texts(links) for instant, links in body.get("origins", {}).items()}
            hidden = {str(path): _hidden(entry) for path, entry in body.get("hidden", {}).items()}
            return Memory(columns, _texts(body["batches"]), origins, hidden)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Memory()


def read_memory(storage: Storage) -> KeptMemory:
    """The table's memory; empty where there is none, or none that can be read: then log files are scanned."""
    try:
        first, _, rest = storage.read(MEMORY).partition(b"\n")
        head = unseal(first)
        if "columns" in head:  # kept before there was a head
            old = KeptMemory(oldest="0", body=partial(sealed_text, first))
            return replace(old, thresholds=_thresholds(old.memory))
        thresholds = {str(tag): (str(stated[0]), int(stated[1])) for tag, stated in head["thresholds"].items()}
        sealed_text(rest)  # damaged, it is made anew while its commits are still there
        body = partial(_body_of, storage)
        return KeptMemory(str(head["made_from"]), str(head["oldest"]), thresholds, body, bool(head.get("hides")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return KeptMemory()


def _body_of(storage: Storage) -> bytes:
    """What comes after the head. Kept anew meanwhile, it is as true: it is believed only for archived instants."""
    return sealed_text(storage.read(MEMORY).partition(b"\n")[2])


def _thresholds(memory: Memory) -> dict[str, tuple[str, int]]:
    return {tag: column.threshold for tag, column in memory.columns.items() if column.threshold is not None}


def _texts(body: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in body.items()}


def _column(body: Mapping[str, Any]) -> EventTimeMemory:
    stated = body["threshold"]
    return EventTimeMemory(
        threshold=(str(stated[0]), int(stated[1])) if stated else None,
        logs={
            str(path): LogMemory(str(entry[0]), int(entry[1]), int(entry[2]), int(entry[3]), int(entry[4]))
            for path, entry in body["logs"].items()
        },
    )


def _hidden(entry: Sequence[Any]) -> HiddenMemory:
    delta_commit, completion, size, behind, action, *made_of = entry  # once it was kept without
    known = HiddenMemory(str(delta_commit), str(completion), int(size), str(behind), str(action))
    return known._replace(made_of=str(made_of[0])) if made_of else known


def write_memory(storage: Storage, memory: Memory, made_from: str) -> None:
    """Keep the memory, over what was kept before. Raises OSError where this process may only read."""
    instants = (entry.instant for column in memory.columns.values() for entry in column.logs.values())
    head: dict[str, Any] = {
        "made_from": made_from,
        "oldest": min(instants, default=""),
        "thresholds": _thresholds(memory),
    }
    head |= {"hides": True} if memory.hidden else {}
    storage.replace(MEMORY, b"\n".join((seal(head), seal_pieces(_pieces(memory)))))


def _pieces(memory: Memory) -> Iterator[str]:
    """The memory as JSON. There may be ten million log files: they come so many at a time."""
    yield '{"columns":{'
    for number, (tag, column) in enumerate(memory.columns.items()):
        threshold = list(column.threshold) if column.threshold else None
        yield f'{"," if number else ""}{as_json(tag)}:{{"threshold":{as_json(threshold)},"logs":{{'
        logs = iter(column.logs.items())
        before = ""
        while some := dict(islice(logs, _LOGS_AT_ONCE)):
            yield f"{before}{as_json(some)[1:-1]}"
            before = ","
        yield "}}"
    rest = {
        "batches": dict(memory.batches),
        "origins": {instant: dict(links) for instant, links in memory.origins.items()},
        "hidden": dict(memory.hidden),
    }
    yield f"}},{as_json(rest)[1:]}"
