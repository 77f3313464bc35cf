"""Hudi's keys in settings that are given for this process: 1.x's new names, and what is not done here and so refused.

A key that nothing here reads is passed over where it changes neither rows nor what is kept (parallelism, memory of a
writer, reporting). One that would change them has to be refused, or its owner would rely on what does not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.settings import is_true
from hudi_assets.engine.table.settings.merging import (
    MERGE_MODE,
    ORDERING_FIELD,
    ORDERING_FIELDS,
    PAYLOAD_CLASS,
    TABLE_SERVICES,
)

RECORD_KEY: Final = "hoodie.table.recordkey.fields"
PARTITION_FIELDS: Final = "hoodie.table.partition.fields"
HASH_FIELD: Final = "hoodie.bucket.index.hash.field"

# HoodieCleanConfig of 1.x gives these the new name, and takes the old one where the new one is not stated.
_NEW_NAMES: Final = {
    "hoodie.clean.policy": "hoodie.cleaner.policy",
    "hoodie.clean.commits.retained": "hoodie.cleaner.commits.retained",
    "hoodie.clean.fileversions.retained": "hoodie.cleaner.fileversions.retained",
    "hoodie.clean.hours.retained": "hoodie.cleaner.hours.retained",
}


@dataclass(frozen=True, slots=True)
class _NotDone:
    """What is not done here, in words; `same`: the value that asks for nothing else than what is done."""

    words: str
    hint: str
    same: str | None = None


_EACH_TIME = _NotDone(
    "a clean is made whenever it is asked for", "State hoodie.clean.automatic=false to have none.", "1"
)
_ALL_CLEANED = _NotDone(
    "a clean goes through all partitions", "Let Hudi clean this table: hoodie.clean.automatic=false."
)
_BY_AGE = _NotDone("partitions are not deleted by their age", "Let Hudi's writers or its procedure do it.", "false")
_BY_PATH = _NotDone("partitions are not chosen by their paths", "Bound a compaction by hoodie.compaction.target.io.")
_NOT_DONE: Final = {
    "hoodie.clean.max.commits": _EACH_TIME,
    "hoodie.clean.trigger.max.commits": _EACH_TIME,
    "hoodie.clean.partition.filter.regex": _ALL_CLEANED,
    "hoodie.clean.partition.filter.selected": _ALL_CLEANED,
    "hoodie.cleaner.partition.filter.regex": _ALL_CLEANED,
    "hoodie.cleaner.partition.filter.selected": _ALL_CLEANED,
    "hoodie.archive.beyond.savepoint": _NotDone(
        "an archiving stops at the first savepoint", "Give savepoints up.", "false"
    ),
    "hoodie.partition.ttl.inline": _BY_AGE,
    "hoodie.compaction.partition.path.regex": _BY_PATH,
    "hoodie.compaction.plan.generator": _NotDone("plans are made here", "Choose a hoodie.compaction.strategy."),
    "hoodie.bucket.index.partition.expressions": _NotDone(
        "each partition has the same number of buckets", "Let the engine that wrote the table go on writing it."
    ),
}

# A writer's option, and what the table itself says of the same; the first of these that it states counts.
_OF_THE_TABLE: Final = {
    "hoodie.datasource.write.table.type": ("hoodie.table.type",),
    "hoodie.datasource.write.recordkey.field": (RECORD_KEY,),
    "hoodie.datasource.write.partitionpath.field": (PARTITION_FIELDS,),
    "hoodie.datasource.write.precombine.field": (ORDERING_FIELDS, ORDERING_FIELD),
    "hoodie.datasource.write.payload.class": (PAYLOAD_CLASS,),
    "hoodie.write.record.merge.mode": (MERGE_MODE,),
    "hoodie.write.table.version": ("hoodie.table.version",),
    HASH_FIELD: (HASH_FIELD,),
}
_WRITERS_COMPACT: Final = (
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.compaction.async.enable",
)


def in_known_names(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings with 1.x's names of keys as the engine reads them; where both are stated, 1.x's counts, as with Hudi."""
    renamed = {old: settings[new] for new, old in _NEW_NAMES.items() if new in settings}
    return {**settings, **renamed}


def check_stated(properties: Mapping[str, str], given: Mapping[str, str], where: str) -> None:
    """Raise `InvalidInput` for a setting given that is not followed, or contradicts the table (`properties`)."""
    for key, value in given.items():
        if properties.get(key) == value:
            continue
        undone = _NOT_DONE.get(key)
        if undone is not None and value.strip().lower() != undone.same:
            raise InvalidInput(f"{key}={value} is not followed: {undone.words}.", where=where, hint=undone.hint)
        stated = next((properties[k] for k in _OF_THE_TABLE.get(key, ()) if properties.get(k)), None)
        if stated is not None and _listed(stated) != _listed(value):
            raise InvalidInput(
                f"{key} is {value}, and the table has {stated}.",
                where=where,
                hint="Leave it out: it was settled when the table was created.",
            )
    _check_services({**properties, **given}, where)


def _listed(text: str) -> list[str]:
    """The fields of a list; the type of a complex key generator's partition field (`p:simple`) left out."""
    return [part.strip().split(":")[0].lower() for part in text.split(",")]


def _check_services(settings: Mapping[str, str], where: str) -> None:
    ours = settings.get(TABLE_SERVICES, "").strip().lower() == "ours"
    for key in _WRITERS_COMPACT if ours else ():
        if is_true(settings, key):
            raise InvalidInput(
                f"{TABLE_SERVICES}=ours says that no service of Hudi's touches the table, {key}=true that one does.",
                where=where,
                hint="Switch them off in every writer; or leave hudi_assets.table.services out.",
            )
