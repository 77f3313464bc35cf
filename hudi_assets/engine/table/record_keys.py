"""Record keys, partition paths and buckets, as Hudi's key generators and bucket index make them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput

Int32s = np.ndarray[tuple[int], np.dtype[np.int32]]
Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
Units = np.ndarray[tuple[int], np.dtype[np.uint8 | np.uint16]]

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
    starts, units = _utf16_units(text)
    sizes = np.diff(starts)
    longest = int(sizes.max(initial=0))
    if longest * len(sizes) > _FEW_PASSES * len(units):
        return _weighted_sums(starts, sizes, units)
    hashes = np.zeros(len(sizes), np.uint32)
    for place in range(longest):
        if longest * len(sizes) == len(units):
            hashes *= np.uint32(31)
            hashes += units[place::longest]
        else:
            live = np.flatnonzero(sizes > place)
            hashes[live] = hashes[live] * np.uint32(31) + units[starts[live] + place]
    return hashes.view(np.int32)


_FEW_PASSES = 4
"""One pass per place of the longest text is cheapest, unless few texts are that long."""


def _weighted_sums(starts: Int64s, sizes: Int64s, units: Units) -> Int32s:
    """The hashes as sums of units times powers of 31: a cost by the units there are, however long one text is."""
    powers = np.full(int(sizes.max(initial=0)), 31, np.uint32)
    powers[:1] = 1
    weights = np.cumprod(powers, dtype=np.uint32)[np.repeat(starts[1:], sizes) - 1 - np.arange(len(units))]
    hashes = np.zeros(len(sizes), np.uint32)
    some = sizes > 0
    hashes[some] = np.add.reduceat(weights * units, starts[:-1][some], dtype=np.uint32)
    return hashes.view(np.int32)


def _utf16_units(text: pa.Array) -> tuple[Int64s, Units]:
    """Where each value's UTF-16 code units begin (one more entry than values), and all units in a row."""
    text = pc.fill_null(text, "") if text.null_count else text
    offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4).astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts = offsets - offsets[0]
    if not len(data) or int(data.max()) < 0x80:
        return starts, data
    # A character's first byte tells its units: two where it takes four bytes.
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate([[0], np.cumsum(units)])
    utf16 = data.tobytes().decode("utf-8").encode("utf-16-le")
    return before[starts], np.frombuffer(utf16, "<u2")


def bucket_file_id(bucket: int, token: str) -> str:
    """`00000001-<rest of a UUID>-0` (BucketIdentifier.newBucketFileIdPrefix)."""
    return f"{bucket:08d}{token[8:]}-0"


def bucket_of(file_id: str) -> int | None:
    """The bucket that a file id names; None where it names none."""
    head = file_id[:8]
    return int(head) if head.isdigit() else None
