"""How base files are written: Hudi's keys of org.apache.hudi.config.HoodieStorageConfig."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.settings import whole_number

CODEC: Final = "hoodie.parquet.compression.codec"
BLOCK_SIZE: Final = "hoodie.parquet.block.size"
DICTIONARY: Final = "hoodie.parquet.dictionary.enabled"

# Parquet's name of a codec (CompressionCodecName) → pyarrow's. The others have no reader in a plain Spark (LZO,
# BROTLI), or are framed as Hadoop does it, which pyarrow does not write (LZ4).
_CODECS: Final = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4_raw": "lz4", "uncompressed": "none"}


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """`codec` as pyarrow names it. `block_size`: bytes of rows, before encoding, of one row group; None: not stated."""

    codec: str = "zstd"
    block_size: int | None = None
    dictionary: bool = True


BY_DEFAULT: Final = ParquetSettings()


def parse_parquet_settings(properties: Mapping[str, str], where: str) -> ParquetSettings:
    """The settings as a value. Raises `InvalidInput`, naming key and value.

    The codec is zstd where none is stated, while Hudi takes gzip: it writes many times slower.
    """
    return ParquetSettings(_codec(properties, where), _block_size(properties, where), _dictionary(properties, where))


def _codec(properties: Mapping[str, str], where: str) -> str:
    stated = properties.get(CODEC)
    if stated is None:
        return _CODECS["zstd"]
    # Hudi takes an empty text for no compression.
    name = stated.strip().lower() or "uncompressed"
    if name not in _CODECS:
        raise InvalidInput(f"{CODEC} is {stated!r}.", where=where, hint=f"It may be: {', '.join(_CODECS)}.")
    return _CODECS[name]


def _block_size(properties: Mapping[str, str], where: str) -> int | None:
    return whole_number(properties, BLOCK_SIZE, None, where=where, least=1) if BLOCK_SIZE in properties else None


def _dictionary(properties: Mapping[str, str], where: str) -> bool:
    text = properties.get(DICTIONARY, "true")
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInput(f"{DICTIONARY} is {text!r}.", where=where, hint="It may be: true, false.")
    return text.strip().lower() == "true"
