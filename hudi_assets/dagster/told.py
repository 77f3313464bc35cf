"""What readers were told of a table's freshness, and how soon: what the events of the asset `freshness` say."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from dagster import AssetKey, DagsterInstance, EventLogEntry, MetadataValue

from hudi_assets.catalog.publication import stated_freshness, stated_instant
from hudi_assets.engine import iso

# The highest freshness that readers were ever told, as ISO-8601.
PROMISED = "highest_published_freshness"
# How many seconds runs took besides their compactions, from when they were asked for to the publication: the latest.
BESIDES = "seconds_besides_compactions"
_LATEST: Final = 10
# Of so many measurements the longest may be an accident.
_MANY: Final = 5


class Events(Protocol):
    """Who tells what was made last: Dagster's instance, or what a tick knows of it."""

    def get_latest_materialization_event(self, asset_key: AssetKey, /) -> EventLogEntry | None: ...


def told_metadata(
    instance: Events, key: AssetKey, published: Mapping[str, str], besides: float | None = None
) -> dict[str, Any]:
    """What readers are told: the highest freshness ever, and the compaction on which what is published rests.

    Of what was published, and not of a look: publishing reads the table anew. `besides`: of a run that compacted, how
    many seconds it took besides. Every event keeps those of the runs before, so that the last one tells all.
    """
    highest = iso(highest_promise(instance, key, published))
    measured = _measured(latest_metadata(instance, key)) + ([] if besides is None else [round(besides, 1)])
    return {
        PROMISED: highest or "none",
        "last_compaction": stated_instant(published) or "none",
        **({BESIDES: MetadataValue.json(measured[-_LATEST:])} if measured else {}),
    }


def seconds_besides(instance: DagsterInstance, run_id: str, compacting: float) -> float | None:
    """For how long a run has been there since it was asked for, but for the seconds in which it compacted."""
    record = instance.get_run_record_by_id(run_id)
    return None if record is None else max(0.0, time.time() - record.create_timestamp.timestamp() - compacting)


def publish_ms(metadata: Mapping[str, Any], most_ms: int) -> int | None:
    """How long a run takes besides its compaction, by the latest ones; None where none was measured.

    The longest, or of many the second: one that waited in a queue for hours is no rule. Of few it counts for no more
    than `most_ms`: else nothing could wait any more.
    """
    longest = sorted(_measured(metadata), reverse=True)
    if not longest:
        return None
    if len(longest) >= _MANY:
        return round(1000 * longest[1])
    return min(round(1000 * longest[0]), most_ms)


def _measured(metadata: Mapping[str, Any]) -> list[float]:
    found = metadata.get(BESIDES)
    if not isinstance(found, list):
        return []
    return [float(one) for one in found if isinstance(one, int | float) and one >= 0]


def highest_promise(instance: Events, key: AssetKey, published: Mapping[str, str]) -> int | None:
    """The highest freshness (epoch ms) that readers were told, `published` included; None where there was none.

    Late data makes the freshness fall back, and what has come late is told by what was promised before. What
    was promised on a compaction that has been rolled back since is forgotten.
    """
    known = promised_before(instance, key, stated_instant(published))
    return max((one for one in (known, stated_freshness(published)) if one is not None), default=None)


def promised_before(instance: Events, key: AssetKey, last_compaction: str | None) -> int | None:
    """The highest freshness (epoch ms) that readers were told so far, of a table with this last compaction."""
    earlier = latest_metadata(instance, key)
    instant = earlier.get("last_compaction", earlier.get("instant"))
    undone = isinstance(instant, str) and instant != "none" and instant > (last_compaction or "")
    return None if undone else told_ms(earlier, PROMISED, old="promised_ms")


def latest_metadata(instance: Events, key: AssetKey) -> dict[str, Any]:
    """Metadata of the asset's last materialization; empty where there was none."""
    event = instance.get_latest_materialization_event(key)
    if event is None or event.asset_materialization is None:
        return {}
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


def told_ms(metadata: Mapping[str, Any], name: str, *, old: str) -> int | None:
    """A point in time of an event's metadata, as epoch ms; events of earlier days have it as a number, named `old`."""
    number = metadata.get(old)
    if isinstance(number, int):
        return number
    try:
        return round(datetime.fromisoformat(str(metadata.get(name))).timestamp() * 1000)
    except ValueError:
        return None  # "none": there was none
