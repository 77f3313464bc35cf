"""Record keys, partition paths and buckets, as Hudi's key generators and bucket index make them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput

Int32s = np.ndarray[tuple[int], np.dtype[np.int32]]

NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def check_key_type(name: str, type_: pa.DataType, what: str) -> None:
    """Refuse column types whose text Java and Python write differently."""
    fine = (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_boolean(type_)
    )
    if not fine:
        raise InvalidInput(
            f"Column {name!r} of type {type_} cannot be a {what}.",
            hint="Use string, integer, date or boolean columns.",
        )


def record_keys(columns: Sequence[pa.Array], names: Sequence[str], complex_keys: bool) -> pa.Array:
    """`value` for a simple key, `field:value,…` for a complex one (KeyGenUtils.getRecordKey)."""
    texts = [_text(column) for column in columns]
    if not complex_keys:
        return texts[0]
    parts = [
        pc.binary_join_element_wise(pa.scalar(name), _stand_ins(text), ":")
        for name, text in zip(names, texts, strict=True)
    ]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")


def _stand_ins(text: pa.Array) -> pa.Array:
    filled = pc.fill_null(text, NULL_KEY)
    return pc.if_else(pc.equal(filled, ""), EMPTY_KEY, filled)


def _text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def partition_paths(
    columns: Sequence[pa.Array], names: Sequence[str], *, hive_style: bool, url_encode: bool
) -> pa.Array:
    """`value/value` or `field=value/…`; null and empty become Hive's default partition."""
    parts = []
    for name, column in zip(names, columns, strict=True):
        text = pc.fill_null(_text(column), NULL_PARTITION)
        text = pc.if_else(pc.equal(text, ""), NULL_PARTITION, text)
        if url_encode:
            text = _map_distinct(text, escape_path_name)
        _refuse_paths(text, name)
        parts.append(pc.binary_join_element_wise(name, text, "=") if hive_style else text)
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")


# PartitionPathEncodeUtils.charToEscape
_ESCAPED = {chr(code) for code in range(0x20)} | set("\"#%'*/:=?\\\x7f{[]^")


def escape_path_name(value: str) -> str:
    """A partition value as Hudi URL-encodes it: fewer characters than a URL would (escapePathName)."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in value)


def _map_distinct(text: pa.Array, change: Callable[[str], str]) -> pa.Array:
    encoded = pc.dictionary_encode(text)
    return pa.array([change(v) for v in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)


def _refuse_paths(text: pa.Array, name: str) -> None:
    for value in pc.unique(text).to_pylist():
        if "/" in value or value in (".", ".."):
            raise InvalidInput(
                f"Partition value {value!r} of column {name!r} would be a path of its own.",
                hint="Create the table with URL-encoded partition paths, or use another column.",
            )


def bucket_ids(columns: Sequence[pa.Array], buckets: int, *, complex_keys: bool) -> Int32s:
    """BucketIdentifier.getBucketId: Java's List.hashCode over the key's texts, without its sign, modulo."""
    size = len(columns[0])
    total = np.ones(size, dtype=np.int32)
    with np.errstate(over="ignore"):
        for column in columns:
            text = _stand_ins(_text(column)) if complex_keys else _text(column)
            total = total * np.int32(31) + java_hash(text)
    return ((total & np.int32(0x7FFFFFFF)) % np.int32(buckets)).astype(np.int32)


def java_hash(text: pa.Array) -> Int32s:
    """String.hashCode of each value: a polynomial in 31 over UTF-16 code units, in 32 bits."""
    encoded = pc.dictionary_encode(text)
    values = encoded.dictionary.to_pylist()
    hashes: Int32s = np.fromiter((_java_hash(v) for v in values), dtype=np.int32, count=len(values))
    result: Int32s = hashes[encoded.indices.to_numpy(zero_copy_only=False)]
    return result


def _java_hash(text: str) -> int:
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2").astype(np.uint64)
    powers = _powers(len(units))
    total = int((units * powers).sum(dtype=np.uint64)) & 0xFFFFFFFF if len(units) else 0
    return total - (1 << 32) if total >= 1 << 31 else total


_POWERS: list[int] = [1]


def _powers(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    while len(_POWERS) < size:
        _POWERS.append(_POWERS[-1] * 31 & 0xFFFFFFFF)
    return np.array(_POWERS[:size][::-1], dtype=np.uint64)


def bucket_file_id(bucket: int, token: str) -> str:
    """`00000001-<rest of a UUID>-0` (BucketIdentifier.newBucketFileIdPrefix)."""
    return f"{bucket:08d}{token[8:]}-0"


def bucket_of(file_id: str) -> int | None:
    """The bucket that a file id names; None where it names none."""
    head = file_id[:8]
    return int(head) if head.isdigit() else None
