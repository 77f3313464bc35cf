"""What a process keeps of the timeline between looks is never another file's content."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable, Plan
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.storage import FileInfo, LocalStorage
from hudi_assets.engine.timeline.commit_metadata import CLOCK_TIME, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.compaction_plan import encode_plan
from hudi_assets.engine.timeline.decode_cache import COMMITS, PLANS, Kept

OLD = 1_000_000_000_000  # epoch ms, long ago


@dataclass
class Decoder:
    """Counts how often it is asked."""

    value: str
    asked: int = 0

    def __call__(self) -> str:
        self.asked += 1
        return self.value


def test_a_file_is_decoded_once() -> None:
    kept, decode = Kept[str](10, len), Decoder("abc")
    for _ in range(3):
        assert kept.get("t", FileInfo("f", 3, inode=1, modified_ms=OLD), decode) == "abc"
    assert decode.asked == 1


@pytest.mark.parametrize(
    "other",
    [
        FileInfo("g", 3, inode=1, modified_ms=OLD),
        FileInfo("f", 4, inode=1, modified_ms=OLD),
        FileInfo("f", 3, inode=2, modified_ms=OLD),
        FileInfo("f", 3, inode=1, modified_ms=OLD + 1),
        FileInfo("f", 3, inode=1, modified_ms=OLD, version="an ETag"),
    ],
)
def test_another_file_under_the_name_is_another_file(other: FileInfo) -> None:
    kept = Kept[str](10, len)
    kept.get("t", FileInfo("f", 3, inode=1, modified_ms=OLD), Decoder("abc"))
    assert kept.get("t", other, Decoder("xyz")) == "xyz"
    assert kept.get("another table", FileInfo("f", 3, inode=1, modified_ms=OLD), Decoder("uvw")) == "uvw"


def test_a_young_file_is_not_kept() -> None:
    """What replaces it within the tick of the clock may look the same."""
    kept, decode = Kept[str](10, len), Decoder("abc")
    young = FileInfo("f", 3, inode=1, modified_ms=time.time_ns() // 1_000_000)
    for _ in range(3):
        kept.get("t", young, decode)
    assert decode.asked == 3


def test_it_holds_the_last_used_ones_up_to_its_bound() -> None:
    kept = Kept[str](10, len)
    first, second, third = (FileInfo(name, 4, inode=1, modified_ms=OLD) for name in "abc")
    one = Decoder("aaaa")
    kept.get("t", first, one)
    kept.get("t", second, Decoder("bbbb"))
    kept.get("t", first, one)
    kept.get("t", third, Decoder("cccc"))  # the second goes: the first was used after it
    kept.get("t", first, one)
    again = Decoder("bbbb")
    kept.get("t", second, again)
    assert (one.asked, again.asked) == (1, 1)
    huge = Decoder("x" * 11)
    for _ in range(2):
        kept.get("t", FileInfo("huge", 11, inode=1, modified_ms=OLD), huge)
    assert huge.asked == 2


def test_it_forgets_when_told() -> None:
    kept, decode = Kept[str](10, len), Decoder("abc")
    kept.get("t", FileInfo("f", 3, inode=1, modified_ms=OLD), decode)
    kept.clear()
    kept.get("t", FileInfo("f", 3, inode=1, modified_ms=OLD), decode)
    assert decode.asked == 2


# ------------------------------------------------------------------------------------------ whole tables


class Table:
    """A table whose timeline files are written by hand, each a minute old: so they may be kept."""

    def __init__(self, path: Path, version: int) -> None:
        schema = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
        self.table = HudiTable.create(
            str(path), schema, record_key=["id"], ordering_field="ts", table_version=version, clock="commit"
        )
        self.storage = LocalStorage(str(path))
        self.state = self.table.state()

    def put(self, path: str, content: bytes, age_s: float = 60) -> None:
        self.storage.replace(path, content)
        then = time.time() - age_s
        os.utime(self.storage.uri(path), (then, then))

    def commit(self, instant: str, clock: int, age_s: float = 60) -> None:
        content = self.state.layout.encode_commit(CommitMetadata("UPSERT", (), {CLOCK_TIME: str(clock)}))
        path = self.state.layout.instant_path(instant, Action.DELTA_COMMIT, State.COMPLETED, instant[:-1] + "9")
        self.put(path, content, age_s)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_commit_whose_name_comes_back_with_other_content_is_seen(tmp_path: Path, version: int) -> None:
    """Same name, same size: it was rolled back, or a backup was put in its place."""
    table = Table(tmp_path / "t", version)
    table.commit("20260101000000000", 1_111)
    assert table.table.now_ms() == 1_111
    assert table.table.now_ms() == 1_111  # kept
    table.commit("20260101000000000", 2_222, age_s=50)
    assert table.table.now_ms() == 2_222
    for clock in (3_333, 4_444, 5_555):  # all within the tick of a clock
        table.commit("20260101000000000", clock, age_s=0)
        assert table.table.now_ms() == clock


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_made_anew_at_its_instant_is_seen(tmp_path: Path, version: int) -> None:
    """As at a past instant after its first plan was withdrawn."""
    table = Table(tmp_path / "t", version)
    table.commit("20260101000000000", 1_111)
    instant = "20260101000000005"
    path = table.state.layout.instant_path(instant, Action.COMPACTION, State.REQUESTED)
    for strategy, age_s in (("one", 60), ("two", 50), ("six", 0), ("ten", 0)):
        table.put(path, encode_plan(Plan(instant, 5, (), strategy, {})), age_s)
        assert [table.table.plan(instant).strategy for _ in range(2)] == [strategy] * 2


def test_a_table_in_the_place_of_another_is_another(tmp_path: Path) -> None:
    first, second = Table(tmp_path / "a", 6), Table(tmp_path / "b", 6)
    first.commit("20260101000000000", 1_111)
    second.commit("20260101000000000", 2_222)
    assert first.table.now_ms() == 1_111
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rename(tmp_path / "a")
    assert HudiTable.open(str(tmp_path / "a")).now_ms() == 2_222


def test_looks_at_one_table_keep_one_copy(tmp_path: Path) -> None:
    table = Table(tmp_path / "t", 6)
    COMMITS.clear()
    PLANS.clear()
    for n in range(5):
        table.commit(f"2026010100000000{n}", n)
    readings = [table.table.state() for _ in range(3)]
    found = [[reading.commit(i) for i in reading.timeline.instants] for reading in readings]
    assert all(one is other for same in zip(*found, strict=True) for one in same for other in same)


def test_a_commit_of_more_stats_than_are_kept_is_decoded_once_a_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMMITS, "most", 2)
    table = Table(tmp_path / "t", 6)
    stats = tuple(WriteStat(f".f_{n}_20260101000000000.log.1_0", "", f"f_{n}", "null", 1, log_version=1) for n in "ab")
    layout = table.state.layout
    path = layout.instant_path("20260101000000000", Action.DELTA_COMMIT, State.COMPLETED)
    table.put(path, layout.encode_commit(CommitMetadata("UPSERT", stats, {})))
    one, other = table.table.state(), table.table.state()
    [instant] = one.timeline.instants
    assert one.commit(instant) is one.commit(instant)
    assert one.commit(instant) == other.commit(instant)
    assert one.commit(instant) is not other.commit(instant)
