"""What is published of a table: properties, and how to tell whether they are still true."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Protocol

from hudi_assets.engine import Freshness, Publication, PublishedPartitions, iso

PREFIX = "hudi_assets."
PATH = "hudi_assets.path"
VIEW_DIGEST = "hudi_assets.view_digest"
# Another one with each publication: by it a publisher notices that somebody else came between.
PUBLICATION = "hudi_assets.publication"
# Which table beside the views has the freshness of each partition, and what it says.
PARTITIONS = "hudi_assets.partitions"
_PARTITIONS_DIGEST = "hudi_assets.partitions_digest"
_WATERMARK_MS = "hudi_assets.watermark_ms"
_NULL = "null"
# What a look is compared by. `computed_at` is when somebody looked: it makes nothing untrue.
_FRESHNESS_MS = "hudi_assets.freshness_ms"
_INSTANT = "hudi_assets.instant"
REASON = "hudi_assets.reason"
_NAMED = 3  # a catalog takes no property of any length
_COMPUTED_AT = "hudi_assets.computed_at"
_EACH_TIME = (PUBLICATION, _COMPUTED_AT, f"{_COMPUTED_AT}_ms")
_SAYS = (_FRESHNESS_MS, "hudi_assets.threshold_ms", _INSTANT, REASON)


class Current(Protocol):
    """What decides whether a publication is still true: a `Look`, or less of a table that cannot be planned."""

    @property
    def freshness(self) -> Freshness: ...

    @property
    def view_digest(self) -> str: ...

    @property
    def partitions(self) -> PublishedPartitions | None: ...


def properties_of(publication: Publication, partition_table: str | None = None) -> dict[str, str]:
    """The properties of both views, or of both synced tables.

    `partition_table`: where the freshness of each partition is published, if it is.
    """
    promise = promise_properties(publication.freshness, publication.path, publication.instant_ms)
    told = publication.partitions
    if told is not None and partition_table is not None:
        watermark = _NULL if told.watermark is None else str(told.watermark)
        promise |= {PARTITIONS: partition_table, _PARTITIONS_DIGEST: told.digest, _WATERMARK_MS: watermark}
    return promise | {VIEW_DIGEST: publication.view_digest, PUBLICATION: uuid.uuid4().hex}


def promise_properties(freshness: Freshness, path: str, instant_ms: int | None) -> dict[str, str]:
    """The promise of the table at `path`. Times as ISO-8601 UTC and as epoch ms; an unknown one is the word `null`."""
    properties = {PATH: path, _INSTANT: freshness.instant or _NULL}
    times = {
        "freshness": freshness.freshness,
        "threshold": freshness.threshold,
        "computed_at": freshness.computed_at,
        "instant_time": instant_ms,
    }
    for name, value in times.items():
        properties[f"hudi_assets.{name}"] = iso(value) or _NULL
        properties[f"hudi_assets.{name}_ms"] = _NULL if value is None else str(value)
    # Rows in no view keep a known freshness from moving on.
    if why := freshness.reason or "; ".join(rows.words for rows in freshness.hidden[:_NAMED]):
        properties[REASON] = why
    return properties


def replaced(old: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Parameters with ours in the place of those that we set before; nothing else changes."""
    return {key: value for key, value in old.items() if not key.startswith(PREFIX)} | dict(properties)


def said_already(
    told: Iterable[Mapping[str, str]], beside: Mapping[str, str] | None, properties: Mapping[str, str]
) -> dict[str, str] | None:
    """The properties that are published, where they say what `properties` do; None where something differs.

    `told`: the parameters of each entry. `beside`: of the table with the freshness of the partitions; None: there is
    none. All have to be of one publication. When somebody looked makes no difference.
    """
    ours = [{key: value for key, value in one.items() if key.startswith(PREFIX)} for one in told]
    first = ours[0]
    publication = first.get(PUBLICATION)
    if publication is None or any(one != first for one in ours) or _lasting(first) != _lasting(properties):
        return None
    together = beside is None if PARTITIONS not in first else (beside or {}).get(PUBLICATION) == publication
    return first if together else None


def _lasting(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in _EACH_TIME}


def what_differs(published: Mapping[str, str], seen: Current, *, files: bool, step_ms: int = 0) -> str | None:
    """Why the published properties are no longer true, in words; None where they are.

    `files`: the view names files, so it matters which. A freshness that has moved on by less than `step_ms` is none.
    """
    promise = seen.freshness
    now = promise_properties(promise, published.get(PATH, ""), None)
    if files and published.get(VIEW_DIGEST) != seen.view_digest:
        return "the read-optimized view names other files or columns than the table has"
    changed = [key for key in _SAYS if published.get(key) != now.get(key)]
    if not changed or (changed == [_FRESHNESS_MS] and 0 < _moved(published, promise.freshness) < step_ms):
        return _partitions_differ(published, seen.partitions, step_ms)
    if changed[0] != _FRESHNESS_MS:
        return f"the published {changed[0].removeprefix(PREFIX).removesuffix('_ms')} is not the table's"
    return f"the freshness is {iso(promise.freshness) or 'unknown'}, and {_stated(published)} is published"


def _partitions_differ(published: Mapping[str, str], told: PublishedPartitions | None, step_ms: int) -> str | None:
    """A table stands still by its hottest partition: the others' freshness moves on all the same."""
    if told is None or PARTITIONS not in published:
        stands = PARTITIONS in published
        if told is None and not stands:
            return None
        return f"the freshness of each partition is {'published, and not' if stands else 'not published, but'} wanted"
    if published.get(_PARTITIONS_DIGEST) != told.digest:
        return "the published freshness of a partition is not the table's"
    said = published.get(_WATERMARK_MS, _NULL)
    if told.watermark is None or not said.lstrip("-").isdigit():
        return None if said == _NULL and told.watermark is None else "the published watermark is not the table's"
    by = told.watermark - int(said)
    return None if by == 0 or 0 < by < step_ms else "the freshness of partitions in which nothing waits has moved"


def stated_freshness(published: Mapping[str, str]) -> int | None:
    """The freshness that readers are told, epoch ms; None where it is unknown."""
    said = published.get(_FRESHNESS_MS, _NULL)
    return int(said) if said.lstrip("-").isdigit() else None


def stated_instant(published: Mapping[str, str]) -> str | None:
    """The last compaction that readers are told; None where there was none."""
    said = published.get(_INSTANT, _NULL)
    return None if said == _NULL else said


def _moved(published: Mapping[str, str], now: int | None) -> int:
    """By how many milliseconds the freshness has moved on; 0 where it has not, or where one is unknown."""
    said = stated_freshness(published)
    return 0 if now is None or said is None else now - said


def _stated(published: Mapping[str, str]) -> str:
    value = published.get("hudi_assets.freshness", _NULL)
    return "an unknown one" if value == _NULL else value
