"""At which past instant a compaction is planned: one test for each rule."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_assets.engine.model import Action, BaseFile, FileSlice, Instant, LogFile, State
from hudi_assets.engine.table.layout.placement import PastInstant, past_instant
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.timeline.instants import Timeline, format_instant

LAYOUT = LayoutV8(9)
_EPOCH_MS = 1_790_000_000_000
Deltas = Mapping[int, int | None]  # requested → completed, None while it is not; ms


def t(ms: int) -> str:
    return format_instant(_EPOCH_MS + ms, "UTC")


def log(requested: int, group: str = "f") -> LogFile:
    name = f".{group}_{t(requested)}.log.1_0-0-0"
    return LogFile(name, "", group, t(requested), 1, "0-0-0", 1, name)


def slice_of(*requested: int, base: int | None = None, group: str = "f") -> FileSlice:
    logs = tuple(log(r, group) for r in requested)
    instant = t(base if base is not None else requested[0])
    file = BaseFile(f"{group}_0_{instant}.parquet", "", group, instant, "0", 1) if base is not None else None
    return FileSlice("", group, instant, file, logs)


def delta(requested: int, completed: int | None) -> Instant:
    if completed is None:
        return Instant(t(requested), Action.DELTA_COMMIT, State.INFLIGHT, f"{t(requested)}.deltacommit.inflight")
    name = f"{t(requested)}_{t(completed)}.deltacommit"
    return Instant(t(requested), Action.DELTA_COMMIT, State.COMPLETED, name, t(completed))


def place(deltas: Deltas, *others: Instant) -> PastInstant:
    timeline = Timeline(tuple(sorted((*(delta(r, c) for r, c in deltas.items()), *others))))
    return past_instant(timeline, timeline.completions.get)


def chosen(placement: PastInstant, slice_: FileSlice, *requested: int) -> list[str]:
    """The instants of the log files that a plan takes so that these are in it."""
    logs = [one for one in slice_.log_files if one.base_instant in {t(r) for r in requested}]
    return [one.base_instant for one in placement.settle(placement.considered(slice_), logs)]


def instant_of(placement: PastInstant, slice_: FileSlice, *requested: int) -> str:
    slice_ = placement.considered(slice_)
    logs = [one for one in slice_.log_files if one.base_instant in {t(r) for r in requested}]
    instant, suited = placement.place([placement.span(slice_, placement.settle(slice_, logs))])
    assert suited == {0}
    return instant


def test_it_lies_right_above_the_last_completion_that_is_taken() -> None:
    placement = place({10: 20, 30: 40, 50: 60})
    assert chosen(placement, slice_of(10, 30, 50), 10, 30) == [t(10), t(30)]
    assert instant_of(placement, slice_of(10, 30, 50), 10, 30) == t(41)


def test_everything_completed_before_it_is_taken() -> None:
    """A later log file by log order, completed earlier, would be below the instant."""
    placement = place({10: 100, 20: 30, 200: 210})
    assert chosen(placement, slice_of(10, 20, 200), 10) == [t(10), t(20)]
    assert instant_of(placement, slice_of(10, 20, 200), 10) == t(101)


def test_it_lies_below_the_requested_time_of_what_is_kept() -> None:
    """30–90 was requested below the completion of what is taken: it has to come too, and what it overlaps."""
    placement = place({10: 50, 30: 90, 80: 120, 130: 140})
    assert chosen(placement, slice_of(10, 30, 80, 130), 10) == [t(10), t(30), t(80)]
    assert instant_of(placement, slice_of(10, 30, 80, 130), 10) == t(121)


def test_overlaps_of_other_file_groups_do_not_matter() -> None:
    placement = place({10: 50, 30: 90, 100: 110})
    assert chosen(placement, slice_of(10, 100), 10) == [t(10)]
    assert instant_of(placement, slice_of(10, 100), 10) == t(51)


def test_a_write_requested_in_the_millisecond_of_the_instant_is_not_kept() -> None:
    """41 is the first instant above the completion at 40, and not free."""
    placement = place({10: 40, 41: 60})
    assert instant_of(placement, slice_of(10, 41), 10) == t(61)


def test_it_lies_below_every_unfinished_write() -> None:
    """The unfinished one may write into any file group: what overlaps with it waits."""
    placement = place({10: 20, 30: 60, 50: None, 70: 80})
    assert chosen(placement, slice_of(10, 30, 70), 10, 30, 70) == [t(10)]
    assert t(20) < instant_of(placement, slice_of(10, 30, 70), 10, 30, 70) < t(30)


def test_nothing_is_taken_where_an_unfinished_write_leaves_no_room() -> None:
    placement = place({5: None, 10: 20})
    assert chosen(placement, slice_of(10), 10) == []


def test_log_files_of_unfinished_and_of_dead_writes_are_none_of_it() -> None:
    placement = place({10: 20, 30: None})
    considered = placement.considered(slice_of(10, 15, 30))  # 15 is on no timeline
    assert [one.base_instant for one in considered.log_files] == [t(10)]


def test_it_lies_above_the_base_instants_of_its_slices() -> None:
    base = Instant(t(55), Action.COMMIT, State.COMPLETED, f"{t(55)}_{t(70)}.commit", t(70))
    placement = place({1: 2, 60: 65, 80: 90}, base)
    assert instant_of(placement, slice_of(60, 80, base=55), 60) > t(65)
    # A log file requested before its slice's base instant, completed after: Apache Hudi's compactions leave such.
    placement = place({1: 2, 50: 60, 80: 90}, base)
    assert instant_of(placement, slice_of(50, 80, base=55), 50) > t(60)


def test_it_is_not_before_the_active_timelines_start() -> None:
    """What completed in the archived range goes too: the prefix is longer than asked for."""
    timeline = Timeline(tuple(delta(r, c) for r, c in {100: 110, 120: 130, 140: 150}.items()))
    archived = {t(10): t(20), t(30): t(40)}
    placement = past_instant(timeline, lambda i: timeline.completions.get(i) or archived.get(i))
    slice_ = slice_of(10, 30, 100, 120, 140)
    assert chosen(placement, slice_, 10) == [t(10), t(30), t(100)]
    assert t(110) < instant_of(placement, slice_, 10) < t(120)


def test_it_is_an_instant_that_nothing_else_has() -> None:
    clean = Instant(t(21), Action.CLEAN, State.COMPLETED, f"{t(21)}_{t(29)}.clean", t(29))
    rollback = Instant(t(22), Action.ROLLBACK, State.INFLIGHT, f"{t(22)}.rollback.inflight")
    placement = place({10: 20, 60: 70}, clean, rollback)
    assert instant_of(placement, slice_of(10, 60), 10) == t(23)


def test_file_groups_that_need_another_instant_wait() -> None:
    """g's own cut is above the requested time of a log file that f keeps."""
    placement = place({10: 20, 30: 40, 50: 60, 70: 80, 90: 95})
    f, g = slice_of(10, 30, 50), slice_of(10, 50, 70, 90, group="g")
    spans = [placement.span(f, f.log_files[:1]), placement.span(g, g.log_files[:3])]
    instant, suited = placement.place(spans)
    assert suited == {0}
    assert t(20) < instant < t(30)
    spans = [placement.span(f, f.log_files[:2]), placement.span(g, g.log_files[:1])]
    instant, suited = placement.place(spans)
    assert suited == {0, 1}
    assert t(40) < instant < t(50)


def test_the_cut_puts_what_was_taken_below_and_the_rest_above() -> None:
    deltas = {10: 50, 30: 90, 80: 120, 130: 140}
    placement = place(deltas)
    slice_ = slice_of(*deltas)
    instant = instant_of(placement, slice_, 10)
    completions = {t(r): t(c) for r, c in deltas.items()}
    cut = LAYOUT.cut([instant], slice_.log_files, completions.get)
    assert [one.base_instant for one in cut[instant]] == [t(130)]
    assert [one.base_instant for one in cut[t(10)]] == [t(10), t(30), t(80)]
