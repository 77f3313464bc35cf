"""What hangs on rows in no view: a clean's earliest instant, damaged plans, and what a look remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import CleanResult
from hudi_assets.engine.model import Action, NothingToDo
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from tests.unit.hidden_rows.steps import found
from tests.unit.test_past_instants import Table, moved

_NO_GRACE = {"hudi_assets.query.grace": "0s"}


def _cluster(table: Table) -> str:
    """A clustering replaces the file group. Its own files hold nothing, which is enough here."""
    state = table.open().state()
    ((partition, file_id),) = state.view.groups
    at = moved(state.timeline.last or "", 1_000)
    body = state.layout.encode_commit(CommitMetadata("CLUSTER", (), replaced={partition: [file_id]}))
    state.storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.replacecommit", body)
    table.clock.ms += 10_000
    return at


def _archive_as_hudi(timeline: Path, below: str) -> None:
    """Hudi's archiver takes what lies below the instant that the last clean retains from, replacecommits too."""
    for file in timeline.iterdir():
        if file.is_file() and file.name[:17].isdigit() and file.name[:17] < below and ".clean" not in file.name:
            file.unlink()


def _go_on(table: Table) -> None:
    for number in range(3):
        table.put(4, 9_500 + number)
        table.compact(9_500 + number)


def test_a_replaced_group_with_hidden_rows_does_not_come_back(table: Table, three: list[str], hidden: str) -> None:
    """A clean retains from its replacecommit at the latest, as long as its files stay. Here that leaves nothing."""
    replacing = _cluster(table)
    _go_on(table)
    before = set(table.rows())
    cleaned = table.open(**_NO_GRACE).clean(retained=1)
    if isinstance(cleaned, CleanResult) and cleaned.earliest_retained is not None:
        _archive_as_hudi(table.timeline, cleaned.earliest_retained)
    assert set(table.rows()) == before == {4}
    assert isinstance(cleaned, NothingToDo)
    assert replacing in cleaned.reason


def test_a_clean_by_file_versions_waits(table: Table, three: list[str], hidden: str) -> None:
    """It states no instant to retain from, so Hudi's archiver takes all replaced groups for cleaned."""
    replacing = _cluster(table)
    _go_on(table)
    cleaned = table.open(**_NO_GRACE).clean(policy="KEEP_LATEST_FILE_VERSIONS", retained=1)
    assert isinstance(cleaned, NothingToDo)
    assert replacing in cleaned.reason


def test_a_replaced_group_without_hidden_rows_is_cleaned(table: Table, three: list[str]) -> None:
    table.compact(30_000)
    replacing = _cluster(table)
    _go_on(table)
    cleaned = table.open(**_NO_GRACE).clean(retained=1)
    assert isinstance(cleaned, CleanResult)
    assert cleaned.earliest_retained is not None
    assert cleaned.earliest_retained > replacing


@pytest.mark.parametrize("looked", [True, False])
def test_a_damaged_plan_makes_nothing_else_known_or_unknown(
    table: Table, three: list[str], hidden: str, looked: bool
) -> None:
    """The plan of a later compaction cannot be read. What an earlier look found of its groups stands."""
    if looked:
        assert table.open().freshness().freshness == 8_999
    table.put(4, 9_500)
    again = table.compact(9_500).instant
    if not looked:
        (table.path / ".hoodie/.aux/hudi_assets/memory.json").unlink()
    (table.timeline / f"{again}.compaction.requested").write_bytes(b"")
    assert found(table) == ({three[2]} if looked else set())
    assert not looked or table.open().freshness().freshness == 8_999


def test_a_damaged_plan_says_nothing_of_other_groups(table: Table, three: list[str], hidden: str) -> None:
    """Of the group behind the readable plan all is told as before."""
    state = table.open().state()
    at = moved(state.timeline.last or "", 1_000)
    body = state.layout.encode_commit(CommitMetadata("COMPACT", ()))
    state.storage.replace(f".hoodie/timeline/{at}.compaction.requested", b"")
    state.storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.commit", body)
    table.clock.ms += 10_000
    assert table.open().state().timeline.completed(Action.COMMIT)[-1].timestamp == at
    assert found(table) == {three[2]}
