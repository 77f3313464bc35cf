"""The cyclic garbage collector is kept off what lives on, and is afterwards as it was."""

from __future__ import annotations

import gc
import weakref

import pytest

from hudi_assets.engine.collector import no_collecting


class Node:
    """Refers to itself: only the collector finds it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> object:
    yield gc.enable()
    gc.unfreeze()
    gc.enable()


@pytest.mark.usefixtures("collector")
def test_what_was_made_is_not_young_any_more_and_garbage_of_it_is_found_later() -> None:
    with no_collecting():
        assert not gc.isenabled()
        kept, lost = Node(), Node()
    young = {id(value) for value in gc.get_objects(generation=0)}
    assert id(kept) not in young
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    seen = weakref.ref(lost)
    del lost
    gc.collect()
    assert seen() is None
    assert kept.itself is kept


@pytest.mark.usefixtures("collector")
def test_one_within_another_leaves_the_collector_to_the_outer_one() -> None:
    with no_collecting():
        with no_collecting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.usefixtures("collector")
def test_what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with no_collecting():
        pass
    assert gc.get_freeze_count() == frozen > 0
    assert gc.isenabled()
