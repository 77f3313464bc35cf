"""Rows of a Hudi table as different readers give them: hudi-rs as one of them, and one spelling for all.

Readers differ in column order, in the Arrow types they choose and in the order of rows; two answers are the
same when `by_key` is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

META = ("_hoodie_commit_time", "_hoodie_commit_seqno")
Rows = dict[tuple[str, str], dict[str, Any]]


def read_with_hudi_rs(table: str, query: str, *, as_of: str | None = None) -> pa.Table:
    """All rows of hudi-rs's snapshot or read_optimized query; with `as_of`, of that instant."""
    from hudi import HudiReadOptions, HudiTableBuilder

    options = HudiReadOptions()
    if query == "read_optimized":
        options = options.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
    if as_of:
        options = options.with_as_of_timestamp(as_of)
    batches = HudiTableBuilder.from_base_uri(table).build().read(options)
    return pa.Table.from_batches(batches) if batches else pa.table({})


def by_key(rows: pa.Table) -> Rows:
    """(partition path, record key) → the row's values with commit time and sequence number.

    `_hoodie_file_name` is left out: it says where a row was found. Raises ValueError when a key comes twice.
    """
    found: Rows = {}
    for row in rows.to_pylist():
        key = (row["_hoodie_partition_path"], row["_hoodie_record_key"])
        if key in found:
            raise ValueError(f"the key {key} comes twice")
        names = sorted(name for name in row if name in META or not name.startswith("_hoodie_"))
        found[key] = {name: _plain(row[name]) for name in names}
    return found


def differences(left: Rows, right: Rows, limit: int = 5) -> list[str]:
    """What is not the same, in words, the first `limit` of it; empty when both are equal."""
    lines = []
    for key in sorted(left.keys() | right.keys()):
        if left.get(key) == right.get(key):
            continue
        a, b = left.get(key), right.get(key)
        if a is None or b is None:
            lines.append(f"{key}: only in the {'second' if a is None else 'first'}: {b or a}")
        else:
            changed = [name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]
            lines.append(f"{key}: " + ", ".join(f"{name} {a.get(name)!r} ≠ {b.get(name)!r}" for name in changed))
    return lines[:limit] + ([f"… and {len(lines) - limit} more"] if len(lines) > limit else [])


def _plain(value: Any) -> Any:
    """Times as UTC text; maps (lists of pairs in Arrow) and structs the same whatever their order."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC).isoformat()
    if isinstance(value, float):
        return repr(value)  # NaN equals NaN, −0.0 is not 0.0
    if isinstance(value, dict):
        return tuple(sorted((name, _plain(item)) for name, item in value.items()))
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return tuple(sorted(items) if _is_map(value) else items)
    return value


def _is_map(value: Iterable[Any]) -> bool:
    return any(isinstance(item, tuple) for item in value)
