"""The cost curve says of each threshold what planning at it would really do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_assets.engine.actions.compaction.closure import MergeRule
from hudi_assets.engine.actions.compaction.cost import CostPoint, cost_curve
from hudi_assets.engine.actions.compaction.strategy import EventTimeBased, LogSummary, plan
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.event_time.freshness import compute_freshness
from hudi_assets.engine.model import NO_THRESHOLD, BaseFile, FileSlice, LogFile, MergeMode, Plan
from hudi_assets.engine.table.layout.placement import NewInstant
from hudi_assets.engine.table.slices.file_view import FileView

MB = 1024 * 1024
NOW = 50
WATERMARK = 40
Group = tuple[str, int | None, Sequence[tuple[LogSummary, int]]]  # partition, base bytes, logs with bytes


BY_EVENT_TIME = MergeRule(MergeMode.EVENT_TIME_ORDERING, by_event_time=True)


def table(groups: Sequence[Group], **options: int | None) -> tuple[FileView, EventTimeBased]:
    """A view and the strategy over it, from each group's log summaries."""
    slices, summaries = {}, {}
    for n, (partition, base, logs) in enumerate(groups):
        file_id = f"g{n}"
        files = []
        for v, (summary, size) in enumerate(logs, start=1):
            path = f"{partition}/.{file_id}_1.log.{v}"
            summaries[path] = summary
            files.append(LogFile(path, partition, file_id, "1", v, "0-0-0", size, path))
        base_file = None if base is None else BaseFile(f"{partition}/{file_id}", partition, file_id, "1", "0-0-0", base)
        slices[partition, file_id] = (FileSlice(partition, file_id, "1", base_file, tuple(files)),)
    return FileView(slices, {}), EventTimeBased(NO_THRESHOLD, summaries, BY_EVENT_TIME, **options)  # type: ignore[arg-type]


def curve(view: FileView, strategy: EventTimeBased, points: int = 1000, now: int = NOW) -> tuple[CostPoint, ...]:
    return cost_curve(
        view, strategy, base_file_size=0, now_ms=now, watermark_of=lambda claimed: WATERMARK, points=points
    )


def really(view: FileView, strategy: EventTimeBased, threshold: int) -> CostPoint:
    """The point as a plan at the threshold makes it, by the rules of planning and of freshness."""
    found = plan(
        view,
        replace(strategy, threshold=threshold),
        placement=NewInstant("2"),
        partitions=sorted({key[0] for key in view.groups}),
        base_file_size=0,
        carry_over=lambda slice_, remain, instant: (),
        extra_metadata={},
    )
    operations = found.operations if isinstance(found, Plan) else ()
    merged = {path for op in operations for path in op.log_files}
    sizes = {log.path: log.size for s in view.latest for log in s.log_files}
    sizes |= {s.base_file.path: s.base_file.size for s in view.latest if s.base_file}
    freshness = compute_freshness(
        [log for s in view.latest for log in s.log_files if log.path not in merged],
        strategy.summaries,
        now_ms=NOW,
        oldest_unfinished_ms=None,
        data_latency_ms=NOW - WATERMARK,
        last_threshold=None,
    )
    return CostPoint(
        threshold=threshold,
        bytes_to_rewrite=sum(sizes[path] for path in merged)
        + sum(sizes[op.base_file] for op in operations if op.base_file),
        log_files=len(merged),
        file_groups=len(operations),
        freshness=freshness.freshness,
    )


def summary(low: int | None, length: int, deletes: int | None, kind: str) -> LogSummary:
    if kind == "nothing":
        return LogSummary(None, None, 0, 1, "holds no record", records=0)
    if kind == "tombstones":
        return LogSummary(None, None, 1, 0, "merged already", records=0)
    if low is None:
        return LogSummary(None, None, None, reason="unknown")
    return LogSummary(low, low + length, deletes, 1 if kind == "rollback" else 0)


SUMMARIES = st.builds(
    summary,
    st.one_of(st.integers(0, 60), st.integers(0, 60), st.none()),
    st.integers(0, 20),
    st.sampled_from([0, 0, 0, 1, None]),
    st.sampled_from(["plain"] * 8 + ["rollback", "nothing", "tombstones"]),
)
GROUPS = st.lists(
    st.tuples(
        st.sampled_from("pq"),
        st.one_of(st.none(), st.integers(0, 9 * MB)),
        st.lists(st.tuples(SUMMARIES, st.integers(1, 3 * MB)), max_size=5),
    ),
    max_size=5,
)

RULES = st.builds(MergeRule, st.sampled_from(list(MergeMode)), st.booleans(), st.booleans())


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(GROUPS, st.sampled_from([None, None, 0, 5, 20]), st.sampled_from([None, None, 1, 2]), RULES)
def test_every_point_is_what_planning_there_would_select(
    groups: list[Group], io: int | None, partitions: int | None, rule: MergeRule
) -> None:
    view, strategy = table(groups, target_io=io, target_partitions=partitions)
    strategy = replace(strategy, rule=rule)
    found = curve(view, strategy)
    minima = {s.min_event_time for s in strategy.summaries.values() if s.min_event_time is not None}
    assert [point.threshold for point in found] == sorted(low for low in minima if low <= NOW)
    for point in found:
        assert point == really(view, strategy, point.threshold)


@settings(max_examples=200, deadline=None)
@given(GROUPS, st.integers(1, 7))
def test_thinned_points_are_points_of_the_whole_curve(groups: list[Group], points: int) -> None:
    view, strategy = table(groups)
    whole, thin = curve(view, strategy), curve(view, strategy, points)
    assert set(thin) <= set(whole)
    assert len(thin) == min(points, len(whole))
    if whole:
        assert thin[-1] == whole[-1]
    if points > 1:
        assert thin[:1] == whole[:1]


def test_a_curve_that_can_be_read_off() -> None:
    one = [(LogSummary(10, 19, 0), 2 * MB), (LogSummary(30, 39, 0), 3 * MB)]
    two = [(LogSummary(20, 29, 0), 1 * MB)]
    view, strategy = table([("p", 5 * MB, one), ("p", None, two)])
    assert curve(view, strategy) == (
        CostPoint(10, 7 * MB, 1, 1, 19),
        CostPoint(20, 8 * MB, 2, 2, 29),
        CostPoint(30, 11 * MB, 3, 2, WATERMARK),
    )


def test_an_unknown_log_file_that_a_bound_leaves_out_makes_freshness_unknown() -> None:
    unknown = (LogSummary(None, None, None, reason="?"), 1)
    view, strategy = table([("p", MB, [unknown]), ("q", MB, [unknown, (LogSummary(10, 10, 0), 1)])], target_io=1)
    assert [point.freshness for point in curve(view, strategy)] == [None]


def test_an_exact_split_promises_no_more_than_its_threshold_where_it_cuts_a_log_file() -> None:
    logs = [(LogSummary(10, 10, 0), 1), (LogSummary(20, 29, 0), 1), (LogSummary(45, 45, 0), 1)]
    view, strategy = table([("p", MB, logs)])
    found = curve(view, replace(strategy, exact_split=True))
    assert [(point.threshold, point.freshness) for point in found] == [(10, 19), (20, 20), (45, WATERMARK)]
    assert [point.freshness for point in curve(view, strategy)] == [19, WATERMARK, WATERMARK]


def test_a_table_without_log_files_has_no_curve_and_no_points_are_refused() -> None:
    view, strategy = table([("p", MB, [])])
    assert curve(view, strategy) == ()
    with pytest.raises(InvalidInput, match="0 points"):
        curve(view, strategy, points=0)


def test_selection_runs_only_where_a_minimum_is_crossed(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 log files in 1,000 groups: the slices chosen anew, not the seconds, are counted."""
    groups: list[Group] = [
        ("p", MB, [(LogSummary(g + 1000 * n, g + 1000 * n, 0), MB) for n in range(10)]) for g in range(1000)
    ]
    view, strategy = table(groups)
    calls = 0
    choose = EventTimeBased.filter_log_files

    def counted(self: EventTimeBased, slice_: FileSlice) -> tuple[tuple[LogFile, ...], tuple[LogFile, ...]]:
        nonlocal calls
        calls += 1
        return choose(self, slice_)

    monkeypatch.setattr(EventTimeBased, "filter_log_files", counted)
    assert len(curve(view, strategy, points=50, now=10_000)) == 50
    assert calls <= 10_000
