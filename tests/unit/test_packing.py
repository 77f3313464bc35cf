"""Slices in Spark tasks: none is lost, none comes twice, and no task is much larger than it has to be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine.queries.packing import pack
from hudi_assets.engine.slices.reader import SliceTask

MB = 1 << 20


def slices(*sizes: int) -> list[SliceTask]:
    return [SliceTask(f"{number}.parquet", (), size) for number, size in enumerate(sizes)]


def test_small_slices_share_as_many_tasks_as_run_at_a_time() -> None:
    assert [len(task) for task in pack(slices(*[20 * MB] * 8), 2)] == [4, 4]
    assert [len(task) for task in pack(slices(*[30 * MB] * 8), 2)] == [2, 2, 2, 2]
    assert [len(task) for task in pack(slices(0, 0, 0), 2)] == [2, 1]


def test_large_slices_have_tasks_of_their_own() -> None:
    assert [len(task) for task in pack(slices(*[200 * MB] * 5), 2)] == [1] * 5


def test_a_large_one_is_not_joined_by_others() -> None:
    large, *small = slices(100 * MB, 10 * MB, 10 * MB, 10 * MB)
    assert pack([*small, large], 2) == [(large,), tuple(small)]


@given(st.lists(st.integers(0, 300 * MB), min_size=1, max_size=40), st.integers(1, 8))
def test_every_slice_is_read_once(sizes: list[int], parallelism: int) -> None:
    made = slices(*sizes)
    tasks = pack(made, parallelism)
    assert sorted(one.base_file or "" for task in tasks for one in task) == sorted(one.base_file or "" for one in made)
    assert all(tasks)
    assert len(tasks) >= min(parallelism, len(made))
