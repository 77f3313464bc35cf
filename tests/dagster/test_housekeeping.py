"""Cleaning and archiving after compactions, what dead processes left, and the check of the files. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, ExecuteInProcessResult, RunRequest, SkipReason

from hudi_assets.dagster.checks import describe
from hudi_assets.dagster.housekeeping import ARCHIVE, CLEAN, is_automatic
from hudi_assets.engine import InvalidInput, Plan
from hudi_assets.engine.storage import open_storage
from hudi_assets.engine.transaction.lock import write_lock
from hudi_assets.engine.validate import Finding
from tests.dagster.conftest import Platform, checks, materialized
from tests.dagster.small_source import ms

EAGER = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def _age(platform: Platform) -> ExecuteInProcessResult:
    """Two compactions over four commits; the result is the second's run."""
    platform.ingest(0, 1)
    assert platform.compact().success
    platform.ingest(2, 3)
    return platform.compact()


def _observed(result: ExecuteInProcessResult) -> str:
    (observed,) = result.get_asset_observation_events()
    return str(observed.asset_observation_data.asset_observation.metadata["reason"].value)


def _orphan(platform: Platform) -> Path:
    """A carried-over log file whose plan is gone."""
    log = sorted(platform.path.glob("*/.*.log.*"))[0]
    name = log.name.split("_", 1)[0] + "_29990101000000000.log.1_0-0-0"
    log.with_name(name).hardlink_to(log)
    return log.with_name(name)


# -- cleaning and archiving -----------------------------------------------------------------------


def test_a_table_that_the_platform_writes_is_cleaned_and_archived(quick: Platform) -> None:
    quick.attributes = {"settings": EAGER}
    rows = None
    result = _age(quick)
    assert result.success
    assert materialized(result) == ["compaction_plan", "ro_snapshot", "freshness", "housekeeping"]
    found = quick.metadata("housekeeping")
    assert found["files_deleted"] > 0
    assert found["bytes_deleted"] > 0
    assert found["instants_archived"] > 0
    assert (quick.path / str(found["archive"])).is_file()
    assert (quick.path / ".hoodie" / f"{found['clean']}.clean").is_file()
    # What was archived is still known: no batch is committed twice, and no row is lost.
    rows = quick.table().snapshot(quick.spark).rows()
    quick.ingest(0)
    assert quick.metadata("mor_table")["already_committed"] is True
    assert quick.table().snapshot(quick.spark).rows() == rows
    assert len(rows) == 6


def test_nothing_to_do_is_said(quick: Platform) -> None:
    result = _age(quick)
    assert result.success
    found = quick.metadata("housekeeping")
    assert str(found["archive"]).startswith("nothing to do: ")
    assert "30" in str(found["archive"])


def test_a_table_that_others_write_is_left_to_them(quick: Platform) -> None:
    _age(quick)
    others: dict[str, Any] = {"source": None, "external": True, "writers": "stopped"}
    quick.attributes = others | {"settings": EAGER}
    before = _files(quick.path)
    result = quick.run("housekeeping")
    assert result.success
    assert materialized(result) == []
    assert CLEAN in _observed(result)
    assert _files(quick.path) == before
    quick.attributes = others | {"settings": EAGER | {CLEAN: "true"}}
    assert quick.run("housekeeping").success
    assert quick.metadata("housekeeping")["files_deleted"] > 0
    assert quick.metadata("housekeeping")["archive"] == "off"


def test_a_failed_clean_leaves_the_freshness_published(quick: Platform) -> None:
    quick.ingest(0, 1)
    quick.attributes = {"settings": {"hoodie.cleaner.policy": "KEEP_NOTHING"}}
    result = quick.compact()
    assert not result.success
    assert materialized(result)[:3] == ["compaction_plan", "ro_snapshot", "freshness"]
    assert quick.published()["hudi_assets.freshness_ms"] == str(ms(5))
    assert checks(result)["no_late_records"] is True
    found = quick.metadata("housekeeping")
    assert str(found["clean"]).startswith("failed: ")
    assert "KEEP_NOTHING" in str(found["clean"])
    assert isinstance(quick.tick(), SkipReason)


def test_a_table_that_somebody_else_holds_is_cleaned_another_time(
    quick: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    _age(quick)
    monkeypatch.setattr("hudi_assets.engine.transaction.transaction.LOCK_WAIT_S", 0.0)
    monkeypatch.setattr("hudi_assets.engine.hudi_table.table.HudiTable.recover", lambda self: ())
    table = quick.table()
    with write_lock(open_storage(table.path), table.config, wait_s=0.0):
        result = quick.run("housekeeping")
    assert result.success
    assert str(quick.metadata("housekeeping")["clean"]).startswith("put off: ")


@pytest.mark.parametrize(("text", "wanted"), [("true", True), (" FALSE ", False), (None, True), ("", True)])
def test_the_automatic_settings(text: str | None, wanted: bool) -> None:
    properties = {} if text is None else {CLEAN: text}
    assert is_automatic(properties, CLEAN, default=True) is wanted


def test_a_wrong_automatic_setting_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"hoodie\.archive\.automatic is 'maybe'"):
        is_automatic({ARCHIVE: "maybe"}, ARCHIVE, default=True)


# -- what dead processes left ---------------------------------------------------------------------


def test_orphans_are_noticed_and_removed(quick: Platform) -> None:
    quick.ingest(0, 1)
    quick.compact()
    quick.ingest(2)
    assert isinstance(quick.tick(), SkipReason)
    orphan = _orphan(quick)
    request = quick.tick()
    assert isinstance(request, RunRequest)
    assert request.asset_selection == [AssetKey(["events", "housekeeping"])]
    assert "29990101000000000" in request.tags["hudi_assets/reason"]
    before = _files(quick.path)
    result = quick.run("housekeeping", tags=request.tags, run_config=request.run_config)
    assert result.success
    assert not orphan.exists()
    assert set(before) - set(_files(quick.path)) == {str(orphan)}
    assert "29990101000000000" in str(quick.metadata("housekeeping")["recovered"])
    assert quick.metadata("housekeeping")["clean"] == "off"
    assert isinstance(quick.tick(), SkipReason)


def test_a_compaction_removes_orphans_on_its_way(quick: Platform) -> None:
    quick.ingest(0, 1)
    orphan = _orphan(quick)
    request = quick.tick()
    assert isinstance(request, RunRequest)
    assert request.asset_selection is None
    assert quick.compact().success
    assert not orphan.exists()


# -- the check of the files -----------------------------------------------------------------------


def test_a_missing_file_is_not_made_final_by_a_compaction(quick: Platform) -> None:
    """Merging what is left of its slice would hide that rows are gone."""
    _age(quick)
    quick.ingest(4)
    (base, *_) = quick.table().read_optimized_files()
    Path(base.removeprefix("file://")).unlink()
    result = quick.compact()
    assert not result.success
    assert Path(base).name in str(result.failure_data_for_node("events__compaction_plan"))
    assert quick.table().pending_plan() is None


def test_a_missing_file_stops_readers_and_cleaning(quick: Platform) -> None:
    quick.attributes = {"settings": {"hoodie.compaction.daybased.target.partitions": "1"}}
    quick.ingest(0, 1)
    plan = quick.table_with_settings().plan_compaction()
    assert isinstance(plan, Plan)
    taken = {operation.partition for operation in plan.operations}
    other = next(path for path in sorted(quick.path.glob("*/.*.log.*")) if path.parent.name not in taken)
    other.unlink()
    result = quick.run("ro_snapshot", "freshness", "reader", "housekeeping")
    assert "ro_snapshot" in materialized(result)
    assert checks(result)["files_match_timeline"] is False
    assert quick.read == []
    assert "housekeeping" not in materialized(result)


def test_a_leftover_is_a_warning_and_stops_nobody(quick: Platform) -> None:
    quick.ingest(0, 1)
    log = sorted(quick.path.glob("*/.*.log.*"))[0]
    (log.parent / "notes.txt").write_text("not Hudi's")
    result = quick.run("compaction_plan", "ro_snapshot", "freshness", "reader", "housekeeping")
    assert checks(result)["files_match_timeline"] is False
    assert quick.read == [result.run_id]
    assert "housekeeping" in materialized(result)


def test_findings_in_words() -> None:
    orphan = Finding("orphan", "city=a/x", "Its instant is not on the timeline.", "Run recover.")
    gone = Finding("missing_file", "city=a/y", "It is gone.", "Restore it.")
    words, severity = describe([orphan])
    assert (words, severity.value) == (["orphan: city=a/x: Its instant is not on the timeline. Run recover."], "WARN")
    assert describe([orphan, gone])[1].value == "ERROR"
    assert describe([])[0] == []


def _files(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file() and "aux" not in str(p)}
