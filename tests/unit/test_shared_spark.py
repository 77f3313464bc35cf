"""Who can share a Spark, and how its folder tells who is alive. Real servers: tests/connect/test_shared_spark.py."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import grpc  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from hudi_assets.components import HudiTableComponent
from hudi_assets.engine import EnvironmentProblem, InvalidInput, problem_of
from hudi_assets.engine.spark import capabilities, connect, errors, session
from hudi_assets.engine.spark.errors import LocalServer
from hudi_assets.home import project_root
from hudi_assets.resources import SparkResource
from hudi_assets.shared_spark import wanted
from hudi_assets.shared_spark.folder import Running, ServerFolder
from hudi_assets.shared_spark.local import LOCAL_SETTINGS, prepare
from hudi_assets.shared_spark.wanted import Versions, Wanted, idle_ms, is_shared

RUNNING = Running(port=4711, token="secret", pid=1, started=1.5)


@pytest.fixture
def folder(tmp_path: Path) -> ServerFolder:
    made = ServerFolder(tmp_path / "shared_spark" / "machine" / "key")
    made.make()
    return made


THEIRS = (
    *("PYTHONPATH", "HOME", "CLOUDSDK_CONFIG", "CLASSPATH", "ARROW_LIBHDFS_DIR", "LD_LIBRARY_PATH", "JAVA_HOME", "TZ"),
    *(
        "SPARK_CONF_DIR",
        "SPARK_LOCAL_DIRS",
        "HTTPS_PROXY",
        "no_proxy",
        "SSL_CERT_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
)


def test_who_wants_the_same_shares_and_nobody_else() -> None:
    one = Wanted.here({"spark.a": "1", "spark.b": 2}, {"AWS_PROFILE": "x", "USER": "somebody"})
    assert one.key == Wanted.here({"spark.b": "2", "spark.a": "1"}, {"AWS_PROFILE": "x", "USER": "another"}).key
    others = [
        Wanted.here({"spark.a": "2", "spark.b": 2}, {"AWS_PROFILE": "x"}),
        Wanted.here({"spark.a": "1", "spark.b": 2}, {"AWS_PROFILE": "y"}),
        *(Wanted.here({"spark.a": "1", "spark.b": 2}, {"AWS_PROFILE": "x", name: "/elsewhere"}) for name in THEIRS),
        *(replace(one, versions=replace(one.versions, **{name: "another"})) for name in Versions.__dataclass_fields__),
    ]
    assert len({one.key, *(other.key for other in others)}) == 1 + len(others)
    assert set(Versions.__dataclass_fields__) == {"package", "code", "python", "pyspark", "pyarrow"}


def test_secrets_of_the_environment_are_not_kept() -> None:
    assert "hush" not in repr(Wanted.here({}, {"AWS_SECRET_ACCESS_KEY": "hush"}))


def test_a_file_of_the_package_that_changed_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared_spark").mkdir()
    module = tmp_path / "engine.py"
    module.touch()
    (tmp_path / "newest.py").touch()
    os.utime(module, (1, 1))
    monkeypatch.setattr(wanted, "__file__", str(tmp_path / "shared_spark/wanted.py"))
    here, before = Versions.here(), Versions.installed()
    assert Versions.installed() == before
    os.utime(module, (1, 2))  # it is older than another one
    later = Versions.installed()
    assert later != before
    module.write_text("1")
    os.utime(module, (1, 2))
    assert Versions.installed() not in (before, later)
    assert Versions.here() == here


@pytest.mark.parametrize(("said", "shared"), [("1", True), (" Yes ", True), ("0", False), ("", False), ("off", False)])
def test_the_environment_says_whether_runs_share(said: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(wanted.SHARED, said)
    assert is_shared() is shared
    assert is_shared(not shared) is not shared


def test_what_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(wanted.SHARED, "perhaps")
    with pytest.raises(InvalidInput, match="HUDI_ASSETS_SHARED_SPARK=perhaps is neither"):
        is_shared()


@pytest.mark.parametrize(
    ("exported", "given", "said"),
    [
        (None, [], "1"),
        ("", [], "1"),
        ("0", [], "0"),
        ("1", ["SHARED_SPARK=0"], "0"),
        ("0", ["SHARED_SPARK=1"], "1"),
        (None, ["WAREHOUSE=s3://bucket/demo"], "0"),
        ("1", ["WAREHOUSE=s3a://bucket/demo"], "1"),
    ],
)
def test_make_ui_shares_as_told_else_as_the_environment_says_else_on_disks(
    exported: str | None, given: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(wanted.SHARED, raising=False)
    if exported is not None:
        monkeypatch.setenv(wanted.SHARED, exported)
    words = ["make", "-n", "ui", *given]
    done = subprocess.run(words, cwd=project_root(), capture_output=True, text=True, check=True)
    assert f"{wanted.SHARED}={said} " in done.stdout


def test_the_idle_time_is_as_said_else_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(wanted.IDLE, raising=False)
    assert idle_ms() == 30 * 60_000
    monkeypatch.setenv(wanted.IDLE, "2h")
    assert idle_ms() == 2 * 3_600_000
    assert idle_ms("5m") == 5 * 60_000
    with pytest.raises(InvalidInput):
        idle_ms("soon")


def test_a_server_is_found_while_it_lives(folder: ServerFolder) -> None:
    assert folder.running() is None
    serving = folder.serve()
    assert serving is not None
    assert folder.running() is None  # it starts
    folder.tell(RUNNING)
    assert folder.running() == RUNNING
    assert folder.serve() is None  # it has one
    serving.release()  # as the system does when it is killed
    assert folder.running() is None


def test_who_asks_is_never_taken_for_the_server(folder: ServerFolder) -> None:
    ended, seen = threading.Event(), []

    def ask() -> None:
        while not ended.is_set():
            seen.append(folder.has_server())

    (folder.path / "serving").touch()
    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    time.sleep(0.3)
    ended.set()
    for asker in askers:
        asker.join()
    assert len(seen) > 100
    assert not any(seen)


def test_a_server_starts_while_others_ask_for_it(folder: ServerFolder) -> None:
    with (folder.path / "serving").open("w") as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        later = threading.Timer(0.3, asked.close)
        later.start()
        assert folder.serve() is not None
        later.join()


def test_what_a_dead_server_said_is_no_word_of_the_next_one(folder: ServerFolder) -> None:
    serving = folder.serve()
    assert serving is not None
    folder.tell(RUNNING)
    folder.end_when_unused()
    serving.release()
    assert folder.serve() is not None
    assert folder.running() is None
    assert not folder.is_ending


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": 1}'])
def test_a_damaged_file_is_no_server(folder: ServerFolder, text: str) -> None:
    serving = folder.serve()
    (folder.path / "server.json").write_text(text)
    assert folder.running() is None
    assert serving is not None


def test_a_session_is_used_until_its_run_ends(folder: ServerFolder) -> None:
    used, other = folder.enter("one"), folder.enter("two")
    assert folder.used_by() == 2
    assert list(folder.left_sessions()) == []
    used.release()
    assert folder.used_by() == 1
    assert list(folder.left_sessions()) == ["one"]
    assert list(folder.left_sessions()) == []
    other.release()
    assert folder.used_by() == 0


@pytest.mark.slow
def test_a_run_that_is_killed_uses_nothing_any_more(folder: ServerFolder) -> None:
    program = f"""
import os, signal
from pathlib import Path
from hudi_assets.shared_spark.folder import ServerFolder
kept = ServerFolder(Path({str(folder.path)!r})).enter("killed")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert list(folder.left_sessions()) == ["killed"]


def test_who_comes_to_a_server_that_is_asked_to_end_keeps_it(folder: ServerFolder) -> None:
    folder.end_when_unused()
    assert folder.is_ending
    folder.enter("one")
    assert not folder.is_ending


def test_nobody_waits_who_need_not(folder: ServerFolder) -> None:
    with folder.lock(), folder.lock_at_once() as alone:
        assert not alone
    with folder.lock_at_once() as alone:
        assert alone


def test_what_is_kept_is_for_the_owner_alone(folder: ServerFolder) -> None:
    folder.tell(RUNNING)
    folder.write_wanted({"settings": {"spark.password": "hush"}})
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert [(folder.path / name).stat().st_mode & 0o777 for name in ("server.json", "wanted.json")] == [0o600] * 2
    assert "secret" not in repr(RUNNING)


def test_an_error_of_the_server_names_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(grpc.RpcError):  # type: ignore[misc]
        def code(self) -> Any:
            return grpc.StatusCode.UNAVAILABLE

        def details(self) -> str:
            return "connection refused"

    monkeypatch.setattr(errors, "_SERVERS", [])
    assert "log" not in str(problem_of(Gone()))
    errors.name_server(LocalServer("/home/server.log", lambda: True))
    assert "does not answer: connection refused [its log: /home/server.log]" in str(problem_of(Gone()))


def test_a_server_that_ends_during_a_call_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    alive = [True]
    monkeypatch.setattr(errors, "_SERVERS", [LocalServer("/home/server.log", lambda: alive[0])])
    assert problem_of(SparkConnectGrpcException("a mistake in a query")) is None
    for said in ("Cannot call methods on a stopped SparkContext. This was made at …", "Stream removed"):
        found = problem_of(SparkConnectGrpcException(said))
        assert found is not None
        assert found.what == "The Spark Connect server has ended in the midst of this."
        assert found.where == "its log: /home/server.log"
        alive = [False]
    refused = '<_InactiveRpcError with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "connection refused"\n>'
    found = problem_of(SparkConnectGrpcException(refused, grpc_status_code=grpc.StatusCode.UNAVAILABLE))
    assert found is not None
    assert found.what == "Spark's Connect server does not answer: connection refused"


def test_an_address_is_shown_without_its_token() -> None:
    assert connect._shown("sc://host:15002/;token=hush;use_ssl=true") == "sc://host:15002"


def test_a_catalog_that_is_not_wanted_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_CONF_DIR"):
        monkeypatch.setenv(name, "")
    settings = {**LOCAL_SETTINGS, "spark.sql.catalogImplementation": "in-memory"}
    assert prepare(settings) == settings
    assert not (tmp_path / "catalog").exists()


def test_an_address_counts_before_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_assets.resources import spark

    asked: list[Any] = []

    def session_of(what: Any) -> object:
        asked.append(what)
        return object()

    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr(spark, "connected_session", session_of)
    monkeypatch.setattr(spark, "shared_session", session_of)
    assert SparkResource(remote="sc://one", shared=True).spark_session
    assert SparkResource(shared=True, spark_config={"spark.a": "b"}).spark_session
    monkeypatch.setenv(wanted.SHARED, "1")
    assert SparkResource(spark_config={"spark.c": "d"}).spark_session
    monkeypatch.setenv("SPARK_REMOTE", "sc://two")
    assert SparkResource(shared=True).spark_session
    assert asked == ["sc://one", {"spark.a": "b"}, {"spark.c": "d"}, "sc://two"]


def block(**more: Any) -> HudiTableComponent:
    return HudiTableComponent(name="t", path="t", external=True, event_time_field="at", **more)


def test_a_block_says_whether_its_runs_share() -> None:
    found = [block(shared_spark=said)._shared() for said in (None, True, False)]
    sparks = [next(one for one in shared.values() if isinstance(one, SparkResource)) for shared in found]
    assert [one.shared for one in sparks] == [None, True, False]
    assert len({next(iter(shared)) for shared in found}) == 3


@pytest.mark.parametrize("by_hudi", [{"executor": "hudi"}, {"settings": {"hudi_assets.executor": "hudi"}}])
def test_hudi_executes_in_a_spark_of_the_runs_own_whatever_the_environment_says(by_hudi: dict[str, Any]) -> None:
    one = block(**by_hudi)
    key, spark = next((key, one) for key, one in one._shared().items() if isinstance(one, SparkResource))
    assert spark.shared is False
    assert one._table_assets().spark_key == key
    with pytest.raises(ValueError, match="executor: hudi needs a Spark of the run's own"):
        block(shared_spark=True, **by_hudi)


def test_what_needs_a_classic_session_names_all_that_asks_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "is_connect", lambda _: True)
    with pytest.raises(EnvironmentProblem, match="without SPARK_REMOTE and HUDI_ASSETS_SHARED_SPARK"):
        capabilities.check_classic(object())


def test_a_block_that_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="say it of the resource mine"):
        block(shared_spark=True, spark_resource="mine")


def test_what_a_server_is_told_is_what_was_wanted(folder: ServerFolder) -> None:
    folder.write_wanted({"settings": {"a": "b"}})
    assert folder.wanted() == {"settings": {"a": "b"}}
    assert json.loads((folder.path / "wanted.json").read_text()) == folder.wanted()


def test_what_one_run_carries_is_of_no_other_ones_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    functions: list[bytes] = []

    class Pieces:
        def persist(self) -> Pieces:
            return self

        def unpersist(self) -> None:
            pass

    def of_rows(_: object, run: object, __: object) -> Pieces:
        functions.append(session.dumps(run))
        return Pieces()

    monkeypatch.setattr(session, "_of_rows", of_rows)
    for _ in range(2):  # two runs that do the same
        with session.carried(cast(Any, object()), lambda batches: batches, pa.schema([])):
            pass
    assert len(set(functions)) == 2
