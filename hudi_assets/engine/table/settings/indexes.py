"""Index settings of a table: Hudi's own keys (HoodieIndexConfig, HoodieStorageConfig) and defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.format.bloom import BloomFilterType, BloomSettings

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
        entries=_count(properties, BLOOM_ENTRIES, default.entries, where),
        error_rate=_rate(properties, default.error_rate, where),
        max_entries=_count(properties, BLOOM_MAX_ENTRIES, default.max_entries, where),
        type=BloomFilterType(_choice(properties, BLOOM_TYPE, tuple(BloomFilterType), where) or default.type),
    )
    if bloom.bits > _LARGEST:
        raise InvalidInput(
            f"A bloom filter for {bloom.entries} keys with false positives of {bloom.error_rate} is too large.",
            where=where,
            hint=f"Give a smaller {BLOOM_ENTRIES} or a greater {BLOOM_ERROR_RATE}.",
        )
    enabled = _choice(properties, BLOOM_ENABLED, ("true", "false"), where)
    return IndexSettings(
        type=_choice(properties, INDEX_TYPE, _TYPES, where),
        bloom_enabled=None if enabled is None else enabled == "true",
        bloom=bloom,
    )


def _choice(properties: Mapping[str, str], key: str, choices: tuple[str, ...], where: str) -> str | None:
    text = (properties.get(key) or "").strip()
    found = next((one for one in choices if one.lower() == text.lower()), None)
    if text and found is None:
        raise InvalidInput(f"{key} is {text!r}.", where=where, hint=f"It may be: {', '.join(choices)}.")
    return found


def _count(properties: Mapping[str, str], key: str, default: int, where: str) -> int:
    text = (properties.get(key) or str(default)).strip()
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _LARGEST:
        raise InvalidInput(f"{key} is {text!r}.", where=where, hint=f"Give a whole number from 1 to {_LARGEST}.")
    return int(text)


def _rate(properties: Mapping[str, str], default: float, where: str) -> float:
    text = (properties.get(BLOOM_ERROR_RATE) or str(default)).strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise InvalidInput(f"{BLOOM_ERROR_RATE} is {text!r}.", where=where, hint="Give a number above 0 and below 1.")
    return value
