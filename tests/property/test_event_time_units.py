"""The unit that the values of a column tell is the one that its writer meant, or none is told."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.model.column_unit import ColumnUnit, Counts, Source, contradiction, infer, possible_units
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit

_DAY = 86_400_000
_1900, _1970, _1971, _1980, _2100, _9999 = (
    -2_208_988_800_000,
    0,
    31_536_000_000,
    315_532_800_000,
    4_102_444_800_000,
    253_402_300_799_999,
)


@dataclass(frozen=True)
class Truth:
    """What a writer meant: the unit, and of each file when it was committed and its first and last event (epoch ms)."""

    unit: EventTimeUnit
    files: tuple[tuple[int, int, int], ...]

    @property
    def counts(self) -> list[Counts]:
        micros = MICROS_OF[self.unit]
        return [
            Counts(f"log {n}", low * 1000 // micros, high * 1000 // micros, at)
            for n, (at, low, high) in enumerate(self.files)
        ]


def _file(events: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int, int]]:
    pair = st.tuples(events, events).map(sorted)
    return st.tuples(st.integers(_1980 + _DAY, _2100), pair).map(lambda one: (one[0], one[1][0], one[1][1]))


# Any event but those of 1970, whose first weeks are the seconds of our days a thousand times too short.
_any_event = st.one_of(
    st.integers(_1971, _2100), st.integers(_1900, -1), st.integers(_2100, _9999), st.sampled_from([0, _9999, _1971])
)
_units = st.sampled_from(list(MICROS_OF))
_any_truth = st.builds(Truth, _units, st.lists(_file(_any_event), min_size=1, max_size=4).map(tuple))


def _late(at: int, lateness: list[int]) -> tuple[int, int, int]:
    events = sorted(max(_1980 + 1000, at - late) for late in lateness)
    return at, events[0], events[-1]


_ordinary_files = st.lists(
    st.builds(
        _late,
        st.integers(_1980 + _DAY, _2100),
        # Up to a day ahead of the commit: a clock that is wrong.
        st.lists(st.integers(-_DAY, 20 * 365 * _DAY), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=4,
)


@given(_any_truth)
@settings(max_examples=300, deadline=None)
def test_what_is_inferred_is_what_was_meant_or_nothing(truth: Truth) -> None:
    found = infer("ts", truth.counts)
    assert found.unit in (truth.unit, None)
    assert (found.unit is None) == (found.problem is not None) == (found.evidence is None)


@given(_units, _ordinary_files)
@settings(max_examples=200, deadline=None)
def test_of_ordinary_tables_it_is_inferred(unit: EventTimeUnit, files: list[tuple[int, int, int]]) -> None:
    assert infer("ts", Truth(unit, tuple(files)).counts).unit is unit


@given(st.integers(), st.integers(), st.integers(0, _9999))
@settings(max_examples=200, deadline=None)
def test_never_two_units_are_possible(one: int, other: int, committed_ms: int) -> None:
    assert len(possible_units(Counts("log", min(one, other), max(one, other), committed_ms))) <= 1


@given(_units, _units, _ordinary_files)
@settings(max_examples=200, deadline=None)
def test_a_stated_unit_is_contradicted_by_another_ones_values_alone(
    stated: EventTimeUnit, true: EventTimeUnit, files: list[tuple[int, int, int]]
) -> None:
    found = contradiction(ColumnUnit("ts", stated, Source.SETTING), Truth(true, tuple(files)).counts)
    assert (found is None) == (stated is true)
    assert found is None or str(true) in (found.hint or "")
