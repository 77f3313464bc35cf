"""hoodie.properties: a table's settings as a frozen value, checked before anything else is believed.

Key names are Hudi's (HoodieTableConfig) where Hudi has one; ours start with `hudi_assets.`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_assets.engine.errors import Conflict, CorruptTable, InvalidInput, UnsupportedTable
from hudi_assets.engine.model import MergeMode
from hudi_assets.engine.model.settings import is_true, listed, whole_number
from hudi_assets.engine.model.units import EVENT_TIME_UNIT, parse_latency
from hudi_assets.engine.storage import Storage
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.layout.interface import VERSION
from hudi_assets.engine.table.settings import key_generators
from hudi_assets.engine.table.settings.compaction import WHOLE_SLICES, CompactionSettings, parse_compaction_settings
from hudi_assets.engine.table.settings.indexes import INDEX_TYPE, IndexSettings, parse_index_settings
from hudi_assets.engine.table.settings.java_properties import parse_properties
from hudi_assets.engine.table.settings.merging import (
    EXACT_SPLIT,
    MERGE_MODE,
    MERGE_RULES,
    MERGER_STRATEGY,
    PAYLOAD_CLASS,
    TABLE_SERVICES,
    MergeSettings,
    evident_rules,
    parse_merge_settings,
)
from hudi_assets.engine.table.settings.parquet import ParquetSettings, parse_parquet_settings
from hudi_assets.engine.table.settings.stated import check_stated, in_known_names
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN, written_again
from hudi_assets.engine.timeline.writers_zone.evidence import SavedBy, saved_by
from hudi_assets.engine.timeline.zone import LOCAL, UTC, zone_of

PROPERTIES: Final = ".hoodie/hoodie.properties"
_BACKUP: Final = ".hoodie/hoodie.properties.backup"

EVENT_TIME_FIELD: Final = "hoodie.payload.event.time.field"
DATA_LATENCY: Final = "hudi_assets.data.latency"
CDC: Final = "hoodie.table.cdc.enabled"
LATENCY_QUANTILE: Final = "hudi_assets.data.latency.quantile"
AUTO: Final = "auto"
NAME_A_COLUMN: Final = f"name it by --event-time-field, event_time_field in the component's YAML, or {EVENT_TIME_FIELD}"
STATE_A_LATENCY: Final = (
    f"state one as 2h, or {AUTO}, which learns it from the commits, by --data-latency, data_latency in the component's "
    f"YAML, or {DATA_LATENCY} in hoodie.properties"
)
CLOCK: Final = "hudi_assets.clock"
WRITERS: Final = "hudi_assets.writers"
EXECUTOR: Final = "hudi_assets.executor"
NATIVE: Final = "native"
HUDI: Final = "hudi"
CARRY_OVER: Final = "hudi_assets.carry.over"
QUERY_GRACE: Final = "hudi_assets.query.grace"
QUERY_GRACE_LEAST: Final = "hudi_assets.query.grace.least"
HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE: Final = "hoodie.datasource.write.partitionpath.urlencode"
TIMEZONE: Final = "hoodie.table.timeline.timezone"
TIMELINE_ZONE: Final = "hudi_assets.timeline.zone"
METADATA_SWITCH_OFF: Final = "hudi_assets.metadata.switch.off"
DELETES_EVENT_TIME: Final = "hudi_assets.deletes.event.time"
PUBLISH_PARTITIONS: Final = "hudi_assets.publish.partitions"
ARCHIVE_BEYOND_CHECKPOINT: Final = "hudi_assets.archive.beyond.checkpoint"
LOG_BLOCK_FORMAT: Final = "hoodie.logfile.data.block.format"
LOG_FILE_MAX_SIZE: Final = "hoodie.logfile.max.size"
BUCKETS: Final = "hoodie.bucket.index.num.buckets"

# Beside all of hoodie.table.*: what may not differ from what the table was made with.
_MAKES_THE_TABLE: Final = frozenset(
    {BUCKETS, INDEX_TYPE, PAYLOAD_CLASS, MERGE_MODE, MERGER_STRATEGY, HIVE_STYLE, URL_ENCODE, CLOCK, MERGE_RULES}
    | {TIMELINE_ZONE}
)
# Beside those two: what the promise of a table rests on, and what of it is published.
_SAYS_HOW_TO_READ: Final = frozenset(
    {EVENT_TIME_FIELD, EVENT_TIME_UNIT, DATA_LATENCY, LATENCY_QUANTILE, DELETES_EVENT_TIME, WRITTEN_AGAIN}
    | {PUBLISH_PARTITIONS}
)
_OWN_SETTINGS: Final = (_SAYS_HOW_TO_READ - {EVENT_TIME_FIELD}).union(
    (CLOCK, WRITERS, EXECUTOR, CARRY_OVER, TABLE_SERVICES, EXACT_SPLIT, QUERY_GRACE, QUERY_GRACE_LEAST),
    (METADATA_SWITCH_OFF, MERGE_RULES, TIMELINE_ZONE, WHOLE_SLICES, ARCHIVE_BEYOND_CHECKPOINT),
)
_CHOICES: Final = {
    CLOCK: ("system", "commit"),
    WRITERS: ("locked", "stopped"),
    EXECUTOR: (NATIVE, HUDI),
    CARRY_OVER: ("auto", "hardlink", "symlink", "copy"),
    TIMEZONE: ("utc", "local"),
    LOG_BLOCK_FORMAT: ("parquet", "avro"),
    METADATA_SWITCH_OFF: ("true", "false"),
    DELETES_EVENT_TIME: ("latency", "commit"),
    PUBLISH_PARTITIONS: ("true", "false"),
    WHOLE_SLICES: ("true", "false"),
    ARCHIVE_BEYOND_CHECKPOINT: ("true", "false"),
}


@dataclass(frozen=True, slots=True)
class TableConfig:
    """What hoodie.properties says, with the caller's settings laid over it.

    `data_latency_ms` is the time from an event to its commit, in ms; None when the owner stated none, or where it is
    learned from the commits (`data_latency_auto`), at `latency_quantile` of the records. `created_here`: this project
    made the table (its clock is stated). `writers` says how other engines' writers behave on a version 6 table
    ("locked", "stopped"; None: nothing stated, so nothing is planned). `buckets_given`: the bucket count is the
    caller's word only. `timezone` is that of the instants: UTC, LOCAL or an IANA name (`timeline/zone.py`). `saved_by`:
    what Hudi's writer of hoodie.properties said of its own clock.
    """

    name: str
    table_version: int
    record_key: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    event_time_field: str | None
    event_time_unit: str | None
    partition_fields: tuple[str, ...]
    key_generator: str | None
    hive_style: bool
    url_encode: bool
    buckets: int | None
    complex_keys: bool
    timezone: str
    create_schema: str | None
    data_latency_ms: int | None
    data_latency_auto: bool
    latency_quantile: float
    clock: str
    writers: str | None
    carry_over: str
    log_block_format: str
    log_file_max_size: int
    buckets_given: bool
    created_here: bool
    compaction: CompactionSettings
    merging: MergeSettings
    index: IndexSettings
    parquet: ParquetSettings
    properties: Mapping[str, str] = field(repr=False, compare=False)
    saved_by: SavedBy | None = field(default=None, compare=False)

    @property
    def partitioned(self) -> bool:
        return bool(self.partition_fields)

    @property
    def states_utc(self) -> bool:
        """True where the table itself says that every engine makes its instants in UTC."""
        return self.properties.get(TIMEZONE, LOCAL).upper() == UTC

    @property
    def executor(self) -> str:
        """Who executes compactions: "native" (this project) or "hudi" (Apache Hudi's Spark bundle)."""
        return self.properties.get(EXECUTOR, NATIVE).lower()

    @property
    def deletes_count_at_commit(self) -> bool:
        """True where a delete without event time counts as an event of its commit's time: the owner's word."""
        return self.properties.get(DELETES_EVENT_TIME, "").lower() == "commit"

    @property
    def publishes_partitions(self) -> bool:
        """True where a catalog is told the freshness of each partition too."""
        return is_true(self.properties, PUBLISH_PARTITIONS)

    def merge_mode(self, where: str) -> MergeMode:
        """How our merge orders the records of a key.

        Asked by whatever merges or writes log records. Raises `UnsupportedTable` where our merge does not know the
        table's rules, and says who can.
        """
        self.refuse_merge(where)
        assert self.merging.mode is not None
        return self.merging.mode

    def refuse_merge(self, where: str) -> None:
        """Raise `UnsupportedTable` where this project does not merge the table's log records."""
        problem = self.merging.not_merged
        if problem is not None:
            raise UnsupportedTable(problem.what, where=where, hint=problem.hint)

    def refuse_other_files(self, where: str) -> None:
        """Raise `UnsupportedTable` where files are of another kind: such a table can be looked at alone."""
        problem = self.merging.not_merged
        if problem is not None and not problem.hudi_can:
            raise UnsupportedTable(problem.what, where=where, hint=problem.hint)

    @property
    def keeps_changes(self) -> bool:
        """True where Hudi's writers keep change data. A compaction changes none: Hudi tells it from log files."""
        return is_true(self.properties, CDC)

    @property
    def ordering_field(self) -> str:
        """The one ordering field; empty where the table has none, or several."""
        return self.ordering_fields[0] if len(self.ordering_fields) == 1 else ""

    @property
    def ordered_by_event_time(self) -> bool:
        """True where the ordering field, or the first of several, is the event-time field."""
        return self.event_time_field is not None and self.ordering_fields[:1] == (self.event_time_field,)


def read_config(storage: Storage, settings: Mapping[str, str] | None = None) -> TableConfig:
    """Read, check and overlay a table's settings; refuses by name what this version cannot handle."""
    path = next((p for p in (PROPERTIES, _BACKUP) if storage.exists(p)), None)
    if path is None:
        missing = "No such directory" if not storage.is_directory("") else "This is no Hudi table"
        raise InvalidInput(
            f"{missing}: it has no .hoodie/hoodie.properties.",
            where=storage.base,
            hint="Give the table's base path.",
        )
    try:
        text = storage.read(path).decode("latin-1")
        properties = parse_properties(text)
    except ValueError as error:
        raise CorruptTable(f"hoodie.properties cannot be parsed: {error}.", where=storage.base) from error
    properties, overlay = in_known_names(properties), in_known_names(settings or {})
    _check_overlay(properties, overlay, storage.base)
    check_stated(properties, overlay, storage.base)
    config = for_store(parse_config(properties, storage.base, overlay), storage)
    buckets_given = BUCKETS in overlay and BUCKETS not in properties
    return replace(config, buckets_given=buckets_given, created_here=CLOCK in properties, saved_by=saved_by(text))


def for_store(config: TableConfig, storage: Storage) -> TableConfig:
    """The settings as they hold on this store: where nothing is carried over, plans take whole slices."""
    layout = layout_of(config.table_version, storage.base)
    # With an exact split nothing is planned there at all.
    if config.merging.exact_split or not layout.late_requests_harm(storage.capabilities):
        return config
    return replace(config, compaction=replace(config.compaction, whole_slices=True))


def refuse_other_version(storage: Storage, config: TableConfig) -> None:
    """Raise `Conflict` where the table has another version by now than the settings that it was opened with.

    Writers of Apache Hudi 1.x upgrade a table by themselves. Its timeline is in another folder then, and the one that
    is looked at has nothing on it.
    """
    try:
        found = parse_properties(storage.read(PROPERTIES).decode("latin-1")).get(VERSION, "").strip()
    except (FileNotFoundError, ValueError):  # whoever changes the file takes it away for a moment
        return
    before = config.properties.get(VERSION, "").strip()
    if found and found != before:
        raise Conflict(
            f"The table has version {found} by now, and had {before} when it was opened.",
            where=storage.base,
            hint="Open it again: versions differ in where files are and what they are called.",
        )


def _check_overlay(properties: Mapping[str, str], overlay: Mapping[str, str], where: str) -> None:
    """What makes the table is its own word: with another key or bucket count, rows would come twice."""
    for key, given in overlay.items():
        stated = properties.get(key)
        if stated is not None and stated != given and (key.startswith("hoodie.table.") or key in _MAKES_THE_TABLE):
            raise InvalidInput(
                f"The table has {key}={stated}, not {given}.",
                where=where,
                hint="Leave it out: it was settled when the table was created.",
            )


def says_how_to_read(key: str) -> bool:
    """True for a setting by which a table's rows, columns and event times are read; False for what only writers ask."""
    return key in _SAYS_HOW_TO_READ or key in _MAKES_THE_TABLE or key.startswith("hoodie.table.")


def check_own_settings(properties: Mapping[str, str], where: str) -> None:
    """Check the settings that are this project's own, before a table is opened with them.

    Args:
        properties: Keys and values, as given to `HudiTable.open`. Keys of Hudi's own are not looked at, but for those
            with a choice of values.
        where: What errors name: a table, or a file of settings.

    Raises:
        InvalidInput: A key of `hudi_assets.` does not exist, or a value is no choice. The error lists what may be. Or
            two of them contradict each other.
    """
    for key in properties:
        if key.startswith("hudi_assets.") and key not in _OWN_SETTINGS:
            raise InvalidInput(
                f"There is no setting {key}.", where=where, hint=f"There are: {', '.join(sorted(_OWN_SETTINGS))}."
            )
    written_again(properties, where)
    for key, choices in _CHOICES.items():
        if key in properties and properties[key].lower() not in choices:
            raise InvalidInput(f"{key} is {properties[key]!r}.", where=where, hint=f"It may be: {', '.join(choices)}.")
    if is_true(properties, EXACT_SPLIT) and is_true(properties, WHOLE_SLICES):
        raise InvalidInput(
            f"{EXACT_SPLIT} and {WHOLE_SLICES} contradict each other: what is taken above the threshold would be put "
            "into another log file.",
            where=where,
            hint="Leave one of them out.",
        )


def parse_config(own: Mapping[str, str], where: str, given: Mapping[str, str] | None = None) -> TableConfig:
    """The settings as a value. Raises `UnsupportedTable` or `InvalidInput`, naming key and value.

    `own`: the table's properties. `given`: what goes over them for this process.
    """
    stated = {**own, **(given or {})}
    _refuse_unsupported(stated, where)
    check_own_settings(stated, where)
    layout = layout_of(whole_number(stated, VERSION, 0, where=where), where)
    properties = {**evident_rules(own, layout), **stated}
    get = properties.get
    record_key = listed(get("hoodie.table.recordkey.fields"))
    merging = parse_merge_settings(properties, layout, where)
    latency = get(DATA_LATENCY)
    learned = (latency or "").strip().lower() == AUTO
    return TableConfig(
        name=get("hoodie.table.name", "table"),
        table_version=layout.version,
        record_key=record_key,
        ordering_fields=merging.ordering_fields,
        event_time_field=get(EVENT_TIME_FIELD) or None,
        event_time_unit=get(EVENT_TIME_UNIT) or None,
        # CustomKeyGenerator's fields have their kind behind a colon.
        partition_fields=tuple(name.partition(":")[0] for name in listed(get("hoodie.table.partition.fields"))),
        key_generator=key_generators.stated_generator(properties),
        hive_style=is_true(properties, HIVE_STYLE),
        url_encode=is_true(properties, URL_ENCODE),
        buckets=whole_number(properties, BUCKETS, 0, where=where) or None,
        # With one key field, ComplexKeyGenerator too writes the bare value (tried with 0.15.0).
        complex_keys=len(record_key) > 1,
        timezone=_timezone(properties, where),
        create_schema=get("hoodie.table.create.schema"),
        data_latency_ms=parse_latency(latency) if latency and not learned else None,
        data_latency_auto=learned,
        latency_quantile=_quantile(properties, where),
        clock=get(CLOCK, "system").lower(),
        writers=get(WRITERS, "").lower() or None,
        carry_over=get(CARRY_OVER, "auto").lower(),
        log_block_format=get(LOG_BLOCK_FORMAT, "parquet").lower(),
        log_file_max_size=whole_number(properties, LOG_FILE_MAX_SIZE, 1 << 30, where=where),
        buckets_given=False,
        created_here=CLOCK in properties,
        compaction=parse_compaction_settings(properties, where),
        merging=merging,
        index=parse_index_settings(properties, where),
        parquet=parse_parquet_settings(properties, where),
        properties=properties,
    )


def _refuse_unsupported(properties: Mapping[str, str], where: str) -> None:
    get = properties.get
    kind = get("hoodie.table.type", "").upper()
    if kind != "MERGE_ON_READ":
        raise UnsupportedTable(
            f"The table is {kind or 'of no stated type'}, not MERGE_ON_READ.",
            where=where,
            hint="Only merge-on-read tables have log files to compact.",
        )
    key = "hoodie.table.base.file.format"
    if get(key, "PARQUET").upper() != "PARQUET":
        # Nobody could say which of its files is a slice's base file.
        raise UnsupportedTable(f"The table's base files are not Parquet ({key}={get(key)}).", where=where)


def _timezone(properties: Mapping[str, str], where: str) -> str:
    """The zone of the instants: UTC, or what the owner states beside LOCAL, or LOCAL: this process's own."""
    stated = properties.get(TIMELINE_ZONE, "").strip()
    named = properties.get(TIMEZONE, LOCAL).upper()
    try:
        zone_of(stated or named)
    except ValueError:
        hint = "Give an IANA name: America/Los_Angeles, Asia/Kolkata, Etc/GMT+8 (which is UTC-08:00)."
        raise InvalidInput(f"{TIMELINE_ZONE} is {stated!r}.", where=where, hint=hint) from None
    if named == UTC and stated not in ("", UTC):
        what = f"{TIMELINE_ZONE} is {stated}, and the table's instants are in UTC ({TIMEZONE})."
        raise InvalidInput(what, where=where, hint="Leave it out.")
    return stated or named


def _quantile(properties: Mapping[str, str], where: str) -> float:
    text = properties.get(LATENCY_QUANTILE) or "0.99"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise InvalidInput(f"{LATENCY_QUANTILE} is {text!r}.", where=where, hint="Give one above 0, up to 1.")
    return value
