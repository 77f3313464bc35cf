"""The commits from which Hudi's streaming writers go on.

Hudi Streamer and Spark's streaming sink keep how far they have read in their commits' metadata. They go back through
the active timeline until a commit has it (StreamerCheckpointUtils, CommitUtils.getValidCheckpointForCurrentWriter). Of
a merge-on-read table the streamer sees the delta commits alone, as long as there is one. What was archived they do not
look at: the streamer then begins anew, by its source's own default. Hudi's archiver does not see to that (apache/hudi
17848).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from hudi_assets.engine.model.settings import is_true
from hudi_assets.engine.table.settings.config import ARCHIVE_BEYOND_CHECKPOINT
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import WRITES

_STREAMER: Final = (
    "deltastreamer.checkpoint.key",
    "deltastreamer.checkpoint.reset_key",
    "streamer.checkpoint.key.v2",
    "streamer.checkpoint.reset.key.v2",
)
_SINK: Final = "_hudi_streaming_sink_checkpoint"


def last_checkpoints(state: TableState) -> Mapping[str, str]:
    """The newest write with the checkpoint of each stream → whose it is. None where the owner lets them go."""
    if is_true(state.config.properties, ARCHIVE_BEYOND_CHECKPOINT):
        return {}
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for instant in reversed(state.timeline.completed(*WRITES)):
        for whose in _streams(state.commit(instant).extra):
            # The streamer passes over what is no delta commit: it may need an older one.
            if (whose, instant.action) not in seen:
                seen.add((whose, instant.action))
                found.setdefault(instant.timestamp, whose)
    return found


def _streams(extra: Mapping[str, str]) -> Iterator[str]:
    """Whose checkpoints a commit has."""
    if any(extra.get(key) for key in _STREAMER):
        yield "Hudi Streamer"
    if noted := extra.get(_SINK):
        for name in _identifiers(noted):
            yield f"Spark's streaming sink {name}".rstrip()


def _identifiers(noted: str) -> tuple[str, ...]:
    """The sink's checkpoint maps each query's identifier to its batch (CommitUtils.getCheckpointValueAsString)."""
    try:
        value = json.loads(noted)
    except ValueError:
        return ("",)
    return tuple(map(str, value)) if isinstance(value, dict) else ("",)
