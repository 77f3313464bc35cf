"""An instance on PostgreSQL, with the settings of docs/how-to/deploy.md: a real daemon, a code server, and a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterRunStatus
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage

from tests.dagster.live import ROOT, Daemon, live_daemon
from tests.postgresql import PostgresMissing, postgresql, programs

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(900)]


def documented() -> str:
    """`dagster.yaml` as the page has it."""
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    found = re.search(r"dagster\.yaml`.*?```yaml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    try:
        programs()
    except PostgresMissing as missing:
        pytest.skip(str(missing))
    tables = {"events": timedelta(hours=1), "still": timedelta(hours=1), "due": timedelta(minutes=-2)}
    with postgresql("dagster") as database:
        environment = {"DAGSTER_PG_URL": database.url, "DAEMON_DUE": "due"}
        with live_daemon(tmp_path_factory.mktemp("platform"), tables, documented(), environment) as opened:
            yield opened


def test_ticks_and_a_run_leave_their_events_in_postgresql(daemon: Daemon) -> None:
    assert isinstance(daemon.instance.run_storage, PostgresRunStorage)
    assert isinstance(daemon.instance.event_log_storage, PostgresEventLogStorage)
    daemon.wait_for("three ticks", lambda: len(daemon.ticks()) >= 3)
    assert daemon.passes() is True
    assert daemon.observed()[0]["remaining_log_files"] == 1

    due = AssetKey(["due", "freshness"])
    daemon.wait_for("a run", lambda: any(run.is_finished for run in daemon.instance.get_runs()), seconds=600)
    (run,) = [run for run in daemon.instance.get_runs() if run.is_finished]
    assert run.status is DagsterRunStatus.SUCCESS, (daemon.home / "daemon.log").read_text()[-3000:]
    assert run.tags["hudi_assets/table"] == "due"
    made = daemon.instance.get_latest_materialization_event(due)
    assert made is not None
    assert made.run_id == run.run_id
    daemon.wait_for(
        "a tick that skips",
        lambda: (
            "due" in {state.name.split("_")[0] for state in daemon.instance.all_instigator_state()}
            and daemon.ticks("due_event_time_trigger")[0].status.value == "SKIPPED"
        ),
    )
    assert not list(Path(daemon.home, "dagster").rglob("*.db"))  # nothing went to SQLite
