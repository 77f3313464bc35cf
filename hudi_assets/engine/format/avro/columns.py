"""The records of an Avro data block → columns, a column of all rows at a time. Pure.

The lengths in front of the records say where each begins. From there one position per row moves on, field by field:
what a field takes in bytes is arithmetic over all rows, and only the columns that are asked for become values.
Nothing is read beyond a record's end: positions are checked before they are used. Whatever is not as expected, a type
that is not known or damage, is `Irregular`: a reader of whole containers has the last word there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_assets.engine.format.avro.schema import AvroType

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_PLAIN: Final = ("boolean", "int", "long", "float", "double", "string", "bytes", "enum", "fixed")
_SPARE: Final = 16  # bytes behind the content, so that a word can be read from any position in it
_LENGTH: Final = struct.Struct(">i")
_MOST: Final = 2**31 - 1
_INLINE: Final = 12  # bytes of a text that Arrow's view types hold in the view itself
_TOP: Final = np.uint64(0x8080808080808080)


class Irregular(Exception):
    """These records are not decoded here; no word about whether they are damaged."""


def knows(record: AvroType, wanted: Sequence[int]) -> bool:
    """True if the columns up to the last one asked for are of types that are decoded here."""
    nodes = [node for _, node in record.children[: max(wanted, default=-1) + 1]]
    return bool(nodes) and all(node.kind in _PLAIN and (node.kind != "fixed" or node.size) for node in nodes)


def decode_columns(body: memoryview, count: int, record: AvroType, wanted: Sequence[int]) -> list[pa.Array]:
    """The columns with these numbers, as `logical.raw_arrow` has their values. `Irregular` where that cannot be."""
    if len(body) > _MOST:
        raise Irregular
    rows = _Rows(body, count)
    columns: dict[int, pa.Array] = {}
    for number, (_, node) in enumerate(record.children[: max(wanted) + 1]):
        column = rows.column(node, number in wanted)
        if column is not None:
            columns[number] = column
    if max(wanted) + 1 == len(record.children) and (rows.at != rows.ends).any():
        raise Irregular
    return [columns[number] for number in wanted]


def record_bounds(body: memoryview, count: int) -> tuple[Numbers, Numbers]:
    """Where each record's fields begin and end. `Irregular` where the lengths do not add up."""
    position, read = 0, _LENGTH.unpack_from
    try:
        # One after the other, in Python: each is found by the one before it.
        stops = [position := position + 4 + read(body, position)[0] for _ in range(count)]
    except struct.error:
        raise Irregular from None
    ends = np.array(stops, np.int64)
    begins = np.concatenate([[0], ends[:-1]]) + _LENGTH.size
    if position != len(body) or (ends < begins).any():
        raise Irregular
    return begins, ends


class _Rows:
    """One position per row, always between the record's start and its end."""

    def __init__(self, body: memoryview, count: int) -> None:
        self.at, self.ends = record_bounds(body, count)
        self._count = count
        self._data: Bytes = np.zeros(len(body) + _SPARE, np.uint8)
        self._data[: len(body)] = np.frombuffer(body, np.uint8)
        self._buffer = pa.py_buffer(self._data)
        self._words: Words = np.ndarray(len(body) + _SPARE - 8, "<u8", self._data.data, strides=(1,))

    def column(self, node: AvroType, wanted: bool) -> pa.Array | None:
        """Moves all positions past one field; its values, if they are wanted."""
        if node.kind in ("string", "bytes"):
            quick = self._short_texts(node, wanted)
            if quick is not None:
                return quick[0]
        present = self._present(node) if node.nullable else None
        if present is None or present.all():
            return self._values(node, slice(None), wanted, None)
        return self._values(node, np.flatnonzero(present), wanted, present)

    def _present(self, node: AvroType) -> npt.NDArray[np.bool_]:
        """The branch of a union with null: 0 and 1, zigzag."""
        branch = self._data.take(self.at)
        if (branch & 0xFD).any():
            raise Irregular
        self._move(slice(None), 1)
        present: npt.NDArray[np.bool_] = branch == (2 if node.null_first else 0)
        return present

    def _short_texts(self, node: AvroType, wanted: bool) -> tuple[pa.Array | None] | None:
        """Texts of less than 64 bytes in every row, which one word per row tells; None where it is not so."""
        words = self._words[self.at]
        skipped = 1
        if node.nullable:
            branch = np.uint64(2 if node.null_first else 0)
            if ((words & np.uint64(0xFF)) != branch).any():
                return None
            words >>= np.uint64(8)
            skipped = 2
        # Zigzag in one byte: neither the bit for "more" nor the one for a number below 0.
        if (words & np.uint64(0x81)).any():
            return None
        sizes = ((words & np.uint64(0x7E)) >> np.uint64(1)).view(np.int64)
        starts = self.at + skipped
        self.at = starts + sizes
        if (self.at > self.ends).any():
            raise Irregular
        return (self._gathered(starts, sizes, _text_kind(node), None, words >> np.uint64(8)) if wanted else None,)

    def _move(self, rows: Any, sizes: Numbers | int) -> None:
        self.at[rows] += sizes
        if (self.at > self.ends).any():
            raise Irregular

    def _values(
        self, node: AvroType, rows: Any, wanted: bool, present: npt.NDArray[np.bool_] | None
    ) -> pa.Array | None:
        match node.kind:
            case "boolean":
                flags = self._data[self.at[rows]]
                if (flags > 1).any():
                    raise Irregular
                self._move(rows, 1)
                return self._spread(flags.astype(np.bool_), present, pa.bool_()) if wanted else None
            case "int" | "enum" | "long":
                return self._integers(node, rows, wanted, present)
            case "float" | "double":
                size = 4 if node.kind == "float" else 8
                words = self._words[self.at[rows]] if wanted else None
                self._move(rows, size)
                if words is None:
                    return None
                numbers = words.view("<f8") if size == 8 else words.astype(np.uint32).view("<f4")
                return self._spread(numbers, present, node.arrow)
        return self._texts(node, rows, wanted, present)

    def _integers(
        self, node: AvroType, rows: Any, wanted: bool, present: npt.NDArray[np.bool_] | None
    ) -> pa.Array | None:
        zigzag, sizes = self._varints(self.at[rows])
        self._move(rows, sizes)
        narrow = node.kind != "long"
        if narrow and len(zigzag) and int(zigzag.max()) >= 2**32:
            raise Irregular
        if not wanted:
            return None
        numbers = (zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64)
        return self._spread(
            numbers.astype(np.int32) if narrow else numbers, present, pa.int32() if narrow else pa.int64()
        )

    def _varints(self, at: Numbers) -> tuple[Words, Numbers]:
        """Avro's integers as they stand, zigzag, and how many bytes each takes."""
        words = self._words[at]
        if not (words & np.uint64(0x80)).any():
            return words & np.uint64(0x7F), np.ones(len(at), np.int64)
        stop = ~words & _TOP
        if not stop.all():
            return self._long_varints(at)
        last = stop & (~stop + np.uint64(1))
        # The eight bytes' lower seven bits each, moved together: pairs, then fours, then all.
        bits = words & (last | (last - np.uint64(1))) & ~_TOP
        bits = (bits & np.uint64(0x007F007F007F007F)) | ((bits & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
        bits = (bits & np.uint64(0x00003FFF00003FFF)) | ((bits & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
        bits = (bits & np.uint64(0x000000000FFFFFFF)) | ((bits & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
        sizes = ((last >> np.uint64(7)) * np.uint64(0x0102030405060708)) >> np.uint64(56)
        return bits, sizes.astype(np.int64)

    def _long_varints(self, at: Numbers) -> tuple[Words, Numbers]:
        """As `_varints`, byte by byte, up to the ten bytes that a long can take."""
        bits = np.zeros(len(at), np.uint64)
        sizes = np.zeros(len(at), np.int64)
        going = np.ones(len(at), np.bool_)
        for number in range(10):
            byte = self._data[np.minimum(at + number, len(self._data) - 1)].astype(np.uint64)
            if number == 9 and (byte[going] > 1).any():
                raise Irregular
            bits |= np.where(going, (byte & np.uint64(0x7F)) << np.uint64(7 * number), np.uint64(0))
            sizes += going
            going &= byte >= 0x80
        return bits, sizes

    # ------------------------------------------------------------------------------------------ texts

    def _texts(self, node: AvroType, rows: Any, wanted: bool, present: npt.NDArray[np.bool_] | None) -> pa.Array | None:
        if node.kind == "fixed":
            sizes = np.full(self._count if present is None else len(rows), node.size, np.int64)
        else:
            zigzag, taken = self._varints(self.at[rows])
            if (zigzag & np.uint64(1)).any() or (len(zigzag) and int(zigzag.max()) > 2 * _MOST):
                raise Irregular
            self._move(rows, taken)
            sizes = (zigzag >> np.uint64(1)).view(np.int64)
        starts = self.at[rows].copy()
        self._move(rows, sizes)
        if not wanted:
            return None
        if present is not None:
            starts, sizes = _over(starts, present), _over(sizes, present)
        return self._gathered(starts, sizes, _text_kind(node), _validity(present), self._words[starts])

    def _gathered(
        self, starts: Numbers, sizes: Numbers, kind: pa.DataType, validity: pa.Buffer | None, words: Words
    ) -> pa.Array:
        """Stretches of the content as texts; `words`: their first bytes, four at least."""
        least, most = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
        if least == most:
            return self._even(starts, most, kind, validity)
        # Arrow copies them from views, which are made here for all rows.
        views = np.empty((len(starts), 2), np.uint64)
        views[:, 0] = sizes.view(np.uint64) | (words << np.uint64(32))
        views[:, 1] = starts.view(np.uint64) << np.uint64(32)
        if least <= _INLINE:
            short = np.flatnonzero(sizes <= _INLINE)
            begins, lengths = starts[short], sizes[short]
            views[short, 0] = lengths.view(np.uint64) | ((words[short] & _first(lengths, 4)) << np.uint64(32))
            views[short, 1] = self._words[begins + 4] & _first(lengths - 4, 8)
        view_kind = pa.string_view() if kind == pa.string() else pa.binary_view()
        array = pa.Array.from_buffers(view_kind, len(starts), [validity, pa.py_buffer(views), self._buffer])
        return _checked(array.cast(kind))

    def _even(self, starts: Numbers, size: int, kind: pa.DataType, validity: pa.Buffer | None) -> pa.Array:
        """Texts of one size."""
        if len(starts) * size > _MOST:
            raise Irregular
        offsets = (
            np.arange(0, len(starts) * size + 1, max(1, size), dtype=np.int32)
            if size
            else np.zeros(len(starts) + 1, np.int32)
        )
        pieces = np.ndarray(len(self._data) - size, f"V{size}", self._data.data, strides=(1,))[starts] if size else b""
        return _checked(
            pa.Array.from_buffers(kind, len(starts), [validity, pa.py_buffer(offsets), pa.py_buffer(pieces)])
        )

    def _spread(self, values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
        """Values of the rows that have one as a column of all rows."""
        if present is None:
            return pa.array(values, kind)
        return pa.array(_over(values, present), kind, mask=~present)


def _over(values: npt.NDArray[Any], present: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    spread = np.zeros(len(present), values.dtype)
    spread[present] = values
    return spread


def _validity(present: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))


_MASKS: Final = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)


def _first(lengths: Numbers, most: int) -> Words:
    """Per length, a mask of a word's first so many bytes, `most` of them at most."""
    return _MASKS[np.clip(lengths, 0, most)]


def _text_kind(node: AvroType) -> pa.DataType:
    return pa.string() if node.kind == "string" else pa.binary()


def _checked(texts: pa.Array) -> pa.Array:
    if texts.type == pa.string():
        texts.validate(full=True)  # UTF-8
    return texts
