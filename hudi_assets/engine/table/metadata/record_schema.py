"""The Avro schema of the metadata table's records (org.apache.hudi.avro.model.HoodieMetadataRecord).

Every block and base file brings the schema that it was written with, and readers resolve it: a file of either schema
is read by 0.15 and 1.x. These two are for a metadata table without an earlier file to take it from.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from hudi_assets.engine.format.avro.schema import META_COLUMNS
from hudi_assets.engine.format.hfile.file import Flavour

_TEXT: Final = {"type": "string", "avro.java.string": "String"}
_Fields = list[dict[str, Any]]


@cache
def record_schema(flavour: Flavour) -> str:
    """As JSON: 0.15.0's for HBASE, 1.2.0's for NATIVE."""
    recent = flavour is Flavour.NATIVE
    fields: _Fields = [_optional(name, "string") for name in META_COLUMNS]
    fields += [_field("key", _TEXT), _field("type", "int")]
    fields.append(_field("filesystemMetadata", ["null", {"type": "map", "values": _file_info(), **_java_text()}]))
    fields.append(_optional("BloomFilterMetadata", _bloom_filter()))
    fields.append(_optional("ColumnStatsMetadata", _column_stats(recent)))
    fields.append(_optional("recordIndexMetadata", _record_index(recent)))
    if recent:
        secondary = _record("HoodieSecondaryIndexInfo", [_field("isDeleted", "boolean")])
        fields.append(_optional("SecondaryIndexMetadata", secondary))
    return json.dumps({**_record("HoodieMetadataRecord", fields), "namespace": "org.apache.hudi.avro.model"})


def _java_text() -> dict[str, str]:
    return {"avro.java.string": "String"}


def _record(name: str, fields: _Fields) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _optional(name: str, *kinds: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", *kinds], "default": None}


def _file_info() -> dict[str, Any]:
    return _record("HoodieMetadataFileInfo", [_field("size", "long"), _field("isDeleted", "boolean")])


def _bloom_filter() -> dict[str, Any]:
    fields = [_field("type", _TEXT), _field("timestamp", _TEXT), _field("bloomFilter", "bytes")]
    return _record("HoodieMetadataBloomFilter", [*fields, _field("isDeleted", "boolean")])


def _column_stats(recent: bool) -> dict[str, Any]:
    values = _values(recent)
    names = [wrapper["name"] for wrapper in values]
    fields = [
        _optional("fileName", _TEXT),
        _optional("columnName", _TEXT),
        _optional("minValue", *values),
        _optional("maxValue", *names),
        *(_optional(name, "long") for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        _field("isDeleted", "boolean"),
    ]
    if recent:
        kind = _record("HoodieValueTypeInfo", [_field("typeOrdinal", "int"), _optional("additionalInfo", _TEXT)])
        fields += [{**_field("isTightBound", "boolean"), "default": False}, _optional("valueType", kind)]
    return _record("HoodieMetadataColumnStats", fields)


def _values(recent: bool) -> list[dict[str, Any]]:
    """The records that a minimum or maximum is wrapped into: a union tells types apart by their names."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
    kinds: list[tuple[str, Any]] = [
        ("Boolean", "boolean"),
        ("Int", "int"),
        ("Long", "long"),
        ("Float", "float"),
        ("Double", "double"),
        ("Bytes", "bytes"),
        ("String", _TEXT),
        ("Date", "int"),
        ("Decimal", decimal),
        ("TimeMicros", {"type": "long", "logicalType": "time-micros"}),
        ("TimestampMicros", "long"),
        *([("LocalDate", "int")] if recent else []),
    ]
    wrappers = [_record(f"{kind}Wrapper", [_field("value", schema)]) for kind, schema in kinds]
    if recent:
        items = ["null", *(wrapper["name"] for wrapper in wrappers)]
        wrappers.append(_record("ArrayWrapper", [_optional("wrappedValues", {"type": "array", "items": items})]))
    return wrappers


def _record_index(recent: bool) -> dict[str, Any]:
    fields = [
        _optional("partitionName", _TEXT),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _TEXT),
        _optional("instantTime", "long"),
        {**_field("fileIdEncoding", "int"), "default": 0},
        *([_optional("position", "long")] if recent else []),
    ]
    return _record("HoodieRecordIndexInfo", fields)
