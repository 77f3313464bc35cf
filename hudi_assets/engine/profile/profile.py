"""What a table tells about itself: one reading of it, and a sample of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model.profile import TableProfile
from hudi_assets.engine.model.units import EventTimeUnit
from hudi_assets.engine.profile import timeline
from hudi_assets.engine.profile.columns import Asked, choose
from hudi_assets.engine.profile.sample import SampledFile, may_be_event_time, sample
from hudi_assets.engine.table.metadata.partitions import has_metadata_table
from hudi_assets.engine.table.settings.config import DATA_LATENCY
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.transaction.lock_providers import LOCK_PROVIDER


def profile_of(state: TableState) -> TableProfile:
    """The profile of one reading; `Conflict` where the table has no schema yet."""
    config, files, seen = state.config, sample(state), timeline.writers(state)
    asked = Asked(
        ordering=config.ordering_field or None,
        partitions=config.partition_fields,
        stated=config.event_time_field,
        unit=config.event_time_unit or (EventTimeUnit.MILLIS if config.created_here else None),
        quantile=config.latency_quantile,
    )
    names = [field.name for field in state.data_schema if may_be_event_time(field.type)]
    return TableProfile(
        path=state.storage.base,
        name=config.name,
        table_version=config.table_version,
        record_key=config.record_key,
        partition_fields=config.partition_fields,
        ordering_field=asked.ordering,
        stated_field=asked.stated,
        stated_unit=asked.unit,
        stated_latency=config.properties.get(DATA_LATENCY),
        choice=choose(names, files, asked, partial(_committed_ms, state)),
        sampled_files=len(files),
        sampled_rows=_rows(files),
        zone_problem=None if state.zone_problem is None else state.zone_problem.what,
        writers=seen,
        services=timeline.services(state),
        cleaner=timeline.cleaner(state),
        lock=config.properties.get(LOCK_PROVIDER),
        needs_stated_writers=state.layout.needs_stated_writers,
        metadata_table=has_metadata_table(state.storage),
        commits=sum(one.commits for one in seen),
        pace_ms=timeline.pace_ms(state),
        file_groups=len(state.view.groups),
        remaining_log_files=len(state.remaining_logs),
        remaining_bytes=sum(log.size for log in state.remaining_logs),
        pending=tuple(plan.instant for plan in state.executable_plans),
    )


def _rows(files: tuple[SampledFile, ...]) -> int:
    return sum(len(file.rows) for file in files)


def _committed_ms(state: TableState, instant: str) -> int | None:
    """When a row was committed, epoch ms; None where that is not known."""
    if state.config.clock == "commit":
        return state.derive(_clock_times).get(instant)
    if state.zone_problem is not None:
        return None
    try:
        return instant_ms(instant, state.config.timezone, second_pass=True)
    except CorruptTable:
        return None


def _clock_times(state: TableState) -> Mapping[str, int]:
    """Of a replayed stream: each commit's time, as far as they are on the active timeline."""
    times = ((instant.timestamp, commit.clock_time) for instant, commit in state.commits_newest_first())
    return {instant: clock_ms for instant, clock_ms in times if clock_ms is not None}
