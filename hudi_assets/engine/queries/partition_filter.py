"""Where a query's slices are: what Spark's side needs to leave out partitions that a filter excludes. Pure.

`Slices.java` judges the filters, by each partition's values as text, and puts the slices that are left into tasks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import pyarrow as pa

from hudi_assets.engine.spark.partitions import Places, Values
from hudi_assets.engine.table.record_keys import NULL_PARTITION, escape_path_name
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.settings.key_generators import joins_values
from hudi_assets.engine.table.slices.reader import SliceTask

# HoodieTableMetadata's and older releases' names of the partition of rows without a value.
_NULLS = frozenset({"", NULL_PARTITION, "__HUDI_DEFAULT_PARTITION__", "default"})
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def places_of(slices: Sequence[SliceTask], config: TableConfig, schema: pa.Schema, *, by_partition: bool) -> Places:
    """The places of slices. `by_partition`: a row's partition columns have the values that its partition's path has."""
    columns = config.partition_fields if by_partition and joins_values(config.key_generator) else ()
    folders = [_folder(one) for one in slices]
    numbers = {folder: number for number, folder in enumerate(dict.fromkeys(folders))}
    # A field inside a struct (`place.name`) is no column of the table's: nothing is known of it.
    types = [schema.field(name).type if name in schema.names else pa.null() for name in columns]
    return Places(
        columns,
        tuple(partition_values(folder, columns, types, config) for folder in numbers),
        tuple((numbers[folder], one.size) for folder, one in zip(folders, slices, strict=True)),
        joined=len(columns) > 1 and not config.hive_style and not config.url_encode,
    )


def _folder(one: SliceTask) -> str:
    return (one.base_file or one.log_files[0]).rpartition("/")[0]


def partition_values(path: str, columns: Sequence[str], types: Sequence[pa.DataType], config: TableConfig) -> Values:
    """What the columns hold in a partition's rows, as text; None where the path does not say it for sure."""
    parts = path.split("/")
    if len(parts) != len(columns):
        return (None,) * len(columns)
    return tuple(_value(part, name, kind, config) for part, name, kind in zip(parts, columns, types, strict=True))


def _value(part: str, name: str, kind: pa.DataType, config: TableConfig) -> str | None:
    styled = part.startswith(f"{name}=")
    if styled != config.hive_style:
        return None
    text = part[len(name) + 1 :] if styled else part
    if config.url_encode:
        plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        if escape_path_name(plain) != text or "+" in text:  # a space, as early releases encoded it
            return None
        text = plain
    elif _ESCAPE.search(text):
        return None
    return text if text not in _NULLS and _is_text_of(kind, text) else None


def _is_text_of(kind: pa.DataType, text: str) -> bool:
    """True where Hudi writes one value of the type so, and no other."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    if pa.types.is_boolean(kind):
        return text in ("true", "false")
    try:
        if pa.types.is_integer(kind):
            return str(int(text)) == text and -(1 << 63) <= int(text) < 1 << 63
        return pa.types.is_date32(kind) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
