"""A table that is asked about for the first time: what is said where something about it has to be stated first."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from tests.cli.conftest import DONE, FAILED, NOTHING_TO_DO, WRONG_USE, Answer, contents, set_property
from tests.tables.local_session import LocalSession, install

COLUMN = "hoodie.payload.event.time.field"
LATENCY = "hudi_assets.data.latency"
NAMED_BY = ("--event-time-field", COLUMN, "event_time_field")
STATED_BY = ("--data-latency", LATENCY, "auto", "data_latency")
NOBODY = 65534


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> LocalSession:
    return install(monkeypatch.setattr)


@pytest.fixture
def compacted(table: Path, session: LocalSession) -> Path:
    """All log files are compacted; no event-time column and no data latency are stated."""
    hudi = HudiTable.open(str(table))
    hudi.compact(session, threshold=hudi.now_ms())
    for key in (COLUMN, LATENCY):
        set_property(table, key, None)
    return table


# -- the event-time column ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["freshness", "status"])
def test_a_compacted_table_whose_event_time_column_is_not_known(
    run: Callable[..., Answer], compacted: Path, command: str
) -> None:
    reason = run(command, compacted, "--json").json["reason"]
    assert "no event-time column is known" in reason
    assert "has completed" not in reason
    for way in (*NAMED_BY, *STATED_BY):
        assert way in reason
    assert reason in run(command, compacted).out
    assert run(command, compacted, "--event-time-field", "ts", "--json").json["freshness"] is not None


def test_a_compaction_by_another_column(run: Callable[..., Answer], table: Path) -> None:
    set_property(table, LATENCY, None)
    reason = run("freshness", table, "--json").json["reason"]
    assert "no event-time compaction by column 'ts' has completed" in reason
    for way in STATED_BY:
        assert way in reason


@pytest.mark.parametrize("command", ["freshness", "status"])
def test_a_table_with_log_files_whose_event_time_column_is_not_known(
    run: Callable[..., Answer], table: Path, command: str
) -> None:
    set_property(table, COLUMN, None)
    answer = run(command, table, "--json")
    assert answer.code == WRONG_USE
    for way in (*NAMED_BY, "the ordering field, here 'ts'"):
        assert way in answer.error["hint"]


# -- the data latency -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("plan",), ("plan", "--dry-run"), ("compact",)], ids="".join)
def test_no_data_latency(run: Callable[..., Answer], table: Path, command: tuple[str, ...]) -> None:
    set_property(table, LATENCY, None)
    before = contents(table)
    answer = run(command[0], table, *command[1:], "--json")
    assert answer.code == NOTHING_TO_DO
    for way in STATED_BY:
        assert way in answer.json["nothing_to_do"]
    assert "--event-time-field" not in answer.json["nothing_to_do"]
    set_property(table, COLUMN, None)
    reason = HudiTable.open(str(table)).plan_compaction(dry_run=True)
    for way in (*NAMED_BY, *STATED_BY):
        assert way in str(reason)
    set_property(table, COLUMN, "ts")
    assert contents(table).keys() == before.keys()
    assert run("plan", table, "--dry-run", "--data-latency", "auto").code == DONE


# -- folders that one may not enter ---------------------------------------------------------------


@contextmanager
def another_user() -> Iterator[None]:
    """Root may enter everything: then somebody else for a while. The others are kept out by their own mode."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable(made_once: Path) -> Iterator[Path]:
    """A copy of the table, two folders below one that everybody may enter."""
    # Not below TMPDIR, which may be ours alone (tests/quick_machine.py).
    with tempfile.TemporaryDirectory(prefix="reachable-", dir="/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        with another_user():
            if not os.access(top, os.X_OK, effective_ids=True):
                pytest.skip("not everybody may enter /tmp")
        path = top / "team" / "payments"
        shutil.copytree(made_once, path, symlinks=True)
        yield path
        for folder in (path / ".hoodie", path.parent):
            if folder.exists():
                folder.chmod(0o755)


@pytest.mark.parametrize("closed", ["team", "team/payments", "team/payments/.hoodie"])
@pytest.mark.parametrize("command", ["status", "freshness", "plan", "compact", "validate"])
def test_below_a_folder_that_one_may_not_enter(
    run: Callable[..., Answer], reachable: Path, closed: str, command: str
) -> None:
    assert run("status", reachable).code == DONE  # whatever it imports is imported
    folder = reachable.parents[1] / closed
    folder.chmod(0o600)
    with another_user():
        answer = run(command, reachable, "--json")
    folder.chmod(0o755)
    assert answer.code == FAILED
    assert answer.error["error"] == "EnvironmentProblem"
    assert "Permission denied" in answer.error["what"]
    assert answer.error["where"] == str(folder)
    assert "x" in answer.error["hint"]


def test_a_path_that_is_not_there_is_called_that(run: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for path in (tmp_path / "nowhere", file / "below", tmp_path / ("n" * 300)):
        answer = run("status", path, "--json")
        assert (answer.code, answer.error["error"]) == (WRONG_USE, "InvalidInput")
        assert "No such directory" in answer.error["what"]
