"""Column types with values at their edges, and the changes of type that a table follows. For tests of all kinds."""

# ruff: noqa: DTZ001 - local timestamps have no zone
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

ZONED = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, False)


def _decimal(digits: int, scale: int, sign: int = 0) -> Decimal:
    return Decimal((sign, (9,) * digits, -scale))


_DEEP = pa.struct(
    [
        ("a", pa.struct([("b", pa.list_(pa.struct([("c", pa.date32())])))])),
        ("d", pa.map_(pa.string(), pa.struct([("e", pa.decimal128(5, 2))]))),
    ]
)
_STRICT = pa.struct(
    [
        _required("r", pa.int32()),
        _required("t", pa.date32()),
        _required("l", pa.list_(_required("element", pa.string()))),
        _required("s", pa.struct([_required("x", pa.decimal128(9, 2))])),
    ]
)
_STRICT_BELOW = pa.struct(
    [
        _required(
            "a",
            pa.struct(
                [
                    _required("l", pa.list_(_required("element", pa.bool_()))),
                    _required("m", pa.map_(pa.string(), _required("value", pa.date32()))),
                    _required("s", pa.struct([_required("x", pa.binary())])),
                ]
            ),
        )
    ]
)
_BELOW = {"a": {"l": [True, False], "m": [("k", date(2020, 1, 1))], "s": {"x": b"x"}}}
_MOMENTS = (
    datetime(1, 1, 1),
    datetime(1582, 10, 4, 23, 59, 59, 999999),
    datetime(1899, 12, 31, 23, 59, 59),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 12, 0, 0, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    None,
)

TYPES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 0, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 0, None]),
    "float": (pa.float32(), [float("nan"), 0.0, -0.0, float("inf"), float("-inf"), 2.0**-149, None]),
    "double": (pa.float64(), [float("nan"), 0.0, -0.0, float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308]),
    "string": (
        pa.string(),
        [
            "",
            "\0",
            "a\0b",
            "😀🚲",
            "שלום \u202eabc",
            "e\u0301",
            "\ufeff",
            "\U0010ffff\uffff",
            "\r\n\"'\\",
            None,
            "x" * 70_000,
        ],
    ),
    "binary": (pa.binary(), [b"", b"\0", b"\xff\xfe", bytes(range(256)), None]),
    "decimal of 38 digits": (pa.decimal128(38, 10), [_decimal(38, 10), _decimal(38, 10, 1), None]),
    "decimal of 18 digits": (pa.decimal128(18, 0), [_decimal(18, 0), _decimal(18, 0, 1), Decimal(0)]),
    "decimal of 1 digit": (pa.decimal128(1, 1), [Decimal("0.9"), Decimal("-0.9"), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(1969, 12, 31), date(9999, 12, 31), None]),
    "timestamp": (ZONED, [m and m.replace(tzinfo=UTC) for m in _MOMENTS]),
    "local timestamp": (LOCAL, _MOMENTS),
    "array": (pa.list_(pa.int32()), [[], [None], [1, None, 2], None]),
    "array of arrays": (pa.list_(pa.list_(pa.string())), [[], [None], [[], [None, "x"]], None]),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("", None), ("ü", 1)], None]),
    "map of arrays": (pa.map_(pa.string(), pa.list_(pa.int32())), [[("a", [])], [("b", None)], [("c", [1, None])]]),
    "array of structs": (pa.list_(pa.struct([("x", pa.int32())])), [[{"x": 1}, None, {"x": None}], [], None]),
    "deep struct": (
        _DEEP,
        [
            {
                "a": {"b": [{"c": date(2020, 1, 1)}, None, {"c": None}]},
                "d": [("k", {"e": Decimal("1.25")}), ("n", None)],
            },
            {"a": None, "d": None},
            {"a": {"b": None}, "d": []},
            None,
        ],
    ),
    "required fields in a struct": (
        _STRICT,
        [{"r": 1, "t": date(2020, 1, 1), "l": ["x"], "s": {"x": Decimal("1.25")}}, None],
    ),
    "required fields in required structs": (_STRICT_BELOW, [_BELOW, None]),
    "array of required fields in required structs": (
        pa.list_(pa.field("element", _STRICT_BELOW)),
        [[_BELOW, None], [], None],
    ),
    "map of required fields in required structs": (
        pa.map_(pa.string(), pa.field("value", _STRICT_BELOW)),
        [[("a", _BELOW), ("b", None)], [], None],
    ),
    "nothing but nulls": (pa.string(), [None, None]),
}


@dataclass(frozen=True)
class Evolution:
    """A column's type before and in later rows (None: not there), a value of each, and what the old one becomes.

    `evolves` false: the table keeps its type.
    """

    before: pa.DataType | None
    old: Any
    after: pa.DataType | None
    new: Any
    seen: Any
    evolves: bool = True


_X = pa.struct([("x", pa.int32())])
_YX = pa.struct([("y", pa.string()), ("x", pa.int32())])
_XY = pa.struct([("x", pa.int32()), ("y", pa.string())])

EVOLUTIONS: Mapping[str, Evolution] = {
    "int to long": Evolution(pa.int32(), -(2**31), pa.int64(), 2**40, -(2**31)),
    "int to float": Evolution(pa.int32(), 7, pa.float32(), 1.5, 7.0),
    "int to double": Evolution(pa.int32(), 2**31 - 1, pa.float64(), 0.1, float(2**31 - 1)),
    "long to float": Evolution(pa.int64(), 2**40, pa.float32(), 1.5, float(2**40)),
    "long to double": Evolution(pa.int64(), 2**53, pa.float64(), 0.1, float(2**53)),
    "float to double": Evolution(pa.float32(), 0.1, pa.float64(), 0.1, 0.1),
    "added text": Evolution(None, None, pa.string(), "new", None),
    "added decimal": Evolution(None, None, pa.decimal128(20, 3), Decimal("1.250"), None),
    "added array of structs": Evolution(None, None, pa.list_(_XY), [{"x": 1, "y": "new"}], None),
    "added array of small structs": Evolution(None, None, pa.list_(_X), [{"x": 1}], None),
    "added map": Evolution(None, None, pa.map_(pa.string(), pa.date32()), [("a", date(2020, 1, 1))], None),
    "added required fields in required structs": Evolution(None, None, _STRICT_BELOW, _BELOW, None),
    "added null above required fields in required structs": Evolution(None, None, _STRICT_BELOW, None, None),
    "added field": Evolution(_X, {"x": 1}, _XY, {"x": 2, "y": "new"}, {"x": 1, "y": None}),
    "added field in an array": Evolution(pa.list_(_X), [{"x": 1}], pa.list_(_XY), [], [{"x": 1, "y": None}]),
    "added field in a map": Evolution(
        pa.map_(pa.string(), _X), [("a", {"x": 1})], pa.map_(pa.string(), _XY), None, [("a", {"x": 1, "y": None})]
    ),
    "long, then int": Evolution(pa.int64(), 2**40, pa.int32(), 5, 2**40, False),
    "double, then float": Evolution(pa.float64(), 0.1, pa.float32(), 0.5, 0.1, False),
    "wide decimal, then narrow": Evolution(
        pa.decimal128(20, 4), Decimal("1.2500"), pa.decimal128(10, 2), Decimal("2.50"), Decimal("1.2500"), False
    ),
    "fields in another order": Evolution(_XY, {"x": 1, "y": "a"}, _YX, {"y": "b", "x": 2}, {"x": 1, "y": "a"}, False),
    "missing field": Evolution(_XY, {"x": 1, "y": "a"}, _X, {"x": 2}, {"x": 1, "y": "a"}, False),
}
