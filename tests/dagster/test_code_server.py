"""A real code server of Dagster, a process of its own, asked as the daemon asks it.

`SERVER_TICKS`: how many ticks are counted (25).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._grpc.server import GrpcServerProcess

from tests.dagster.conftest import Platform

ROOT = Path(__file__).resolve().parents[2]
TICKS = int(os.environ.get("SERVER_TICKS", "25"))
Ask = Callable[[str], Any]


@pytest.fixture
def ask(quick: Platform) -> Iterator[Ask]:
    """One tick of a sensor by its name: what it says. The table holds two batches; what it asks for is not run."""
    quick.ingest(0, 1)
    home = quick.home / "dagster"
    home.mkdir()
    served = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="tests.dagster.served", working_directory=str(ROOT)
    )
    with (
        DagsterInstance.local_temp(str(home)) as instance,
        GrpcServerProcess(
            instance.get_ref(), loadable_target_origin=served, startup_timeout=240, wait_on_exit=True
        ) as server,
        GrpcServerCodeLocationOrigin(
            host="localhost", port=server.port, socket=server.socket, location_name="tests"
        ).create_location(instance) as location,
    ):
        (repository,) = location.get_repositories().values()
        first = (None, None, None, None, 1.0)  # of a sensor that was started then; nothing is known of a tick

        yield lambda name: location.get_sensor_execution_data(instance, repository.handle, name, *first)


@pytest.mark.thorough
def test_ticks_leave_the_servers_garbage_where_its_collector_finds_it(ask: Ask) -> None:
    """What dies young must not reach the oldest generation: the collector hardly ever looks there, and memory grows."""

    def heap() -> dict[str, int]:
        found: dict[str, int] = json.loads(ask("heap").skip_message)
        print(f"\n{found['oldest']:,} objects in the oldest generation, {found['resident'] >> 20} MB")
        return found

    def tick() -> None:
        (request,) = ask("events_event_time_trigger").run_requests
        assert request.run_key.startswith("events:compact:")

    for _ in range(10):
        tick()
    before = heap()
    for number in range(TICKS):
        tick()
        if number % 20 == 19:
            heap()
    # A tick makes some 4,700 objects that die with it.
    assert heap()["oldest"] - before["oldest"] < 1_000 * TICKS + 15_000


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the code server notes its looks, which last until `looks.end` is there. Dagster gives a tick up early."""
    monkeypatch.setenv("LOOKS", str(tmp_path / "looks"))
    monkeypatch.setenv("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "11")
    return tmp_path / "looks"


def test_the_first_look_goes_on_where_dagster_gives_its_tick_up(looks: Path, ask: Ask) -> None:
    """The server's thread runs to its end, with an instance that it may report to; and the look is made once."""
    with pytest.raises(DagsterUserCodeUnreachableError):
        ask("events_event_time_trigger")
    assert "The look has been at work for " in str(ask("events_event_time_trigger").skip_message)
    looks.with_suffix(".end").touch()
    while not (found := ask("events_event_time_trigger")).run_requests:
        assert "The look has been at work for " in str(found.skip_message)
    (request,) = found.run_requests
    assert request.run_key.startswith("events:compact:")
    assert not found.asset_events  # they are told already
    assert looks.read_text() == "look\n"
