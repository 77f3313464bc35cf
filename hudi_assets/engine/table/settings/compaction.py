"""The settings that decide when a compaction is planned and what it takes: Hudi's keys and defaults.

From org.apache.hudi.config.HoodieCompactionConfig (0.15). The default strategy and trigger are this
project's own; a table that names one of Hudi's gets Hudi's default trigger with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.plans import _PACKAGE, StrategyName
from hudi_assets.engine.model.settings import choice, is_true, whole_number

STRATEGY: Final = "hoodie.compaction.strategy"
TARGET_IO: Final = "hoodie.compaction.target.io"
LOG_SIZE_THRESHOLD: Final = "hoodie.compaction.logfile.size.threshold"
LOG_NUM_THRESHOLD: Final = "hoodie.compaction.logfile.num.threshold"
TARGET_PARTITIONS: Final = "hoodie.compaction.daybased.target.partitions"
TRIGGER: Final = "hoodie.compact.inline.trigger.strategy"
MAX_DELTA_COMMITS: Final = "hoodie.compact.inline.max.delta.commits"
MAX_DELTA_SECONDS: Final = "hoodie.compact.inline.max.delta.seconds"
WHOLE_SLICES: Final = "hudi_assets.compaction.whole.slices"
PARQUET_MAX_FILE_SIZE: Final = "hoodie.parquet.max.file.size"
SMALL_FILE_LIMIT: Final = "hoodie.parquet.small.file.limit"
# Of org.apache.hudi.config.HoodieMemoryConfig: what a task may hold; the rest goes through in passes (Hudi: to disk).
COMPACTION_MEMORY: Final = "hoodie.memory.compaction.max.size"
MERGE_MEMORY: Final = "hoodie.memory.merge.max.size"
LEAST_MEMORY: Final = 1 << 20

_DEFAULTS: Final = {
    TARGET_IO: 500 * 1024,
    LOG_SIZE_THRESHOLD: 0,
    LOG_NUM_THRESHOLD: 0,
    TARGET_PARTITIONS: 10,
    MAX_DELTA_COMMITS: 5,
    MAX_DELTA_SECONDS: 3600,
    PARQUET_MAX_FILE_SIZE: 120 * 1024 * 1024,
    SMALL_FILE_LIMIT: 100 * 1024 * 1024,
    COMPACTION_MEMORY: 1024 * 1024 * 1024,
    MERGE_MEMORY: 1024 * 1024 * 1024,
}


class TriggerName(StrEnum):
    """When a compaction is due (CompactionTriggerStrategy), and this project's EVENT_TIME_TRIGGER."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"
    EVENT_TIME = "EVENT_TIME_TRIGGER"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Sizes in bytes, I/O in MB (2^20 bytes).

    `io_bound` and `partition_bound` are set only where the owner states them: event-time compaction has
    no bound otherwise, while Hudi's strategies take `target_io` and `target_partitions`, their defaults.
    `whole_slices`: an event-time compaction takes all of a file slice of which it takes anything.
    """

    strategy: StrategyName = StrategyName.EVENT_TIME
    trigger: TriggerName = TriggerName.EVENT_TIME
    target_io: int = _DEFAULTS[TARGET_IO]
    log_size_threshold: int = _DEFAULTS[LOG_SIZE_THRESHOLD]
    log_num_threshold: int = _DEFAULTS[LOG_NUM_THRESHOLD]
    target_partitions: int = _DEFAULTS[TARGET_PARTITIONS]
    max_delta_commits: int = _DEFAULTS[MAX_DELTA_COMMITS]
    max_delta_seconds: int = _DEFAULTS[MAX_DELTA_SECONDS]
    base_file_size: int = _DEFAULTS[PARQUET_MAX_FILE_SIZE]
    small_file_limit: int = _DEFAULTS[SMALL_FILE_LIMIT]
    memory: int = _DEFAULTS[COMPACTION_MEMORY]
    merge_memory: int = _DEFAULTS[MERGE_MEMORY]
    io_bound: int | None = None
    partition_bound: int | None = None
    whole_slices: bool = False

    @property
    def by_event_time(self) -> bool:
        """Whether event times decide what a compaction takes."""
        return self.strategy is StrategyName.EVENT_TIME

    @property
    def due_by_event_time(self) -> bool:
        """Whether they decide when one of Hudi's strategies compacts."""
        return not self.by_event_time and self.trigger is TriggerName.EVENT_TIME


def parse_compaction_settings(properties: Mapping[str, str], where: str) -> CompactionSettings:
    """The settings as a value. Raises `InvalidInput`, naming key and value."""
    numbers = {key: whole_number(properties, key, default, where=where, least=0) for key, default in _DEFAULTS.items()}
    strategy = _strategy(properties.get(STRATEGY), where)
    event_time = strategy is StrategyName.EVENT_TIME
    return CompactionSettings(
        strategy=strategy,
        trigger=_trigger(properties, event_time, where),
        target_io=numbers[TARGET_IO],
        log_size_threshold=numbers[LOG_SIZE_THRESHOLD],
        log_num_threshold=numbers[LOG_NUM_THRESHOLD],
        target_partitions=numbers[TARGET_PARTITIONS],
        max_delta_commits=numbers[MAX_DELTA_COMMITS],
        max_delta_seconds=numbers[MAX_DELTA_SECONDS],
        base_file_size=numbers[PARQUET_MAX_FILE_SIZE],
        small_file_limit=numbers[SMALL_FILE_LIMIT],
        memory=max(LEAST_MEMORY, numbers[COMPACTION_MEMORY]),
        merge_memory=max(LEAST_MEMORY, numbers[MERGE_MEMORY]),
        io_bound=numbers[TARGET_IO] if properties.get(TARGET_IO) else None,
        partition_bound=numbers[TARGET_PARTITIONS] if properties.get(TARGET_PARTITIONS) else None,
        whole_slices=is_true(properties, WHOLE_SLICES),
    )


def _strategy(text: str | None, where: str) -> StrategyName:
    if not text:
        return StrategyName.EVENT_TIME
    name = text.strip().removeprefix(_PACKAGE)
    found = next((one for one in StrategyName if one.value == name), None)
    if found is None:
        raise InvalidInput(
            f"{STRATEGY} is {text!r}, which is no strategy known here.",
            where=where,
            hint=f"It may be, with or without its package: {', '.join(StrategyName)}.",
        )
    return found


def _trigger(properties: Mapping[str, str], event_time: bool, where: str) -> TriggerName:
    stated = choice(properties, TRIGGER, tuple(TriggerName), where=where)
    if stated is None:
        return TriggerName.EVENT_TIME if event_time else TriggerName.NUM_COMMITS
    return TriggerName(stated)
