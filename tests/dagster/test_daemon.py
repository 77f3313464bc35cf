"""A real daemon with a real code server: a hung write turns a check red by itself, and an alert is sent.

`DAEMON_SECONDS`: how long ticks are counted and memory is read (30). `DAEMON_TABLES`: how many tables more (0).
`DAEMON_POSTGRES=here`: its instance is on a PostgreSQL that is started for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from dagster import AssetKey, AssetMaterialization

from tests.dagster.live import Daemon, hang, live_daemon
from tests.dagster.ticking import MORE
from tests.postgresql import at_url

SECONDS = int(os.environ.get("DAEMON_SECONDS", "30"))
pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900 + SECONDS)]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    tables = dict.fromkeys(("events", "still", *MORE), timedelta(hours=1))
    home = tmp_path_factory.mktemp("platform")
    with at_url(os.environ.get("DAEMON_POSTGRES")) as url:
        storage = f"storage: {{postgres: {{postgres_url: '{url}'}}}}\n" if url else ""
        with live_daemon(home, tables, "telemetry: {enabled: false}\n" + storage, {}) as opened:
            yield opened


def test_a_hung_write_is_red_within_two_ticks_and_a_mended_one_green(daemon: Daemon) -> None:
    # What nobody publishes goes stale by Dagster's own word, in the last test.
    daemon.instance.report_runless_asset_event(AssetMaterialization(AssetKey(["still", "freshness"])))
    daemon.wait_for("the first tick", lambda: daemon.passes() is True)
    assert daemon.observed()[0]["lag_seconds"] < 60

    before = len(daemon.ticks())
    hung = hang(daemon.home / "warehouse" / "events")
    daemon.wait_for("two ticks", lambda: len(daemon.ticks()) >= before + 3)  # one may have begun before the write did
    assert daemon.passes() is False
    found = daemon.check()
    assert found is not None
    assert "2 h behind the clock, allowed are 1 h" in str(found.description)
    print(f"\nred after {len(daemon.ticks()) - before} ticks at most: {found.description}")
    daemon.wait_for("the lag", lambda: daemon.observed()[0]["lag_seconds"] > 7200)
    daemon.wait_for("an alert", lambda: any("allowed are 1 h" in text for text in daemon.webhook.posted))

    for file in hung:
        file.unlink()
    before = len(daemon.ticks())
    daemon.wait_for("two ticks", lambda: len(daemon.ticks()) >= before + 3)
    assert daemon.passes() is True
    daemon.wait_for("another alert", lambda: any("passes again" in text for text in daemon.webhook.posted))
    print(daemon.webhook.posted)
    assert daemon.instance.get_runs_count() == 0


def test_a_path_that_is_gone_is_red_and_the_tick_fails(daemon: Daemon) -> None:
    path = daemon.home / "warehouse" / "events"
    path.rename(path.with_name("elsewhere"))
    daemon.wait_for("a failed tick", lambda: daemon.ticks()[0].status.value == "FAILURE")
    assert "Correct `path` in the block" in str(daemon.ticks()[0].error)
    assert daemon.passes() is False
    path.with_name("elsewhere").rename(path)
    daemon.wait_for("green", lambda: daemon.passes() is True)


def test_memory_stands_still_over_many_ticks(daemon: Daemon) -> None:
    """Ticks write events; neither the daemon nor the code server may grow with them.

    The daemon asks each sensor every 5 s at most. So an hour has 3,600 ticks where there are six tables.
    """
    daemon.wait_for("a tick", lambda: len(daemon.ticks()) > 5)
    first = last = daemon.memory()
    ticks, end = daemon.all_ticks(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(min(30, SECONDS))
        last = daemon.memory()
        size = sum(file.stat().st_size for file in (daemon.home / "dagster").rglob("*.db")) >> 10
        counted = f"{daemon.all_ticks() - ticks} ticks, {len(daemon.observed())} observations"
        print(f"\n{counted}: {last}, {size:,} KiB on disk")
    assert all(last[name] - first[name] < 60 for name in last), (first, last)


def test_what_nobody_publishes_goes_stale_by_itself(daemon: Daemon) -> None:
    key = AssetKey(["still", "freshness"])

    def state() -> str | None:
        record = daemon.instance.get_freshness_state_records([key]).get(key)
        return record.freshness_state.value if record else None

    daemon.wait_for("stale", lambda: state() == "FAIL")
    assert daemon.ticks("still_event_time_trigger") == []
