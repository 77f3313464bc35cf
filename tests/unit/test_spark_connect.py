"""Spark Connect without a server: what is wrong is said by name."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession as ConnectSession

from hudi_assets.cli.table import start_spark
from hudi_assets.engine import (
    EnvironmentProblem,
    InvalidInput,
    check_no_connected_session,
    connected_session,
    end_connected_session,
    local_connected_session,
    local_session,
    named_server,
    problem_of,
)
from hudi_assets.engine.spark import connect, errors
from hudi_assets.resources import SparkResource
from hudi_assets.shared_spark import sessions
from tests.ports import free_port


def test_hudis_bundle_needs_a_spark_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(InvalidInput, match="names a server"):
        start_spark("hudi.jar")


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_ANSWER_S", 0.5)
    with pytest.raises(EnvironmentProblem, match="No Spark Connect server answers") as problem:
        connected_session(f"sc://127.0.0.1:{free_port()}")
    assert "sc://127.0.0.1" in str(problem.value)


@contextmanager
def listener(address: str, seen: list[tuple[str, str]]) -> Iterator[None]:
    """What serves nobody, and notes what it is told."""

    class Noting(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> None:
            seen.append((address, dict(call.invocation_metadata).get("authorization", "")))

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Noting()])
    server.add_insecure_port(address)
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What listeners note: their address, and the token."""
    if not has_ipv6():
        pytest.skip("this machine has no [::1]")
    monkeypatch.setattr(errors, "_SERVERS", [])
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "")  # as it was, afterwards
    return []


def session_at(port: int) -> Any:
    return local_connected_session(port, "hush", str(uuid.uuid4()), "/home/server.log", lambda: True)


def test_the_token_is_told_to_no_other_listener_at_the_servers_port(told: list[tuple[str, str]]) -> None:
    port = free_port()
    with listener(f"[::1]:{port}", told), listener(f"127.0.0.1:{port}", told):
        session = session_at(port)
        with pytest.raises(Exception, match="not found"):
            session.range(1).collect()
        session.stop()
    assert set(told) == {(f"127.0.0.1:{port}", "Bearer hush")}


def test_another_listener_at_the_port_of_a_server_that_is_gone_is_not_asked(
    told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_ANSWER_S", 0.5)
    port = free_port()
    with (
        listener(f"[::1]:{port}", told),
        pytest.raises(EnvironmentProblem, match="No Spark Connect server answers") as problem,
    ):
        session_at(port)
    assert problem.value.where == "/home/server.log"
    assert "spark stop --now" in str(problem.value)
    assert told == []


class Opened:
    """Stands where a session of Spark Connect stands."""

    is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two sessions, as if PySpark had made them, and no other."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr(ConnectSession, "_default_session", None)
    made = [Opened(), Opened()]
    monkeypatch.setattr(connect, "_OPENED", WeakSet(made))
    return made


def test_a_spark_of_ones_own_is_refused_beside_sessions_of_a_server_and_made_after_the_last(opened: list[Any]) -> None:
    first, last = opened
    for has_own in (check_no_connected_session, local_session, lambda: SparkResource(shared=False).spark_session):
        with pytest.raises(EnvironmentProblem, match="no Spark of its own can be beside it"):
            has_own()
    end_connected_session(first)
    assert "SPARK_CONNECT_MODE_ENABLED" in os.environ
    end_connected_session(last)
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
    check_no_connected_session()


def test_the_kind_of_spark_that_the_environment_asks_for_stays(
    opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    for session in opened:
        end_connected_session(session)
    assert "SPARK_CONNECT_MODE_ENABLED" in os.environ


def test_what_a_process_inherits_is_no_session_of_its_own(opened: list[Any]) -> None:
    for session in opened:
        session.is_stopped = True
    check_no_connected_session()
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_a_session_of_a_server_is_refused_beside_a_spark_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    monkeypatch.setattr(sessions, "check_can_serve", lambda: pytest.fail("a server would be started"))
    with pytest.raises(EnvironmentProblem, match="This process has a Spark of its own"):
        sessions.shared_session()
    with listening() as port, pytest.raises(EnvironmentProblem, match="This process has a Spark of its own"):
        connected_session(f"sc://127.0.0.1:{port}")


@contextmanager
def listening() -> Iterator[int]:
    port = free_port()
    with listener(f"127.0.0.1:{port}", []):
        yield port


def test_an_address_that_is_none() -> None:
    with pytest.raises(EnvironmentProblem, match="no address of a Spark Connect server"):
        connected_session("http://127.0.0.1:15002")


def test_packages_that_are_missing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_CLIENT", ("grpc", "no_such_package", "no.such.package"))
    with pytest.raises(EnvironmentProblem, match=r"no_such_package, no\.such\.package"):
        connected_session("sc://127.0.0.1:1")


def test_an_empty_name_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "")
    assert named_server() is None
    assert "SPARK_REMOTE" not in os.environ
    monkeypatch.setenv("SPARK_REMOTE", "sc://there:1")
    assert named_server() == "sc://there:1"


def test_a_session_that_the_server_has_ended() -> None:
    problem = problem_of(PySparkException("[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid. Session was closed."))
    assert isinstance(problem, EnvironmentProblem)
    assert "knows this session no more" in problem.what
