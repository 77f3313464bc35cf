"""Index settings of a table: Hudi's own keys (HoodieIndexConfig, HoodieStorageConfig) and defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.bloom import BloomFilterType, BloomSettings
from hudi_assets.engine.model.settings import choice, whole_number

INDEX_TYPE: Final = "hoodie.index.type"
BLOOM_ENABLED: Final = "hoodie.parquet.bloom.filter.enabled"
BLOOM_ENTRIES: Final = "hoodie.index.bloom.num_entries"
BLOOM_ERROR_RATE: Final = "hoodie.index.bloom.fpp"
BLOOM_TYPE: Final = "hoodie.bloom.index.filter.type"
BLOOM_MAX_ENTRIES: Final = "hoodie.bloom.index.filter.dynamic.max.entries"

BUCKET: Final = "BUCKET"
LOOKED_UP: Final = ("SIMPLE", "BLOOM")  # in the base files of the key's partition
# HoodieIndex.IndexType of 0.15 and 1.2.
_TYPES: Final = (
    BUCKET,
    "BLOOM",
    "GLOBAL_BLOOM",
    "SIMPLE",
    "GLOBAL_SIMPLE",
    "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX",
    "RECORD_LEVEL_INDEX",
    "INMEMORY",
    "HBASE",
    "FLINK_STATE",
)
_LARGEST: Final = (1 << 31) - 1  # Java's int


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """`type`: what the settings say (None: nothing). `bloom_enabled`: base files get a filter; None: where needed."""

    type: str | None
    bloom_enabled: bool | None
    bloom: BloomSettings


def parse_index_settings(properties: Mapping[str, str], where: str) -> IndexSettings:
    """The settings as a value. Raises `InvalidInput`, naming key and value."""
    default = BloomSettings()
    bloom = BloomSettings(
        entries=whole_number(properties, BLOOM_ENTRIES, default.entries, where=where, least=1, most=_LARGEST),
        error_rate=_rate(properties, default.error_rate, where),
        max_entries=whole_number(
            properties, BLOOM_MAX_ENTRIES, default.max_entries, where=where, least=1, most=_LARGEST
        ),
        type=BloomFilterType(choice(properties, BLOOM_TYPE, tuple(BloomFilterType), where=where) or default.type),
    )
    if bloom.bits > _LARGEST:
        raise InvalidInput(
            f"A bloom filter for {bloom.entries} keys with false positives of {bloom.error_rate} is too large.",
            where=where,
            hint=f"Give a smaller {BLOOM_ENTRIES} or a greater {BLOOM_ERROR_RATE}.",
        )
    enabled = choice(properties, BLOOM_ENABLED, ("true", "false"), where=where)
    return IndexSettings(
        type=choice(properties, INDEX_TYPE, _TYPES, where=where),
        bloom_enabled=None if enabled is None else enabled == "true",
        bloom=bloom,
    )


def _rate(properties: Mapping[str, str], default: float, where: str) -> float:
    text = (properties.get(BLOOM_ERROR_RATE) or str(default)).strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise InvalidInput(f"{BLOOM_ERROR_RATE} is {text!r}.", where=where, hint="Give a number above 0 and below 1.")
    return value
