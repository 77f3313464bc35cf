"""Configurations by record keys, partition paths and the timeline."""

from __future__ import annotations

from typing import Any

from tests.interop.zoo.configuration import Configuration
from tests.interop.zoo.of_indexes import NOT_BY_HUDI

_KEYS = "hoodie.datasource.write.recordkey.field"
_PARTITION = "hoodie.datasource.write.partitionpath.field"
_GENERATOR = "hoodie.datasource.write.keygenerator.class"
_HIVE = "hoodie.datasource.write.hive_style_partitioning"
_ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
_KEYGEN = "org.apache.hudi.keygen."
_ZONE = "hoodie.table.timeline.timezone"
_FLAT = {_PARTITION: "", _GENERATOR: _KEYGEN + "NonpartitionedKeyGenerator"}
_COMPLEX = {_KEYS: "id,g", _PARTITION: "p,g", _GENERATOR: _KEYGEN + "ComplexKeyGenerator"}
_DAYS = {
    _PARTITION: "day",
    _GENERATOR: _KEYGEN + "TimestampBasedKeyGenerator",
    _HIVE: "false",
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
_CUSTOM = {_PARTITION: "p:SIMPLE,g:SIMPLE", _GENERATOR: _KEYGEN + "CustomKeyGenerator"}
# A slash within a part of the path, Hudi 1.2.0 itself cannot read: "likely non-encoded slashes being used".
_CUSTOM_DAYS = {
    **_DAYS,
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    _PARTITION: "p:SIMPLE,day:TIMESTAMP",
    _GENERATOR: _KEYGEN + "CustomKeyGenerator",
}
_ODD = ("x/1 ä%", "y:2=ü")


def _grouped(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"g": f"g{key % 2}"}


def _dated(key: int, number: int, kind: str) -> dict[str, Any]:
    return {"day": f"2023-11-0{1 + key % 2}"}


LISTED = (
    Configuration("plain paths", options={_HIVE: "false"}),
    Configuration("plain paths", "0.15.0", 6, options={_HIVE: "false"}, by_hudi=NOT_BY_HUDI),
    Configuration("URL-encoded paths", "0.15.0", 6, options={_ENCODED: "true"}, partitions=_ODD, by_hudi=NOT_BY_HUDI),
    Configuration("no partitions", options=_FLAT),
    Configuration("no partitions, metadata table", "0.15.0", 6, options=_FLAT, metadata=True, by_hudi=NOT_BY_HUDI),
    Configuration("complex keys, two partition fields", options=_COMPLEX, columns=_grouped),
    Configuration(
        "complex keys, two partition fields", "0.15.0", 6, options=_COMPLEX, columns=_grouped, by_hudi=NOT_BY_HUDI
    ),
    Configuration("timestamp-based key generator", options=_DAYS, columns=_dated, by_path=("day",)),
    Configuration(
        "timestamp-based key generator",
        "0.15.0",
        6,
        options=_DAYS,
        columns=_dated,
        by_path=("day",),
        by_hudi=NOT_BY_HUDI,
    ),
    Configuration(
        "timestamp-based key generator", version=6, options=_DAYS, columns=_dated, by_path=("day",), by_hudi=NOT_BY_HUDI
    ),
    Configuration("custom key generator", options=_CUSTOM, columns=_grouped),
    Configuration("custom key generator of a timestamp", options=_CUSTOM_DAYS, columns=_dated, by_path=("day",)),
    Configuration("timeline in UTC", options={_ZONE: "UTC"}),
    Configuration("timeline in UTC", "0.15.0", 6, options={_ZONE: "UTC"}, by_hudi=NOT_BY_HUDI),
    Configuration(
        "empty values of partitions",
        partitions=("", "b"),
        by_path=("p",),
        note="Of an empty value Hudi shows null, from the path. Our queries show the row's own empty text.",
    ),
)
