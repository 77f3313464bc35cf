"""A partition that gave its objects up makes the same ones again, and says what was told of it."""

from __future__ import annotations

import pytest

from hudi_assets.engine.event_time.ranges import KnownOfLogs
from hudi_assets.engine.loaded import LOADED
from hudi_assets.engine.model import Action, Instant, LogFile, State
from hudi_assets.engine.model.log_summary import LogSummary, Since, Undated
from hudi_assets.engine.storage import FileInfo, Listing
from hudi_assets.engine.table.layout.choice import layout_of
from hudi_assets.engine.table.slices.file_view import Cutter
from hudi_assets.engine.table.slices.parts import Part, few_at_once, parse_again
from hudi_assets.engine.timeline.instants import Timeline

FIRST, SECOND, THIRD = "20260101000000000", "20260102000000000", "20260103000000000"
PLAIN = (
    f"f-1_0-1-0_{FIRST}.parquet",
    f"f-2_0-1-0_{FIRST}.parquet",
    f".f-1_{FIRST}.log.1_0-1-0",
    f".f-1_{FIRST}.log.2_0-2-0",
    f".f-2_{FIRST}.log.1_0-1-0",
    f"f-1_0-9-0_{SECOND}.parquet",
    f".f-1_{SECOND}.log.1",
    f".f-3_{SECOND}.log.1_0-1-0",
)
ODD = {
    "plain": (),
    "a version with zeros": (f".f-2_{FIRST}.log.007_0-1-0",),
    "an uncommitted base file": (f"f-1_0-1-0_{THIRD}.parquet",),
    "a file of no kind": (".hoodie_partition_metadata",),
}


def part_of(version: int, partition: str, names: tuple[str, ...], link: str | None = None) -> Part:
    prefix = f"{partition}/" if partition else ""
    infos = [FileInfo(prefix + name, 100 + n, inode=n, modified_ms=1_000 + n) for n, name in enumerate(names)]
    if link is not None:
        infos[2] = infos[2]._replace(link_target=link)
    layout = layout_of(version, "")
    done = [Instant(at, Action.DELTA_COMMIT, State.COMPLETED, at, at[:-1] + "1") for at in (FIRST, SECOND)]
    listing = Listing(prefix, infos)
    files = parse_again(listing, partition, layout, None)
    cutter = Cutter(Timeline(tuple(done)), layout, (), frozenset(), lambda base: False)
    return Part(partition, listing, layout, files, cutter.view(partition, files.values()))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("partition", ["", "p=a", "a/b"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("link", [None, "elsewhere/.f-1.log.1"])
def test_a_partition_as_columns_is_the_same(version: int, partition: str, odd: str, link: str | None) -> None:
    one, other = (part_of(version, partition, PLAIN + ODD[odd], link) for _ in range(2))
    for _ in range(2):
        other.unload()
        other.infos.unload()
        assert one.counts == other.counts
        assert set(one.file_ids) == set(other.file_ids)
        assert list(one.files.items()) == list(other.files.items())
        assert one.view.groups == other.view.groups
        assert one.view.latest == other.view.latest
        assert one.remaining_logs == other.remaining_logs
        assert (one.instants, one.log_instants, one.has_doubles) == (
            other.instants,
            other.log_instants,
            other.has_doubles,
        )
        assert (one.baseless, one.oldest_base) == (other.baseless, other.oldest_base)
        assert list(one.bases.paths) == list(other.bases.paths)
        assert one.infos == other.infos


def test_a_partition_that_gave_its_objects_up_has_none() -> None:
    part = part_of(6, "p=a", PLAIN)
    files = part.files
    assert part.files is files
    part.unload()
    assert part.files is not files
    assert part.files is part.files


SCANNED = LogSummary(1, 2, 3, rollbacks=1)
UNDATED = LogSummary(None, None, 1, reason="deletes", undated=Undated(None, Since(FIRST)))


@pytest.mark.parametrize("odd", [None, SCANNED, UNDATED])
def test_what_is_known_of_log_files_is_the_same_as_columns(odd: LogSummary | None) -> None:
    logs = [LogFile(f"p/{n}", "p", "f", FIRST, n, "", 1, f"p/{n}") for n in range(9)]
    ranges = {log.path: LogSummary.stated(n, 10 * n, n % 2) for n, log in enumerate(logs)}
    ranges |= {"p/4": odd} if odd else {}
    ranges |= {"p/hidden": LogSummary.stated(5, 6, 7)}
    known = KnownOfLogs(dict(ranges), frozenset({"p/4"}))
    for _ in range(2):
        known.unload(logs)
        assert known.of(logs) == ranges


def test_no_more_files_than_may_have_objects_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [part_of(6, f"p={n}", PLAIN) for n in range(7)]
    assert [len(some) for some in few_at_once(parts)] == [7]
    monkeypatch.setattr(LOADED, "most", 6 * 2 * len(PLAIN))
    assert [len(some) for some in few_at_once(parts)] == [2, 2, 2, 1]
    assert list(few_at_once([])) == [[]]
