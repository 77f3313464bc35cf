"""The key generator of a table's writers, which hoodie.properties states by its class or by its type. Pure.

From org.apache.hudi.keygen.constant.KeyGeneratorType: 0.15.0 states the class, 1.2.0 the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_assets.engine.errors import UnsupportedTable

CLASS: Final = "hoodie.table.keygenerator.class"
TYPE: Final = "hoodie.table.keygenerator.type"

_PACKAGE: Final = "org.apache.hudi.keygen."
NONPARTITIONED: Final = _PACKAGE + "NonpartitionedKeyGenerator"
SIMPLE: Final = _PACKAGE + "SimpleKeyGenerator"
COMPLEX: Final = _PACKAGE + "ComplexKeyGenerator"
_CLASS_OF: Final = {"NON_PARTITION": NONPARTITIONED, "SIMPLE": SIMPLE, "COMPLEX": COMPLEX}
_AVRO: Final = "_AVRO"  # Flink's and the streamer's, over Avro records: the same keys and paths


def generator_of(keys: int, partition_fields: int) -> str:
    """The class that Hudi takes for so many record key and partition fields."""
    if partition_fields == 0:
        return NONPARTITIONED
    return SIMPLE if (keys, partition_fields) == (1, 1) else COMPLEX


def stated_generator(properties: Mapping[str, str]) -> str | None:
    """What the table states: a class, or a type whose class we do not know; None where it states nothing."""
    stated = properties.get(CLASS)
    if stated:
        plain = stated.replace("AvroKeyGenerator", "KeyGenerator")
        return plain if joins_values(plain) else stated
    kind = properties.get(TYPE)
    return _CLASS_OF.get(kind.upper().removesuffix(_AVRO), kind) if kind else None


def joins_values(generator: str | None) -> bool:
    """True where a partition path is the partition fields' values, as text, and nothing else.

    Others make it of a timestamp's parts, for instance, or of a text of their own.
    """
    return generator in (NONPARTITIONED, SIMPLE, COMPLEX)


def refuse_other_paths(generator: str | None, where: str) -> None:
    """Refuse to write where a row's partition path would be another than the table's own writers make."""
    if generator is not None and not joins_values(generator):
        raise UnsupportedTable(
            f"The table's partition paths are made by {generator}, which is not supported for writing.",
            where=where,
            hint="Let the engine that wrote it go on writing it; compacting, cleaning and reading it is supported.",
        )
