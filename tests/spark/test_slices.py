"""Slices.java: no slice is lost, none comes twice, a filter leaves out what it can, tasks are of about equal size."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from hudi_assets.engine.spark import java_classes as spark_java
from hudi_assets.engine.spark.partitions import Places

pytestmark = [pytest.mark.spark, pytest.mark.classic]
MB = 1 << 20

Row = Mapping[str, Any]
TEXTS = ["a", "b", "ba", "é", "\uff61", "\U0001f600"]  # the last two: UTF-16 has them the other way round
DOMAIN: dict[str, list[Any]] = {
    "s": TEXTS,
    "n": [-1, 0, 7, 10],
    "d": [date(2023, 12, 31), date(2024, 1, 1)],
    "b": [False, True],
}
LITERALS = DOMAIN | {"s": [*TEXTS, "", "-", "/a", "./b", "."]}
ORDERS = {
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
}


@dataclass(frozen=True)
class Condition:
    """A filter of Spark's, and what it means: true, false or null for a row."""

    holds: Callable[[Row], bool | None]
    build: Callable[[Any], Any]
    text: str


def java(jvm: Any, value: Any) -> Any:
    return jvm.java.sql.Date.valueOf(value.isoformat()) if isinstance(value, date) else value


def array(jvm: Any, kind: Any, values: list[Any]) -> Any:
    made = jvm.java.lang.reflect.Array.newInstance(kind, len(values))
    for place, value in enumerate(values):
        jvm.java.lang.reflect.Array.set(made, place, value)
    return made


def sources(jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.sources


def equal_to(value: object, jvm: Any) -> Any:
    return sources(jvm).EqualTo("d", value)


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(list(DOMAIN)))
    value = st.sampled_from(LITERALS[column])
    kind = draw(st.sampled_from([*ORDERS, "In", "IsNull", "IsNotNull", "StringStartsWith", "StringEndsWith"]))
    if kind in ORDERS:
        literal = draw(value)
        return Condition(
            lambda row: None if row[column] is None else bool(ORDERS[kind](row[column], literal)),
            lambda jvm: getattr(sources(jvm), kind)(column, java(jvm, literal)),
            f"{column} {kind} {literal}",
        )
    if kind == "In":
        choices = draw(st.lists(value, max_size=2))
        return Condition(
            lambda row: None if row[column] is None else row[column] in choices,
            lambda jvm: sources(jvm).In(
                column, array(jvm, jvm.java.lang.Class.forName("java.lang.Object"), [java(jvm, v) for v in choices])
            ),
            f"{column} in {choices}",
        )
    if kind.startswith("Is"):
        return Condition(
            lambda row: (row[column] is None) == (kind == "IsNull"),
            lambda jvm: getattr(sources(jvm), kind)(column),
            f"{column} {kind}",
        )
    start = draw(st.sampled_from(["", *TEXTS]))
    test = str.startswith if kind == "StringStartsWith" else str.endswith
    return Condition(
        lambda row: None if row["s"] is None else test(row["s"], start),
        lambda jvm: getattr(sources(jvm), kind)("s", start),
        f"s {kind} {start}",
    )


def every(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def opposite(one: bool | None) -> bool | None:
    return None if one is None else not one


def joined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    def both(one: Condition, other: Condition) -> Condition:
        return Condition(
            lambda row: every(one.holds(row), other.holds(row)),
            lambda jvm: sources(jvm).And(one.build(jvm), other.build(jvm)),
            f"({one.text} and {other.text})",
        )

    def either(one: Condition, other: Condition) -> Condition:
        return Condition(
            lambda row: opposite(every(opposite(one.holds(row)), opposite(other.holds(row)))),
            lambda jvm: sources(jvm).Or(one.build(jvm), other.build(jvm)),
            f"({one.text} or {other.text})",
        )

    def no(one: Condition) -> Condition:
        return Condition(
            lambda row: opposite(one.holds(row)), lambda jvm: sources(jvm).Not(one.build(jvm)), f"not {one.text}"
        )

    return st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner), st.builds(no, inner))


conditions = st.recursive(leaves(), joined, max_leaves=5)
partitions = st.fixed_dictionaries({name: st.sampled_from([None, *values]) for name, values in DOMAIN.items()})


def text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def tasks(spark: SparkSession, places: Places, filters: list[Condition], parallelism: int) -> list[list[int]]:
    jvm: Any = spark.sparkContext._jvm
    slices = spark_java.new(spark, "Slices", places.to_json())
    assert slices is not None
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.sources.Filter")
    made = slices.tasks(array(jvm, kind, [one.build(jvm) for one in filters]), parallelism)
    return [[int(number) for number in one.split(",")] for one in made]


def possible(partition: Row, joined: bool) -> list[Row]:
    """The rows' values that a partition may have, as far as its own are known. A path loses its last slashes.

    `joined`: and what a value begins with.
    """
    choices = [
        [None, *DOMAIN[name]]
        if value is None
        else [value, value + "/", *([f"/{value}", f"./{value}"] if joined else [])]
        if name == "s"
        else [value]
        for name, value in partition.items()
    ]
    return [dict(zip(partition, values, strict=True)) for values in product(*choices)]


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(st.lists(partitions, min_size=1, max_size=6), st.lists(conditions, max_size=2), st.booleans())
def test_a_filter_leaves_out_what_it_can_and_no_more(
    spark: SparkSession, made: list[Row], filters: list[Condition], joined: bool
) -> None:
    places = Places(
        tuple(DOMAIN),
        tuple(tuple(text(one[name]) for name in DOMAIN) for one in made),
        tuple((number, MB) for number in range(len(made))),
        joined,
    )
    kept = {number for task in tasks(spark, places, filters, 2) for number in task}
    for number, one in enumerate(made):
        can = any(all(f.holds(row) is True for f in filters) for row in possible(one, joined))
        if can:
            assert number in kept, (one, [f.text for f in filters])
        elif None not in one.values() and all("s " not in f.text for f in filters):
            assert number not in kept, (one, [f.text for f in filters])


def where(kind: str, *literals: Any, negated: bool = False) -> Condition:
    def build(jvm: Any) -> Any:
        kinds = sources(jvm)
        if kind == "In":
            made = kinds.In("s", array(jvm, jvm.java.lang.Class.forName("java.lang.Object"), list(literals)))
        else:
            made = getattr(kinds, kind)("s", *literals)
        return kinds.Not(made) if negated else made

    return Condition(lambda row: None, build, "")


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (where("EqualTo", "a"), ["a"]),
        (where("EqualTo", "ab"), ["ab"]),
        (where("EqualTo", "a/"), ["a"]),
        (where("EqualTo", "c"), []),
        (where("In", "ab", "c"), ["ab"]),
        (where("In", "ab", None), ["a", "ab", "b", "a-1"]),
        (where("GreaterThan", "ab"), ["ab", "b"]),
        (where("LessThan", "ab"), ["a", "ab", "a-1"]),
        (where("StringStartsWith", "a"), ["a", "ab", "a-1"]),
        (where("StringStartsWith", "a/"), ["a"]),
        (where("StringStartsWith", "a", negated=True), ["b"]),
        (where("EqualTo", "a", negated=True), ["a", "ab", "b", "a-1"]),
        (where("IsNull", negated=True), ["a", "ab", "b", "a-1"]),
    ],
)
def test_texts(condition: Condition, read: list[str], spark: SparkSession) -> None:
    """A partition's rows may have its text, or that and slashes: where that matters it is read."""
    texts = ["a", "ab", "b", "a-1"]
    places = Places(("s",), tuple((one,) for one in texts), tuple((number, MB) for number in range(4)))
    kept = {texts[number] for task in tasks(spark, places, [condition], 2) for number in task}
    assert kept == set(read)


def test_what_is_not_known_may_be_null(spark: SparkSession) -> None:
    places = Places(("s",), ((None,), ("a",)), ((0, MB), (1, MB)))
    assert tasks(spark, places, [where("IsNull")], 2) == [[0]]
    assert tasks(spark, places, [where("IsNull"), where("EqualNullSafe", None)], 2) == [[0]]


def test_what_is_not_known_may_hold_beside_what_does_not(spark: SparkSession) -> None:
    places = Places(("s", "n"), ((None, "1"), ("b", "1"), ("a", "1")), ((0, MB), (1, MB), (2, MB)))
    either = Condition(
        lambda row: None,
        lambda jvm: sources(jvm).Or(sources(jvm).EqualTo("s", "a"), sources(jvm).EqualTo("n", 2)),
        "",
    )
    assert {number for task in tasks(spark, places, [either], 2) for number in task} == {0, 2}


def test_days_as_spark_gives_them(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    days = ["1500-01-01", "2023-12-31", "2024-01-01"]
    places = Places(("d",), tuple((one,) for one in days), tuple((number, MB) for number in range(3)))
    for made, read in [
        (jvm.java.time.LocalDate.parse("2024-01-01"), [[2]]),
        (jvm.java.sql.Date.valueOf("2024-01-01"), [[2]]),
        (jvm.java.sql.Date.valueOf("1500-01-01"), [[0, 2], [1]]),  # of another calendar
    ]:
        equal = Condition(lambda row: None, partial(equal_to, made), "")
        assert tasks(spark, places, [equal], 2) == read


def test_texts_are_ordered_by_their_utf_8(spark: SparkSession) -> None:
    """As Spark orders them, also where UTF-16 has another order."""
    low, high = TEXTS[-2:]
    places = Places(("s",), ((low,), (high,)), ((0, MB), (1, MB)))
    above = Condition(lambda row: True, lambda jvm: sources(jvm).GreaterThan("s", low + "z"), "")
    below = Condition(lambda row: True, lambda jvm: sources(jvm).LessThan("s", low + "z"), "")
    assert tasks(spark, places, [above], 2) == [[1]]
    assert tasks(spark, places, [below], 2) == [[0]]


def packed(spark: SparkSession, sizes: list[int], parallelism: int) -> list[list[int]]:
    places = Places((), ((),), tuple((0, size) for size in sizes))
    return tasks(spark, places, [], parallelism)


def test_small_slices_share_as_many_tasks_as_run_at_a_time(spark: SparkSession) -> None:
    assert [len(task) for task in packed(spark, [20 * MB] * 8, 2)] == [4, 4]
    assert [len(task) for task in packed(spark, [30 * MB] * 8, 2)] == [2, 2, 2, 2]
    assert [len(task) for task in packed(spark, [0, 0, 0], 2)] == [2, 1]
    assert [len(task) for task in packed(spark, [200 * MB] * 5, 2)] == [1] * 5
    assert packed(spark, [10 * MB, 10 * MB, 10 * MB, 100 * MB], 2) == [[3], [0, 1, 2]]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 300 * MB), min_size=1, max_size=40), st.integers(1, 8))
def test_every_slice_is_read_once(spark: SparkSession, sizes: list[int], parallelism: int) -> None:
    made = packed(spark, sizes, parallelism)
    assert sorted(number for task in made for number in task) == list(range(len(sizes)))
    assert all(made)
    assert len(made) >= min(parallelism, len(sizes))


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (where("EqualTo", "b"), ["b"]),
        (where("EqualTo", "/b"), ["a", "b", "c"]),
        (where("In", "b", "x"), ["b"]),
        (where("LessThan", "b"), ["a", "b", "c"]),  # "/c" is less
        (where("GreaterThan", "b"), ["b", "c"]),
        (where("StringStartsWith", "b"), ["b"]),
        (where("StringStartsWith", "b", negated=True), ["a", "b", "c"]),
        (where("StringStartsWith", "./b"), ["a", "b", "c"]),
    ],
)
def test_texts_that_were_joined(condition: Condition, read: list[str], spark: SparkSession) -> None:
    """Their rows may also have slashes and dots before the text."""
    places = Places(("s",), (("a",), ("b",), ("c",)), ((0, MB), (1, MB), (2, MB)), joined=True)
    kept = {"abc"[number] for task in tasks(spark, places, [condition], 2) for number in task}
    assert sorted(kept) == read


def test_one_thread_compiles_and_all_use_that(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    monkeypatch.delitem(spark_java._COMPILED, context, raising=False)
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: spark_java.compiled(context), range(4))
    assert all(one is first for one in others)


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError])
def test_a_session_without_a_context_has_none_of_our_classes(error: type[Exception]) -> None:
    class Connected:
        @property
        def sparkContext(self) -> None:  # noqa: N802
            raise error

    assert spark_java.new(Connected(), "Slices", "{}") is None
