"""Where slices are cut by completion times: which files answer as of a moment, by either of a write's two times."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_assets.engine.model import BaseFile, FileSlice, LogFile
from hudi_assets.engine.model.files import GroupKey
from hudi_assets.engine.table.slices.as_of import Since, at_its_own_time, slices_across
from hudi_assets.engine.table.slices.file_view import FileView
from hudi_assets.engine.table.slices.history import Across, Evidence, History, settled_at, view_as_of

G: GroupKey = ("p", "g")
OWN = at_its_own_time()


def slice_at(instant: str, *logs: str, base: bool = True) -> FileSlice:
    files = tuple(LogFile(f"p/.g_{t}.log.1_0", "p", "g", t, 1, "0", 1, f"p/.g_{t}.log.1_0") for t in logs)
    base_file = BaseFile(f"p/g_0_{instant}.parquet", "p", "g", instant, "0", 1) if base else None
    return FileSlice("p", "g", instant, base_file, files)


# The write at 3 was requested before the compaction at 5 and completed after it, at 8; the one at 4 before it.
SLICES = (slice_at("1", "2", "4"), slice_at("5", "3", "7"))
VIEW = FileView({G: SLICES}, {})
BY_COMPLETION = Since(
    base=lambda t: t,
    log={"2": "2", "4": "4", "3": "8", "7": "9"}.__getitem__,
)


def files(view: Mapping[GroupKey, tuple[FileSlice, ...]]) -> tuple[str | None, list[str]]:
    ((slice_,),) = view.values()
    base = slice_.base_file
    return None if base is None else base.instant, [log.base_instant for log in slice_.log_files]


def test_a_write_counts_from_its_own_time_on_in_whichever_slice_it_is() -> None:
    assert files(slices_across(VIEW, {}, "2", OWN)) == ("1", ["2"])
    assert files(slices_across(VIEW, {}, "3", OWN)) == ("1", ["2", "3"])
    assert files(slices_across(VIEW, {}, "4", OWN)) == ("1", ["2", "3", "4"])
    assert files(slices_across(VIEW, {}, "5", OWN)) == ("5", ["3"])
    assert files(slices_across(VIEW, {}, "7", OWN)) == ("5", ["3", "7"])
    assert slices_across(VIEW, {}, "0", OWN) == {}


def test_or_from_its_completion_on() -> None:
    assert files(slices_across(VIEW, {}, "4", BY_COMPLETION)) == ("1", ["2", "4"])
    assert files(slices_across(VIEW, {}, "7", BY_COMPLETION)) == ("5", [])
    assert files(slices_across(VIEW, {}, "8", BY_COMPLETION)) == ("5", ["3"])


def test_a_base_file_that_was_not_completed_yet_leaves_the_answer_to_the_one_before() -> None:
    inserted = Since(base=lambda t: "6" if t == "5" else t, log=BY_COMPLETION.log)
    assert files(slices_across(VIEW, {}, "5", inserted)) == ("1", ["2", "4"])
    assert files(slices_across(VIEW, {}, "6", inserted)) == ("5", [])
    assert settled_at(VIEW, {}, inserted) == "6"
    assert settled_at(VIEW, {}, OWN) == "5"


def test_a_replaced_group_is_seen_until_the_replacement_counts() -> None:
    assert files(slices_across(VIEW, {G: "6"}, "5", OWN)) == ("5", ["3"])
    assert slices_across(VIEW, {G: "6"}, "6", OWN) == {}
    late = Since(base=lambda t: "8" if t == "6" else t, log=BY_COMPLETION.log)
    assert slices_across(VIEW, {G: "6"}, "7", late) != {}
    assert slices_across(VIEW, {G: "6"}, "8", late) == {}


def test_log_files_alone() -> None:
    view = FileView({G: (slice_at("2", "2", "4", base=False), slice_at("5", "3", base=False))}, {})
    (only,) = view_as_of(view, {}, "3", OWN).latest
    assert (only.base_file, [log.base_instant for log in only.log_files]) == (None, ["2", "3"])
    assert view_as_of(view, {}, "1", OWN).latest == ()


def history(slices: tuple[FileSlice, ...], *, cleaned: frozenset[str] = frozenset()) -> History:
    evidence = Evidence(
        written={},
        opened={G: frozenset({"1", "5"})},
        predecessors={(G, "1"): "", (G, "5"): "1"},
        whole_from="",
        savepoints={},
        cleaned={G: cleaned},
        began_with=lambda slice_: False,
        archived_replace=lambda: "",
        across={G: (Across("p/.g_3.log.1_0", "3", "5"),)},
    )
    return History(FileView({G: slices}, {}), {}, evidence)


def test_a_log_file_that_is_gone_with_a_newer_slice_is_missed_in_the_older_one() -> None:
    whole = history(SLICES)
    assert [t for t in "0123456" if whole.gap_at(t) is None] == list("0123456")
    without = history((SLICES[0], slice_at("5", "7")))
    assert [t for t in "0123456" if without.gap_at(t) is None] == ["0", "1", "2", "5", "6"]
    assert without.complete_from == "5"
    # Of a slice that a clean took nothing is used, whatever is left of it.
    newer = (*SLICES, slice_at("6"))
    partly = history(newer, cleaned=frozenset({"5"}))
    assert partly.gap_at("3") is not None
    assert partly.gap_at("2") is None
