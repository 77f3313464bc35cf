"""What readers were told of a table's freshness: what the events of the asset `freshness` say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from dagster import AssetKey, EventLogEntry

from hudi_assets.catalog.publication import stated_freshness, stated_instant
from hudi_assets.engine import iso

# The highest freshness that readers were ever told, as ISO-8601.
PROMISED = "highest_published_freshness"


class Events(Protocol):
    """Who tells what was made last: Dagster's instance, or what a tick knows of it."""

    def get_latest_materialization_event(self, asset_key: AssetKey, /) -> EventLogEntry | None: ...


def told_metadata(instance: Events, key: AssetKey, published: Mapping[str, str]) -> dict[str, str]:
    """What readers are told: the highest freshness ever, and the compaction on which what is published rests.

    Of what was published, and not of a look: publishing reads the table anew.
    """
    highest = iso(highest_promise(instance, key, published))
    return {PROMISED: highest or "none", "last_compaction": stated_instant(published) or "none"}


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
