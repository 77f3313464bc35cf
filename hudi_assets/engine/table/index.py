"""Which kind of index a table's writers use, told by its file groups, and what follows from it.

Hudi keeps the index type in no property of the table: it is each writer's setting. But the bucket index names its
file groups after their buckets, and every other index gives them random names.
"""

from __future__ import annotations

from functools import partial

from hudi_assets.engine.errors import InvalidInput, UnsupportedTable
from hudi_assets.engine.format.bloom import BloomSettings
from hudi_assets.engine.model.settings import listed
from hudi_assets.engine.table.record_keys import bucket_of
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.settings.indexes import BUCKET, INDEX_TYPE, LOOKED_UP
from hudi_assets.engine.table.settings.merging import EXACT_SPLIT
from hudi_assets.engine.table.settings.stated import HASH_FIELD
from hudi_assets.engine.table.slices.parts import Part
from hudi_assets.engine.table.state import TableState

# A random UUID begins with three zeros and digits once in 40,000 times; a bucket's file id always does.
_MOST_BUCKETS = 100_000
_SURE = 2  # so many file groups are not all named like buckets by chance
_THEIR_OWN = "Let the engine that wrote it go on writing it: compacting, cleaning and reading it here is supported."
# HoodieTableMetaClient.PARTITION_BUCKET_INDEX_HASHING_FOLDER (1.1 on)
_OWN_COUNTS = ".hoodie/.bucket_index/partition_bucket_index_meta"


def names_bucket(file_id: str) -> bool:
    """True for a file id that the bucket index gives."""
    bucket = bucket_of(file_id)
    return bucket is not None and bucket < _MOST_BUCKETS


def has_bucket_index(state: TableState) -> bool:
    """True where every file group is a bucket's, surely or by the settings' word, and they do not say otherwise."""
    stated, groups = state.config.index.type, sum(part.counts.file_groups for part in state.parts.values())
    return _may_have_bucket_index(state) and (stated == BUCKET or not groups or groups >= _SURE)


def _may_have_bucket_index(state: TableState) -> bool:
    if state.config.index.type not in (None, BUCKET):
        return False
    return all(part.tell(_names_buckets, partial(_names_buckets, part)) for part in state.parts.values())


def _names_buckets(part: Part) -> bool:
    return all(map(names_bucket, part.file_ids))


def leaves_no_row_behind(state: TableState) -> bool:
    """True where a row whose partition columns change goes to their partition, now and as far back as files are left.

    An index of keys over all partitions may leave it where it was (hoodie.record.index.update.partition.path, …).
    """
    if looks_keys_up(state.config):
        return True
    return has_bucket_index(state) and all(names_bucket(file_id) for _, file_id in state.view_with_replaced.groups)


def bloom_filter_of(state: TableState) -> BloomSettings | None:
    """The filter that a new base file carries; None: none, as a bucket index never asks for it."""
    settings = state.config.index
    enabled = not has_bucket_index(state) if settings.bloom_enabled is None else settings.bloom_enabled
    return settings.bloom if enabled else None


def check_exact_split(state: TableState) -> None:
    """Refuse an exact split where an index finds keys in base files only.

    A key whose older rows are deleted would be in the residue log alone, and Hudi's writer would insert it again.
    """
    if state.config.merging.exact_split and not has_bucket_index(state):
        raise InvalidInput(
            f"{EXACT_SPLIT} needs the bucket index: other indexes look for keys in base files only.",
            where=state.storage.base,
            hint=f"Leave {EXACT_SPLIT} out: the read-optimized view then also holds newer records.",
        )


def looks_keys_up(config: TableConfig) -> bool:
    """True where the settings say that keys are looked up in the files of their partition."""
    return config.index.type in LOOKED_UP


def refuse_writes(state: TableState) -> None:
    """Refuse to write a table where a row may not get to its key's file group, so that the key would come twice."""
    stated, groups = state.config.index.type, state.view.groups
    other = next((file_id for _, file_id in groups if not names_bucket(file_id)), None)
    if looks_keys_up(state.config):
        if groups and other is None:
            raise InvalidInput(
                f"{INDEX_TYPE} is {stated}, but all file groups are named as the bucket index names them.",
                where=state.storage.base,
                hint=f"Leave {INDEX_TYPE} out, and give hoodie.bucket.index.num.buckets.",
            )
        return
    _refuse_other_buckets(state)
    if stated not in (None, BUCKET):
        raise UnsupportedTable(
            f"Tables with {INDEX_TYPE}={stated} are not written.",
            where=state.storage.base,
            hint=f"Written are {BUCKET}, {' and '.join(LOOKED_UP)}; let the engine that wrote it go on writing it: "
            "compacting, cleaning and reading it here is supported.",
        )
    if other is not None:
        raise UnsupportedTable(
            f"File group {other} is not a bucket's: the table's index is not the bucket index.",
            where=state.storage.base,
            hint=f"State {INDEX_TYPE} as its writers have it: {' and '.join(LOOKED_UP)} are written, the others only "
            "compacted, cleaned and read.",
        )


def _refuse_other_buckets(state: TableState) -> None:
    """Refuse to place rows in buckets that are counted, or hashed, in another way than ours."""
    config, where = state.config, state.storage.base
    if state.storage.is_directory(_OWN_COUNTS):
        raise UnsupportedTable(
            f"The table's partitions have bucket counts of their own ({_OWN_COUNTS}).",
            where=where,
            hint=_THEIR_OWN,
        )
    hashed = listed(config.properties.get(HASH_FIELD))
    if hashed and hashed != config.record_key:
        raise UnsupportedTable(
            f"Buckets are told by {HASH_FIELD}={','.join(hashed)}, not by the whole record key "
            f"({','.join(config.record_key)}).",
            where=where,
            hint=_THEIR_OWN,
        )
