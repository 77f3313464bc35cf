"""What the header of a block of ours says of its records' event times, so that its content need not be read. Pure.

It stands as custom properties in the Avro schema of the SCHEMA header, the one place that every reader of Hudi reads
past: an unknown header key makes them fail. `docs/reference/log_format.md` lists them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.log_file.codec import MIN_EVENT_TIME_PROPERTY, LogBlock, min_event_time

MAX_EVENT_TIME_PROPERTY: Final = "hoodie.max.event.time"
COLUMN_PROPERTY: Final = "hudi_assets.event.time"
INSTANT_PROPERTY: Final = "hudi_assets.instant"
CLOCK_PROPERTY: Final = "hudi_assets.clock.time"
DELETES_PROPERTY: Final = "hudi_assets.deletes"
BARRIERS_PROPERTY: Final = "hudi_assets.deletes.in.commit.order"
UNDATED_ROWS_PROPERTY: Final = "hudi_assets.rows.without.event.time"
UNDATED_DELETES_PROPERTY: Final = "hudi_assets.deletes.without.event.time"
_COUNTS: Final = (DELETES_PROPERTY, BARRIERS_PROPERTY, UNDATED_ROWS_PROPERTY, UNDATED_DELETES_PROPERTY)
_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """The event times of one data or delete block. Event times epoch ms.

    `column`: event-time column and unit, as `ts:ms`. `low` and `high` are the range of the records that have an event
    time (None: there are none); the minimum counts rows too that a newer row of their key beat in the same batch.
    `deletes` counts all deletes, `barriers` those in commit order; `undated_rows` and `undated_deletes` what has no
    event time. `clock_ms` is the commit's clock time in a replayed stream.
    """

    column: str
    low: int | None = None
    high: int | None = None
    deletes: int = 0
    barriers: int = 0
    undated_rows: int = 0
    undated_deletes: int = 0
    clock_ms: int | None = None


def with_block_times(schema_json: str, times: BlockTimes, instant: str) -> str:
    """The Avro schema of a block that `instant` writes, with what is known of its records' event times."""
    schema = json.loads(schema_json)
    if not isinstance(schema, dict):
        raise InvalidInput("A log block's schema has to be an Avro record.")
    schema[COLUMN_PROPERTY] = times.column
    # A schema may be taken over into a block of another writer: there it says nothing.
    schema[INSTANT_PROPERTY] = instant
    numbers = (times.deletes, times.barriers, times.undated_rows, times.undated_deletes)
    schema |= dict(zip(_COUNTS, numbers, strict=True))
    if times.low is not None and times.high is not None:
        schema |= {MIN_EVENT_TIME_PROPERTY: times.low, MAX_EVENT_TIME_PROPERTY: times.high}
    if times.clock_ms is not None:
        schema[CLOCK_PROPERTY] = times.clock_ms
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def block_times(block: LogBlock, column: str) -> BlockTimes | None:
    """What `with_block_times` wrote of this column; None where that has to be told from the content."""
    schema = _schema_about(block, column)
    if schema is None:
        return None
    counts: list[Any] = [schema.get(name) for name in _COUNTS]
    low, high, clock_ms = (schema.get(n) for n in (MIN_EVENT_TIME_PROPERTY, MAX_EVENT_TIME_PROPERTY, CLOCK_PROPERTY))
    if not all(_is_long(n) and n >= 0 for n in counts):
        return None
    if not all(n is None or _is_long(n) for n in (low, high, clock_ms)):
        return None
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        return None
    deletes, barriers, undated_rows, undated_deletes = counts
    return BlockTimes(column, low, high, deletes, barriers, undated_rows, undated_deletes, clock_ms)


def stated_minimum(block: LogBlock, column: str) -> int | None:
    """The minimum alone, where the header says no more that can be believed; that of an older header of any column."""
    if block.schema is not None and COLUMN_PROPERTY not in block.schema:
        return min_event_time(block.schema)
    return min_event_time(block.schema) if _schema_about(block, column) is not None else None


def _schema_about(block: LogBlock, column: str) -> dict[str, Any] | None:
    """The block's schema, where its properties are about this column and this block."""
    if block.schema is None or COLUMN_PROPERTY not in block.schema:
        return None
    try:
        schema = json.loads(block.schema)
    except (ValueError, RecursionError):
        return None
    if not isinstance(schema, dict) or schema.get(COLUMN_PROPERTY) != column:
        return None
    return schema if schema.get(INSTANT_PROPERTY) == block.instant_time else None


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64
