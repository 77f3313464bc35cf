"""Hudi's strategies by their rules, the settings that name them, and bounds on an event-time compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.hudi_strategies import day_of, hudi_strategy
from hudi_assets.engine.actions.compaction.strategy import CompactionStrategy, EventTimeBased, LogSummary, plan
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model import NO_THRESHOLD, BaseFile, FileSlice, LogFile, MergeMode, NoPlan, Plan
from hudi_assets.engine.model.plans import StrategyName
from hudi_assets.engine.table.layout.placement import NewInstant
from hudi_assets.engine.table.settings.compaction import CompactionSettings, TriggerName, parse_compaction_settings
from hudi_assets.engine.table.slices.file_view import FileView

MB = 1024 * 1024
TODAY = date(2024, 3, 10)


def slice_of(partition: str, file_id: str, logs: Sequence[int], base: int | None = MB) -> FileSlice:
    """A slice with a base file of `base` bytes and log files of these sizes (bytes)."""
    folder = f"{partition}/" if partition else ""
    files = tuple(
        LogFile(f"{folder}.{file_id}_1.log.{n}", partition, file_id, "1", n, "0-0-0", size, f"{folder}.{file_id}.{n}")
        for n, size in enumerate(logs, start=1)
    )
    base_file = None if base is None else BaseFile(f"{folder}{file_id}.parquet", partition, file_id, "1", "0-0-0", base)
    return FileSlice(partition, file_id, "1", base_file, files)


def view_of(*slices: FileSlice) -> FileView:
    return FileView({(s.partition, s.file_id): (s,) for s in slices}, {})


def planned(strategy: CompactionStrategy, view: FileView, partitions: Sequence[str] | None = None) -> Plan | NoPlan:
    return plan(
        view,
        strategy,
        placement=NewInstant("2"),
        partitions=sorted({key[0] for key in view.groups}) if partitions is None else partitions,
        base_file_size=120 * MB,
        carry_over=lambda slice_, remain, instant: (),
        extra_metadata={},
    )


def taken(name: StrategyName, view: FileView, **options: Any) -> list[str]:
    """The file ids that a strategy of Hudi's takes, in order."""
    found = planned(hudi_strategy(CompactionSettings(strategy=name, **options), TODAY), view)
    assert isinstance(found, Plan), found
    assert found.threshold == NO_THRESHOLD
    assert found.strategy == f"org.apache.hudi.table.action.compact.strategy.{name}"
    return [op.file_id for op in found.operations]


def reason(name: StrategyName, view: FileView, **options: Any) -> str:
    found = planned(hudi_strategy(CompactionSettings(strategy=name, **options), TODAY), view)
    assert isinstance(found, NoPlan)
    return found.reason


SIZES = view_of(
    slice_of("", "a", [10, 10]),
    slice_of("", "b", [40 * MB]),
    slice_of("", "c", [5, 5, 5]),
    slice_of("", "d", []),
    slice_of("", "e", [10, 10]),
)


def test_unbounded_takes_every_slice_with_log_files_whole() -> None:
    found = planned(hudi_strategy(CompactionSettings(strategy=StrategyName.UNBOUNDED), TODAY), SIZES)
    assert isinstance(found, Plan)
    assert [(op.file_id, len(op.log_files)) for op in found.operations] == [("a", 2), ("b", 1), ("c", 3), ("e", 2)]
    assert all(op.carried_over == () for op in found.operations)


def test_most_log_bytes_first_and_ties_in_order() -> None:
    assert taken(StrategyName.LOG_FILE_SIZE, SIZES) == ["b", "a", "e", "c"]
    assert taken(StrategyName.LOG_FILE_SIZE, SIZES, log_size_threshold=20) == ["b", "a", "e"]


def test_most_log_files_first() -> None:
    assert taken(StrategyName.LOG_FILE_NUM, SIZES) == ["c", "a", "e", "b"]
    assert taken(StrategyName.LOG_FILE_NUM, SIZES, log_num_threshold=2) == ["c", "a", "e"]


def test_the_slice_that_reaches_the_io_bound_is_the_last() -> None:
    # a: reads 1 MB, writes 1 MB; b: reads 41, writes 1.
    assert taken(StrategyName.BOUNDED_IO, SIZES, target_io=3) == ["a", "b"]
    assert taken(StrategyName.BOUNDED_IO, SIZES, target_io=2) == ["a"]
    assert taken(StrategyName.LOG_FILE_SIZE, SIZES, target_io=42) == ["b"]
    assert taken(StrategyName.LOG_FILE_SIZE, SIZES, target_io=43) == ["b", "a"]
    assert taken(StrategyName.LOG_FILE_NUM, SIZES, target_io=0) == ["c"]


def test_a_slice_without_base_file_is_expected_to_write_a_full_one() -> None:
    view = view_of(slice_of("", "a", [MB], base=None))
    found = planned(hudi_strategy(CompactionSettings(strategy=StrategyName.UNBOUNDED), TODAY), view)
    assert isinstance(found, Plan)
    assert found.operations[0].metrics == {
        "TOTAL_LOG_FILES": 1.0,
        "TOTAL_LOG_FILES_SIZE": float(MB),
        "TOTAL_IO_READ_MB": 1.0,
        "TOTAL_IO_WRITE_MB": 120.0,
        "TOTAL_IO_MB": 121.0,
    }


DAYS = view_of(
    slice_of("2024/03/09", "a", [1]),
    slice_of("2024/03/10", "b", [1]),
    slice_of("2024/03/10", "c", [1]),
    slice_of("2024/03/01", "d", [1]),
    slice_of("2024/03/12", "e", []),
    slice_of("2024/02/29", "f", [1]),
)


def test_the_newest_partitions_first_those_without_log_files_counted() -> None:
    assert taken(StrategyName.DAY, DAYS) == ["b", "c", "a", "d", "f"]
    assert taken(StrategyName.DAY, DAYS, target_partitions=3) == ["b", "c", "a"]


def test_from_so_many_days_before_today_on() -> None:
    assert taken(StrategyName.BOUNDED_PARTITION, DAYS, target_partitions=9) == ["b", "c", "a", "d"]
    assert taken(StrategyName.BOUNDED_PARTITION, DAYS, target_partitions=1) == ["b", "c", "a"]


@pytest.mark.parametrize("days", [0, 1, 8, 9, 10, 11, 400])
def test_bounded_and_unbounded_partitions_share_all_between_them(days: int) -> None:
    both = []
    for name in (StrategyName.BOUNDED_PARTITION, StrategyName.UNBOUNDED_PARTITION):
        found = planned(hudi_strategy(CompactionSettings(strategy=name, target_partitions=days), TODAY), DAYS)
        both += [] if isinstance(found, NoPlan) else [op.file_id for op in found.operations]
    assert sorted(both) == ["a", "b", "c", "d", "f"]


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2024/03/09", date(2024, 3, 9)),
        ("2024/03/09/17", date(2024, 3, 9)),
        ("year=2024/month=03/day=09", date(2024, 3, 9)),
        ("2023/14/32", date(2024, 3, 3)),  # Java's SimpleDateFormat is lenient
        ("2024-03-09", None),
        ("p=a", None),
        ("", None),
    ],
)
def test_days_of_partitions(path: str, day: date | None) -> None:
    assert day_of(path) == day


def test_partitions_that_are_no_days_are_refused_by_name() -> None:
    view = view_of(slice_of("p=a", "a", [1]), slice_of("p=b", "b", [1]))
    with pytest.raises(InvalidInput, match="'p=b' is no day"):
        taken(StrategyName.BOUNDED_PARTITION, view)
    with pytest.raises(InvalidInput, match="is no day"):
        taken(StrategyName.DAY, view)
    # One partition is compared with nothing.
    assert taken(StrategyName.DAY, view_of(slice_of("p", "a", [1]))) == ["a"]


def test_days_with_dashes_are_not_found_as_in_hudi() -> None:
    view = view_of(slice_of("2024-03-09", "a", [1]), slice_of("2024-03-10", "b", [1]))
    assert reason(StrategyName.DAY, view) == (
        "2 file slices have log files, but none is in a partition that DayBasedCompactionStrategy takes"
    )


def test_reasons_for_no_plan() -> None:
    assert reason(StrategyName.UNBOUNDED, view_of(slice_of("", "a", []))) == "no file slice has log files"
    assert reason(StrategyName.LOG_FILE_NUM, SIZES, log_num_threshold=4) == (
        "4 file slices have log files, but none meets hoodie.compaction.logfile.num.threshold=4"
    )


# ------------------------------------------------------------------------------- settings


def test_this_projects_strategy_is_the_default_and_unbounded() -> None:
    found = parse_compaction_settings({}, "t")
    assert found == CompactionSettings()
    assert (found.strategy, found.trigger) == (StrategyName.EVENT_TIME, TriggerName.EVENT_TIME)
    assert (found.io_bound, found.partition_bound) == (None, None)


@pytest.mark.parametrize("name", list(StrategyName))
def test_short_and_full_class_names(name: StrategyName) -> None:
    for text in (name.value, name.class_name):
        found = parse_compaction_settings({"hoodie.compaction.strategy": text}, "t")
        assert found.strategy is name
        ours = name is StrategyName.EVENT_TIME
        assert found.trigger is (TriggerName.EVENT_TIME if ours else TriggerName.NUM_COMMITS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.compaction.strategy", "com.example.Mine"),
        ("hoodie.compact.inline.trigger.strategy", "SOMETIMES"),
        ("hoodie.compaction.target.io", "-1"),
        ("hoodie.compaction.daybased.target.partitions", "ten"),
        ("hoodie.compact.inline.max.delta.commits", "1.5"),
        ("hoodie.compact.inline.max.delta.seconds", "²"),
    ],
)
def test_bad_settings_are_refused_by_key_and_value(key: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_compaction_settings({key: value}, "the table")
    assert key in caught.value.what
    assert value in caught.value.what


# ------------------------------------------------------------------------------- bounds on event time


BY_EVENT_TIME = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True)


def event_time(view: FileView, lows: Mapping[str, Sequence[int | None]], **options: Any) -> EventTimeBased:
    """Summaries by file id: each log file's minimum event time; its maximum is the same."""
    summaries = {
        log.path: LogSummary(low, low, 0)
        for slices in view.groups.values()
        for log, low in zip(slices[-1].log_files, lows[slices[-1].file_id], strict=True)
    }
    return EventTimeBased(options.pop("threshold", 100), summaries, BY_EVENT_TIME, **options)


THREE = view_of(slice_of("p", "a", [MB]), slice_of("q", "b", [MB]), slice_of("q", "c", [MB]))
LOWS = {"a": [30], "b": [10], "c": [20]}


def test_without_bounds_the_threshold_is_what_was_asked_for() -> None:
    found = planned(event_time(THREE, LOWS), THREE)
    assert isinstance(found, Plan)
    assert found.threshold == 100
    assert [op.file_id for op in found.operations] == ["b", "c", "a"]


def test_an_io_bound_takes_the_oldest_and_claims_no_more() -> None:
    found = planned(event_time(THREE, LOWS, target_io=4), THREE)  # 3 MB each
    assert isinstance(found, Plan)
    assert [op.file_id for op in found.operations] == ["b", "c"]
    assert found.threshold == 29


def test_a_partition_bound_takes_those_with_the_oldest_event_times() -> None:
    found = planned(event_time(THREE, LOWS, target_partitions=1), THREE)
    assert isinstance(found, Plan)
    assert [op.file_id for op in found.operations] == ["b", "c"]
    assert found.threshold == 29


def test_unknown_event_times_come_first_and_block_every_claim_when_left_out() -> None:
    lows: dict[str, list[int | None]] = {"a": [None], "b": [10], "c": [None]}
    found = planned(event_time(THREE, lows, target_io=1), THREE)
    assert isinstance(found, Plan)
    assert [op.file_id for op in found.operations] == ["a"]
    assert found.threshold == NO_THRESHOLD
    found = planned(event_time(THREE, lows, target_io=4), THREE)
    assert isinstance(found, Plan)
    assert (len(found.operations), found.threshold) == (2, 9)


def test_an_exact_split_has_a_threshold_whatever_the_bound() -> None:
    lows: dict[str, list[int | None]] = {"a": [None], "b": [10], "c": [None]}
    strategy = replace(event_time(THREE, lows, target_io=1, target_partitions=1), exact_split=True)
    found = planned(strategy, THREE)
    assert isinstance(found, Plan)
    assert {op.file_id for op in found.operations} == {"a", "b", "c"}
    lows = {"a": [None], "b": [10], "c": [20]}
    found = planned(replace(event_time(THREE, lows, target_io=1), exact_split=True), THREE)
    assert isinstance(found, Plan)
    assert [op.file_id for op in found.operations] == ["a", "b"]
    assert found.threshold == 19


@st.composite
def bounded(draw: st.DrawFn) -> tuple[FileView, EventTimeBased]:
    groups = draw(
        st.lists(
            st.tuples(
                st.sampled_from("pqr"),
                st.lists(st.one_of(st.integers(0, 20), st.none()), min_size=1, max_size=4),
                st.integers(0, 5),
            ),
            max_size=6,
        )
    )
    slices = [slice_of(p, f"g{n}", [size * MB] * len(lows)) for n, (p, lows, size) in enumerate(groups)]
    view = view_of(*slices)
    strategy = event_time(
        view, {f"g{n}": lows for n, (_, lows, _) in enumerate(groups)}, threshold=draw(st.integers(-1, 21))
    )
    io, partitions = draw(st.one_of(st.none(), st.integers(0, 30))), draw(st.one_of(st.none(), st.integers(0, 3)))
    return view, replace(strategy, target_io=io, target_partitions=partitions)


@settings(max_examples=400, deadline=None)
@given(bounded())
def test_a_plan_claims_exactly_what_it_compacts(case: tuple[FileView, EventTimeBased]) -> None:
    view, strategy = case
    found = planned(strategy, view)
    whole = planned(replace(strategy, target_io=None, target_partitions=None), view)
    assert isinstance(found, Plan) == isinstance(whole, Plan)  # a bound slows down, it never stops
    if not isinstance(found, Plan):
        return
    in_plan = {path for op in found.operations for path in op.log_files}
    left = [
        strategy.summaries[log.path].min_event_time
        for slices in view.groups.values()
        for log in slices[-1].log_files
        if log.path not in in_plan
    ]
    if None in left:
        assert found.threshold == NO_THRESHOLD
        return
    times = [low for low in left if low is not None]
    assert all(low > found.threshold for low in times)
    # And no less: one millisecond more would not be true, or was not asked for.
    assert found.threshold == strategy.threshold or found.threshold + 1 in times


@settings(max_examples=200, deadline=None)
@given(bounded())
def test_bounded_plans_reach_the_threshold_in_the_end(case: tuple[FileView, EventTimeBased]) -> None:
    view, strategy = case
    while isinstance(found := planned(strategy, view), Plan):
        done = {path for op in found.operations for path in op.log_files}
        groups = {
            key: (replace(s[-1], log_files=tuple(log for log in s[-1].log_files if log.path not in done)),)
            for key, s in view.groups.items()
        }
        assert groups != view.groups
        view = FileView(groups, {})
    for slices in view.groups.values():
        for log in slices[-1].log_files:
            low = strategy.summaries[log.path].min_event_time
            assert low is not None
            assert low > strategy.threshold
