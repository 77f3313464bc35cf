"""Values of many rows, one column after the other: where there are millions, an object for each would fill the memory.

A column is iterated, and gives the values that it was made of, of the same types. A helper: it knows no table.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, TypeVar

import pyarrow as pa

Value = TypeVar("Value")

_CODEC: Final = "zstd"
_END: Final = "\n"
_INT: Final = frozenset({int})
_TEXT: Final = frozenset({str})
# A text that comes so often at least, on average, is kept once.
_OFTEN: Final = 4
_WIDTHS: Final = (("b", 1 << 7), ("h", 1 << 15), ("i", 1 << 31), ("q", 1 << 63))


@dataclass(frozen=True, slots=True)
class _Same:
    """One value in all rows."""

    value: Any
    rows: int

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.rows)


@dataclass(frozen=True, slots=True)
class _Few:
    """Few texts, each in many rows."""

    texts: tuple[str, ...]
    codes: array[int]

    def __iter__(self) -> Iterator[str]:
        return map(self.texts.__getitem__, self.codes)


@dataclass(frozen=True, slots=True)
class Texts:
    """Many texts, compressed."""

    data: bytes
    size: int

    @classmethod
    def of(cls, values: Iterable[str]) -> Texts:
        """At least one, and none with the end of a line in it."""
        raw = _END.join(values).encode("utf-8", "surrogatepass")
        return cls(pa.Codec(_CODEC, compression_level=1).compress(raw, asbytes=True), len(raw))

    def __iter__(self) -> Iterator[str]:
        raw = pa.Codec(_CODEC).decompress(self.data, self.size, asbytes=True)
        return iter(raw.decode("utf-8", "surrogatepass").split(_END))


def column(values: Sequence[Value]) -> Iterable[Value]:
    """The values of a column, one at least, in the fewest bytes that this module knows."""
    first, rows = values[0], len(values)
    kinds = frozenset(map(type, values))
    if len(kinds) == 1 and values.count(first) == rows:
        return _Same(first, rows)
    found: Iterable[Any] | None = None
    if kinds == _INT:
        found = _numbers(values)  # type: ignore[arg-type]
    elif kinds == _TEXT:
        found = _texts(values)  # type: ignore[arg-type]
    return tuple(values) if found is None else found


def _numbers(values: Sequence[int]) -> Iterable[int] | None:
    low, high = min(values), max(values)
    width = next((code for code, limit in _WIDTHS if -limit <= low and high < limit), None)
    return None if width is None else array(width, values)


def _texts(values: Sequence[str]) -> Iterable[str] | None:
    places = {text: place for place, text in enumerate(dict.fromkeys(values))}
    if len(places) * _OFTEN <= len(values) and len(places) <= 1 << 16:
        return _Few(tuple(places), array("B" if len(places) <= 1 << 8 else "H", map(places.__getitem__, values)))
    return None if any(_END in text for text in places) else Texts.of(values)
