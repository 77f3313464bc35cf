"""How often the sensor tries: runs that came to nothing are asked for less and less, whatever writers do meanwhile.

Three in a row at once, then one an hour, until one does what it was asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import takewhile
from typing import Final

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunRecord, RunsFilter

from hudi_assets.dagster.assets import HOUR_MS

# The state of the table that a run was asked for: `table:kind:…`.
STATE_TAG: Final = "hudi_assets/state"
COMPACT: Final = "compact"
QUICK_ATTEMPTS: Final = 3
# Enough to find the last three of a kind among runs of the other kinds.
_LATEST_RUNS: Final = 25
_ENDED: Final = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run that has ended: when it was asked for (epoch ms), and whether it did what it was asked for."""

    at_ms: int
    achieved: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """No run before `until_ms` (epoch ms), because the last `in_vain` ones came to nothing."""

    in_vain: int
    until_ms: int


def pause(attempts: Sequence[Attempt], now_ms: int) -> Pause | None:
    """Whether to wait before the next attempt; `attempts` are those so far, the newest first. Pure."""
    in_vain = list(takewhile(lambda attempt: not attempt.achieved, attempts))
    if len(in_vain) < QUICK_ATTEMPTS:
        return None
    until = max(attempt.at_ms for attempt in in_vain) + HOUR_MS
    return Pause(len(in_vain), until) if now_ms < until else None


def attempts_of(instance: DagsterInstance, tags: dict[str, str], state: str, asset: AssetKey) -> tuple[Attempt, ...]:
    """The attempts at what is to be done now (`state`), the newest first.

    `tags` are those of the table's runs, `asset` what a run has to make. A run of the sensor came to nothing if it did
    not succeed, or if it succeeded and left the table in the state that it was asked for. One that was asked for
    something else and failed says nothing of this, and one that compacted did its work, whatever failed beside it. One
    that a person started counts if it succeeded.
    """
    records = instance.get_run_records(RunsFilter(tags=tags, statuses=_ENDED), limit=_LATEST_RUNS)
    compacted = _last_maker(instance, asset) if records and _kind(state) == COMPACT else None
    found = []
    for record in records:
        run = record.dagster_run
        succeeded, asked_for = run.status is DagsterRunStatus.SUCCESS, run.tags.get(STATE_TAG)
        if run.run_id == compacted:
            found.append(Attempt(_created_ms(record), True))
            break  # what was before it does not count any more
        if succeeded and not _makes(run, asset):
            continue
        if succeeded or (asked_for is not None and _kind(asked_for) == _kind(state)):
            found.append(Attempt(_created_ms(record), succeeded and asked_for != state))
    return tuple(found)


def _kind(state: str) -> str:
    """What a run was asked for: the second part of the tag."""
    return state.split(":")[1]


def _last_maker(instance: DagsterInstance, asset: AssetKey) -> str | None:
    """The run that made the asset last, however it ended."""
    event = instance.get_latest_materialization_event(asset)
    return event.run_id if event is not None else None


def _makes(run: DagsterRun, asset: AssetKey) -> bool:
    return not run.asset_selection or asset in run.asset_selection


def _created_ms(record: RunRecord) -> int:
    created = record.create_timestamp
    return int((created if created.tzinfo else created.replace(tzinfo=UTC)).timestamp() * 1000)
