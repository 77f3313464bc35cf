"""One record in an Avro container file, which every Avro file on the timeline is; pieces of Hudi's schemas."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

import fastavro

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.container import checked

NAMESPACE: Final = "org.apache.hudi.avro.model"
STRING: Final = {"type": "string", "avro.java.string": "String"}
STRINGS: Final = {"type": "array", "items": STRING}
MAGIC: Final = b"Obj\x01"


def map_of(values: object) -> dict[str, object]:
    return {"type": "map", "values": values, "avro.java.string": "String"}


def optional(name: str, type_: object) -> dict[str, object]:
    return {"name": name, "type": ["null", type_], "default": None}


def record(name: str, fields: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def version_field(default: int = 1) -> dict[str, object]:
    return {"name": "version", "type": ["int", "null"], "default": default}


def encode(schema: Mapping[str, object], value: Mapping[str, Any]) -> bytes:
    """One record as an Avro container file."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(dict(schema), named_schemas={}), [value])
    return out.getvalue()


def decode(data: bytes, where: str) -> dict[str, Any]:
    """The one record of an Avro container file, in its writer's schema."""
    try:
        records = list(fastavro.reader(io.BytesIO(checked(data, "timeline file", where))))
    except CorruptTable:
        raise
    except Exception as error:  # fastavro raises many kinds on damaged bytes
        raise CorruptTable(f"A timeline file cannot be parsed: {error}.", where=where) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTable("A timeline file does not hold one record.", where=where)
    return records[0]
