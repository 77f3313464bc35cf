"""What a table's timeline tells of those who write it: who, at what pace, which table services, what a clean keeps."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.model.profile import SeenCleaner, SeenService, SeenWriter
from hudi_assets.engine.table.files.cleaned import read_cleans
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.timeline.instants import WRITES, instant_ms
from hudi_assets.engine.transaction import flink_job

# A key of a commit's extra metadata begins with the first → who writes such. Read in Hudi's source, not run.
_WRITERS: Final = {
    "_hudi_streaming_sink_checkpoint": "Spark Structured Streaming",
    "deltastreamer.": "Hudi Streamer",
    "streamer.checkpoint": "Hudi Streamer",
    "kafka.commit.offsets": "Kafka Connect",
    "flink": "Flink",
}
_OURS: Final = "hudi-assets"
_UNNAMED: Final = "its commits do not say by which engine"


def writers(state: TableState) -> tuple[SeenWriter, ...]:
    """Who made the delta commits of the active timeline, the one with the most of them first."""
    found: dict[str, list[str]] = {}
    left = flink_job.traces(state.storage)
    unnamed = f"Apache Hudi ({_UNNAMED}; a Flink job left {left[0]})" if left else f"Apache Hudi ({_UNNAMED})"
    for instant in state.timeline.completed(Action.DELTA_COMMIT):
        found.setdefault(_writer(state.commit(instant).extra, unnamed), []).append(instant.timestamp)
    seen = [SeenWriter(name, len(times), max(times), name == _OURS) for name, times in found.items()]
    return tuple(sorted(seen, key=lambda one: (-one.commits, one.name)))


def _writer(extra: Mapping[str, str], unnamed: str) -> str:
    if WRITER in extra:
        return _OURS
    return next((name for start, name in _WRITERS.items() if any(key.startswith(start) for key in extra)), unnamed)


def services(state: TableState) -> tuple[SeenService, ...]:
    """Compactions and clusterings that others completed, by what commits state; cleans are `cleaner`'s."""
    found: dict[str, list[str]] = {}
    for instant in state.timeline.completed(*WRITES):
        commit = state.commit(instant)
        plan = state.plan(instant.timestamp) if instant.action is Action.COMMIT else None
        if WRITER in commit.extra or (plan is not None and WRITER in plan.extra_metadata):
            continue
        name = _service(instant.action, commit.operation.upper())
        if name is not None:
            found.setdefault(name, []).append(instant.timestamp)
    return tuple(SeenService(name, len(times), max(times)) for name, times in sorted(found.items()))


def _service(action: Action, operation: str) -> str | None:
    if action is Action.COMMIT:
        return "compaction"
    if operation in ("CLUSTER", "LOG_COMPACT"):
        return "clustering" if operation == "CLUSTER" else "log compaction"
    return None


def cleaner(state: TableState) -> SeenCleaner | None:
    """The newest clean on the active timeline, and what it kept."""
    try:
        cleans = read_cleans(state)
    except (CorruptTable, FileNotFoundError):
        return None
    if not cleans:
        return None
    clean = cleans[-1]
    kept = None
    if clean.policy == "KEEP_LATEST_COMMITS" and clean.earliest_retained:
        writes = [i.timestamp for i in state.timeline.completed(*WRITES) if i.timestamp < clean.instant]
        if clean.earliest_retained in writes:
            kept = sum(1 for one in writes if one >= clean.earliest_retained)
    return SeenCleaner(clean.instant, clean.policy, kept, WRITER in clean.extra)


def pace_ms(state: TableState) -> int | None:
    """The median time between two delta commits; None where there are fewer than two."""
    times = [instant_ms(i.timestamp, "UTC") for i in state.timeline.completed(Action.DELTA_COMMIT)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return max(0, int(median(gaps))) if gaps else None
