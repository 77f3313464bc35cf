"""Avro data blocks ↔ Arrow tables. Pure.

A block's content is int32 version, int32 record count, then per record int32 length and its bytes,
without schema (org.apache.hudi.common.table.log.block.HoodieAvroDataBlock). The writer's schema is in
the block's header.

Decoding takes the length in front of each record for a field of the record: the bytes then are those of
an Avro object container file with one block, which a compiled reader decodes in one go. Logical types are
left out of that file's schema and put on in Arrow, so that no value passes through Python where
polars knows the type, and both readers give the same table.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.avro.columns import Irregular, decode_columns, knows, record_bounds
from hudi_assets.engine.format.avro.encode import encode_plain, is_plain
from hudi_assets.engine.format.avro.logical import from_raw, python_values, raw_arrow, raw_avro
from hudi_assets.engine.format.avro.project import project
from hudi_assets.engine.format.avro.schema import (
    META_COLUMNS,
    AvroType,
    arrow_to_avro_schema,
    avro_to_arrow_schema,
    parse_avro_schema,
    record_name,
    with_meta_columns,
)
from hudi_assets.engine.format.log_file.codec import CONTENT_VERSION

__all__ = [
    "META_COLUMNS",
    "arrow_to_avro_schema",
    "avro_to_arrow_schema",
    "decode_records",
    "encode_records",
    "field_names",
    "project",
    "record_name",
    "with_meta_columns",
]

_LENGTH = struct.Struct(">i")
_SYNC = b"hudi-log-content"
_LARGE = 16 << 20


def decode_records(
    content: bytes | memoryview, writer_schema_json: str, columns: Sequence[str] | None = None
) -> pa.Table:
    """The records of an Avro data block, with the columns of `avro_to_arrow_schema`, in its order.

    With `columns`, those of them alone; names that the schema does not have are passed over.
    CorruptTable for contents or a schema that do not parse.
    """
    record = _writer_schema(writer_schema_json)
    schema = avro_to_arrow_schema(writer_schema_json)
    wanted = [n for n, name in enumerate(schema.names) if columns is None or name in columns]
    count, body = _records(content)
    if count == 0:
        return schema.empty_table().select(wanted)
    try:
        arrays = [
            from_raw(column, record.children[number][1])
            for number, column in zip(wanted, _raw_columns(body, count, record, wanted), strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(number) for number in wanted]))
    except (pa.ArrowException, ValueError, OverflowError, IndexError) as error:
        raise _corrupt(error) from error


def _raw_columns(body: memoryview, count: int, record: AvroType, wanted: Sequence[int]) -> list[pa.ChunkedArray]:
    """Some columns without their logical types."""
    # Of all columns polars makes values as fast, but holds three copies; some of them take half its time here.
    some = len(wanted) < len(record.children) or len(body) > _LARGE
    if some and wanted and knows(record, wanted):
        try:
            return [pa.chunked_array([column]) for column in decode_columns(body, count, record, wanted)]
        except (Irregular, pa.ArrowException):
            pass  # a whole container's reader says what is wrong, if anything is
    container = _Container(record, count, body)
    raw = container.read_polars() if _polars_knows(record, count, len(body)) else container.read_fastavro()
    return [raw.column(number) for number in wanted]


def picks(writer_schema_json: str, columns: Sequence[str]) -> bool:
    """True where a few columns of all records are decoded without the others."""
    record = _writer_schema(writer_schema_json)
    return knows(record, [n for n, (name, _) in enumerate(record.children) if name in columns])


def chosen_records(content: bytes | memoryview, chosen: npt.NDArray[np.bool_]) -> bytes:
    """The content of an Avro data block of these of its records alone, in their order."""
    count, body = _records(content)
    try:
        begins, ends = record_bounds(body, count)
    except Irregular:
        raise CorruptTable("The record lengths of an Avro log block do not add up to its content.") from None
    if count != len(chosen):
        raise CorruptTable(f"An Avro log block has {count} records where it had {len(chosen)} a moment ago.")
    bounds = zip((begins[chosen] - _LENGTH.size).tolist(), ends[chosen].tolist(), strict=True)
    return b"".join([struct.pack(">ii", CONTENT_VERSION, int(chosen.sum())), *(body[a:b] for a, b in bounds)])


def field_names(writer_schema_json: str) -> list[str]:
    """The names of an Avro data block's columns; CorruptTable for a schema that does not parse."""
    return [name for name, _ in _writer_schema(writer_schema_json).children]


def _writer_schema(schema_json: str) -> AvroType:
    try:
        return parse_avro_schema(schema_json)
    except InvalidInput as error:
        raise CorruptTable(f"A log block's schema cannot be read. {error.what}") from error


def _corrupt(error: BaseException) -> CorruptTable:
    return CorruptTable(f"The records of an Avro log block do not parse: {str(error)[:200]}.")


def _records(content: bytes | memoryview) -> tuple[int, memoryview]:
    """The record count, and the records with their lengths in front."""
    view = memoryview(content)
    if len(view) < 8:
        raise CorruptTable("An Avro log block's content ends within its version and record count.")
    version, count = struct.unpack_from(">ii", view)
    if not 1 <= version <= CONTENT_VERSION:
        raise CorruptTable(f"An Avro log block's content has version {version}.")
    body = view[8:]
    if count < 0 or count * _LENGTH.size > len(body) or (count == 0 and len(body)):
        raise CorruptTable(f"An Avro log block of {len(view)} bytes cannot hold {count} records.")
    return count, body


class _Container:
    """The records as an Avro object container file whose records start with their own length."""

    def __init__(self, record: AvroType, count: int, body: memoryview) -> None:
        self._record = record
        self._count = count
        self._body = body
        names = {name for name, _ in record.children}
        self._length_field = "length"
        while self._length_field in names:
            self._length_field += "_"

    def _bytes(self, length_type: Any) -> io.BytesIO:
        fields = [{"name": self._length_field, "type": length_type}]
        fields += [
            {"name": name, "type": raw_avro(node, f"type{number}")}
            for number, (name, node) in enumerate(self._record.children)
        ]
        schema = json.dumps({"type": "record", "name": "framed", "fields": fields}).encode()
        entries = ((b"avro.schema", schema), (b"avro.codec", b"null"))
        buffer = io.BytesIO()
        buffer.write(b"Obj\x01" + _zigzag(len(entries)))
        for key, value in entries:
            buffer.write(_zigzag(len(key)) + key + _zigzag(len(value)) + value)
        buffer.write(b"\x00" + _SYNC + _zigzag(self._count) + _zigzag(len(self._body)))
        buffer.write(self._body)
        buffer.write(_SYNC)
        buffer.seek(0)
        return buffer

    def _check(self, lengths: np.ndarray[Any, np.dtype[Any]]) -> None:
        """The lengths have to add up to the content, else records were cut off or run into each other."""
        total = int(lengths.astype(np.int64).sum()) + _LENGTH.size * self._count
        if len(lengths) != self._count or total != len(self._body) or (lengths < 0).any():
            raise CorruptTable("The record lengths of an Avro log block do not add up to its content.")

    def read_polars(self) -> pa.Table:
        """Raw columns, by polars. An Avro float is four bytes as they are: the length."""
        try:
            frame = pl.read_avro(self._bytes("float"))
            raw = frame.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        except (pl.exceptions.PolarsError, OSError, ValueError, OverflowError, MemoryError) as error:
            raise _corrupt(error) from error
        except BaseException as error:
            # A panic in compiled code arrives as a BaseException of its own kind.
            if type(error).__name__ == "PanicException":
                raise _corrupt(error) from error
            raise
        lengths = raw.column(0).combine_chunks().to_numpy(zero_copy_only=False)
        self._check(np.ascontiguousarray(lengths).view(">i4"))
        return raw.select(raw.column_names[1:])

    def read_fastavro(self) -> pa.Table:
        """Raw columns, by fastavro: any type, through Python objects."""
        names = [name for name, _ in self._record.children]
        length_type = {"type": "fixed", "name": "length", "size": _LENGTH.size}
        try:
            rows: list[Any] = list(fastavro.reader(self._bytes(length_type)))
            self._check(np.frombuffer(b"".join(row[self._length_field] for row in rows), ">i4"))
            columns = [pa.array([row[name] for row in rows], raw_arrow(node)) for name, node in self._record.children]
        except CorruptTable:
            raise
        except Exception as error:
            # fastavro has no error of its own: damaged bytes surface as whatever its C code trips over.
            raise _corrupt(error) from error
        return pa.Table.from_arrays(columns, names=names)


def _zigzag(number: int) -> bytes:
    """Avro's variable-length integer, for numbers ≥ 0."""
    value, out = number << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _polars_knows(record: AvroType, count: int, size: int) -> bool:
    """False for types that polars refuses, and where a fixed size from the schema would claim more memory
    than the content can fill: compiled code would end the process."""
    nodes = record.walk()[1:]
    if any(node.kind in ("map", "null") or (node.kind == "record" and not node.children) for node in nodes):
        return False
    fixed = sum(node.size for node in nodes if node.kind == "fixed")
    return bool(nodes) and fixed * count <= 4 * size + (1 << 20)


# ---------------------------------------------------------------------------------------------- encoding


def encode_records(table: pa.Table, schema_json: str) -> bytes:
    """The content of an Avro data block. The table's columns are first brought to the schema's by `project`.

    InvalidInput, naming the column, where that cannot be done.
    """
    record = parse_avro_schema(schema_json)
    table = project(table, avro_to_arrow_schema(schema_json))
    head = struct.pack(">ii", CONTENT_VERSION, table.num_rows)
    if not is_plain(record):
        return head + _encode_rows(table, record)
    try:
        return head + encode_plain(table, record)
    except ValueError as error:
        raise InvalidInput(f"The rows do not fit the Avro schema: {error}.") from error


def _encode_rows(table: pa.Table, record: AvroType) -> bytes:
    """Every record with its length in front, by fastavro: any type, through Python objects."""
    names = [name for name, _ in record.children]
    fields = [
        {"name": name, "type": raw_avro(node, f"type{number}", logical=True)}
        for number, (name, node) in enumerate(record.children)
    ]
    parsed = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    columns = [python_values(table.column(name), node) for name, node in record.children]
    out, buffer = io.BytesIO(), io.BytesIO()
    for number, values in enumerate(zip(*columns, strict=True)):
        buffer.seek(0)
        buffer.truncate()
        try:
            fastavro.schemaless_writer(buffer, parsed, dict(zip(names, values, strict=True)))
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            raise InvalidInput(f"Row {number} does not fit the Avro schema: {error}.") from error
        out.write(_LENGTH.pack(buffer.tell()))
        out.write(buffer.getbuffer())
    return out.getvalue() if columns else _LENGTH.pack(0) * table.num_rows
