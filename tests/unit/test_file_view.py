"""Slices cut out of listings by hand: what counts, what is left out, where the next log file goes."""

from __future__ import annotations

from hudi_assets.engine.model import CarryOver, Operation, Plan
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.slices.file_view import FileView, build_view
from hudi_assets.engine.table.slices.listing import parse
from hudi_assets.engine.timeline.instants import Timeline, latest_states

LAYOUT = LayoutV6()
G = "00000000-aaaa-bbbb-cccc-dddddddddddd-0"
T1, T2, T3, C = (f"2026010100000{n}000" for n in (1, 2, 3, 5))


def timeline(*names: str) -> Timeline:
    parsed = (LAYOUT.parse_instant(name) for name in names)
    return Timeline(latest_states(i for i in parsed if i is not None))


def info(name: str, link: str | None = None) -> FileInfo:
    return FileInfo(name, 10, link)


def base(instant: str, group: str = G) -> FileInfo:
    return info(f"{group}_0-0-0_{instant}.parquet")


def log(instant: str, version: int, token: str = "0-0-0") -> FileInfo:
    return info(f".{G}_{instant}.log.{version}_{token}")


def plan_at(instant: str, *carried: CarryOver) -> Plan:
    return Plan(instant, 0, (Operation("", G, T1, None, (), carried, {}),), "", {})


def view(
    files: list[FileInfo], line: Timeline, *plans: Plan, replaced: frozenset[tuple[str, str]] = frozenset()
) -> FileView:
    return build_view(parse({"": files}, LAYOUT), line, LAYOUT, plans=plans, replaced=replaced)


def names(v: FileView) -> list[str]:
    (slice_,) = v.latest
    return [f.name for f in slice_.log_files]


def test_instants_and_states() -> None:
    line = timeline(
        f"{T1}.deltacommit.requested",
        f"{T1}.deltacommit.inflight",
        f"{T1}.deltacommit",
        f"{T2}.deltacommit.inflight",
        f"{T3}.compaction.requested",
        f"{C}.compaction.requested",
        f"{C}.commit",
        "hoodie.properties",
        "archived",
    )
    assert line.is_committed(T1)
    assert not line.is_committed(T2)
    assert [i.timestamp for i in line.pending_compactions] == [T3]
    assert [i.timestamp for i in line.inflight_writes] == [T2]
    assert line.is_committed(C)


def test_before_the_timelines_start_everything_is_committed() -> None:
    line = timeline(f"{T2}.deltacommit")
    assert line.is_committed(T1)
    assert not line.is_committed(T3)


def test_a_savepoint_does_not_start_the_timeline() -> None:
    assert timeline(f"{T1}.savepoint", f"{T3}.deltacommit").is_committed(T2)


def test_logs_alone_make_a_slice_and_come_in_log_order() -> None:
    v = view([log(T1, 10), log(T1, 2), log(T1, 1, "1-0-0"), log(T1, 1)], timeline(f"{T1}.deltacommit"))
    assert [n.rsplit("log.", 1)[1] for n in names(v)] == ["1_0-0-0", "1_1-0-0", "2_0-0-0", "10_0-0-0"]
    assert v.base_files == ()


def test_an_uncommitted_base_file_is_not_there() -> None:
    line = timeline(f"{T1}.deltacommit", f"{C}.compaction.inflight", f"{C}.compaction.requested")
    v = view([log(T1, 1), base(C)], line, plan_at(C))
    assert v.base_files == ()
    assert [s.base_instant for s in v.latest] == [T1]


def test_an_orphan_slice_without_a_plan_is_not_there() -> None:
    v = view([log(T1, 1), log(C, 1)], timeline(f"{T1}.deltacommit"))
    assert [n.split("_")[1].split(".")[0] for n in names(v)] == [T1]


def test_while_a_compaction_is_pending_the_new_slices_logs_come_behind_and_carried_ones_once() -> None:
    line = timeline(f"{T1}.deltacommit", f"{C}.compaction.requested")
    carried = CarryOver(log(C, 1).path, log(T1, 2).path)
    files = [log(T1, 1), log(T1, 2), log(C, 1), log(C, 2, "7-7-7")]
    v = view(files, line, plan_at(C, carried))
    assert names(v) == [log(T1, 1).name, log(T1, 2).name, log(C, 2, "7-7-7").name]
    target = v.write_slice(("", G))
    assert target is not None
    assert (target.base_instant, target.next_log_version) == (C, 3)


def test_a_pending_slice_without_a_file_is_where_writers_go() -> None:
    line = timeline(f"{T1}.deltacommit", f"{C}.compaction.requested")
    target = view([log(T1, 1)], line, plan_at(C)).write_slice(("", G))
    assert target is not None
    assert (target.base_instant, target.next_log_version) == (C, 1)


def test_after_the_compaction_the_new_slice_is_the_latest() -> None:
    line = timeline(f"{T1}.deltacommit", f"{C}.compaction.requested", f"{C}.commit")
    v = view([log(T1, 1), log(T1, 2), log(C, 1), base(C)], line)
    assert names(v) == [log(C, 1).name]
    assert [b.instant for b in v.base_files] == [C]


def test_replaced_groups_leave_the_view() -> None:
    v = view([log(T1, 1)], timeline(f"{T1}.deltacommit"), replaced=frozenset({("", G)}))
    assert v.latest == ()
    assert v.base_files == ()


def test_other_files_are_no_files_of_the_table() -> None:
    files = [info(".hoodie_partition_metadata"), info(f".{log(T1, 1).name}.crc"), info("README"), info("x.parquet")]
    assert view(files, timeline(f"{T1}.deltacommit")).latest == ()


def test_carrying_over_a_carried_over_log_targets_the_original() -> None:
    original = log(T1, 3).path
    v = view([info(log(T2, 1).name, original), log(T2, 2)], timeline(f"{T2}.deltacommit"))
    (slice_,) = v.latest
    carried = LAYOUT.carry_over(slice_, slice_.log_files, C)
    assert carried == (CarryOver(log(C, 3).path, original, log(T2, 1).path), CarryOver(log(C, 4).path, log(T2, 2).path))


def test_a_carried_over_log_s_version_is_above_those_of_the_old_slice() -> None:
    v = view([log(T2, 1), log(T2, 2), log(T2, 7)], timeline(f"{T2}.deltacommit"))
    (slice_,) = v.latest
    assert LAYOUT.carry_over(slice_, slice_.log_files[:1], C) == (CarryOver(log(C, 8).path, log(T2, 1).path),)
