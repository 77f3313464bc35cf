"""The cyclic garbage collector is put off while many values are made, and nothing else is done to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hudi_assets.engine.gc_pause import no_collecting

MANY = 1_000_000


class Node:
    """Refers to itself: only the collector finds it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    gc.collect()
    yield
    gc.enable()


@pytest.mark.parametrize("values", [0, MANY])
def test_nothing_gets_older_than_it_is(values: int) -> None:
    with no_collecting(values):
        kept, lost = Node(), Node()
    assert not {id(kept), id(lost)} & {id(value) for value in gc.get_objects(generation=2)}
    seen = weakref.ref(lost)
    del lost
    gc.collect(1)  # the young ones
    assert seen() is None
    assert kept.itself is kept


def test_it_is_off_only_for_many_values() -> None:
    with no_collecting(10):
        assert gc.isenabled()
    with no_collecting(MANY):
        assert not gc.isenabled()
    assert gc.isenabled()


def test_one_within_another_leaves_the_collector_to_the_outer_one() -> None:
    with no_collecting(MANY):
        with no_collecting(MANY):
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_threads_that_overlap_leave_it_on() -> None:
    """The first one in is not kept waiting by the second: else the collector might never run."""
    first, second = ExitStack(), ExitStack()
    first.enter_context(no_collecting(MANY))
    second.enter_context(no_collecting(MANY))
    first.close()
    assert gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_where_the_program_has_it_off_it_stays_off() -> None:
    gc.disable()
    with no_collecting(MANY):
        pass
    assert not gc.isenabled()


def test_an_error_leaves_it_on() -> None:
    with pytest.raises(ValueError, match="damaged"), no_collecting(MANY):
        raise ValueError("damaged")
    assert gc.isenabled()


def test_what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with no_collecting(MANY):
            pass
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()
