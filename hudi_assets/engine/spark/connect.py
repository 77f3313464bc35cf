"""Sessions of Spark Connect: Spark runs in a server elsewhere, and this process needs no Java.

The engine's tasks run in the server's Python workers. What these need, `probe` asks them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from hudi_assets.engine.errors import EnvironmentProblem
from hudi_assets.engine.spark.errors import LocalServer, name_server
from hudi_assets.engine.spark.java_runtime import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

_REMOTE: Final = "SPARK_REMOTE"
_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
_ANSWER_S: Final = 20.0
_LOOK_S: Final = 1.0  # whether the server is still there
_ONE_KIND: Final = "Let all that one process does have one kind of Spark: share it in all blocks of a run, or in none."
_CLIENT: Final = ("grpc", "grpc_status", "google.rpc")  # what PySpark asks for beyond itself
LOOPBACK: Final = "127.0.0.1"  # where such a server listens
USER: Final = "hudi-assets"  # to a server of this machine: its sessions are known by user and number
_SETTINGS: Final = {"spark.sql.session.timeZone": "UTC"}
_OPENED: WeakSet[Any] = WeakSet()  # sessions that were made here
_OF_THIS_MACHINE: WeakSet[Any] = WeakSet()  # sessions of a server here, which has this package and this Python


def named_server() -> str | None:
    """The Spark Connect server that Spark's own variable names, if it does."""
    if url := os.environ.get(_REMOTE):
        return url
    os.environ.pop(_REMOTE, None)  # PySpark takes an empty one for an address
    return None


def connected_session(url: str) -> SparkSession:
    """A new session of a Spark Connect server.

    Args:
        url: The server's address, as Spark's own SPARK_REMOTE has it: `sc://HOST:15002`.

    Raises:
        EnvironmentProblem: A package is missing here, or the server does not answer.
    """
    session = _new_session(url)
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    return session


def local_connected_session(
    port: int, token: str, session_id: str, log: str, is_alive: Callable[[], bool]
) -> SparkSession:
    """A session of a server of this machine (`connect_server`) with the same package, Python and PySpark.

    Its settings are the server's. A server that is gone is an error within seconds: PySpark tries for ten minutes.

    Args:
        port: Of the loopback address.
        token: What the server knows its clients by.
        session_id: A UUID that nobody has had.
        log: The server's log, which errors name.
        is_alive: Whether the server is still there: asked when a call has failed.

    Raises:
        EnvironmentProblem: A package is missing here, or the server does not answer.
    """
    check_client()
    channels = _local_channels(port, token, session_id)
    hint = "Read that log. hudi-assets spark stop --now ends that server, and the next run starts another."
    _check_answers(channels, log, hint, is_alive)
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # As `SparkSession.builder` does, which takes an address alone: PySpark's functions go by it.
    os.environ[_MODE] = "1"
    session: Any = ConnectSession.Builder().channelBuilder(channels).create()
    _OPENED.add(session)

    session.client.set_retry_policies([DefaultPolicy(max_retries=6, initial_backoff=50, max_backoff=1000)])
    _OF_THIS_MACHINE.add(session)
    name_server(LocalServer(log, is_alive))
    found: SparkSession = session
    return found


def is_of_this_machine(session: Any) -> bool:
    """True for a session of `local_connected_session`, whose workers are as this process is."""
    return session in _OF_THIS_MACHINE


def end_connected_session(session: SparkSession) -> None:
    """Stop what a session still does, and forget it. After the last one this process can have a Spark of its own.

    Args:
        session: Of `connected_session` or `local_connected_session`.
    """
    session.stop()
    _forget_mode()


def check_no_own_spark() -> None:
    """Raise `EnvironmentProblem` where this process has a Spark of its own. PySpark's functions serve one kind."""
    for name in ("pyspark.core.context", "pyspark.context"):
        context = getattr(sys.modules.get(name), "SparkContext", None)
        if getattr(context, "_active_spark_context", None) is not None:
            raise EnvironmentProblem(
                "This process has a Spark of its own, and no session of a Spark Connect server can be beside it.",
                hint=_ONE_KIND,
            )


def check_no_connected_session() -> None:
    """Raise `EnvironmentProblem` where this process has a session of Spark Connect: it can have no Spark of its own."""
    _forget_mode()
    if _MODE in os.environ and _has_session():
        raise EnvironmentProblem(
            "This process has a session of a Spark Connect server, and no Spark of its own can be beside it.",
            hint=_ONE_KIND,
        )


def _forget_mode() -> None:
    """PySpark says by a variable that sessions are of Spark Connect, and leaves it when the last one has ended."""
    if not _has_session() and not {_REMOTE, "SPARK_LOCAL_REMOTE"} & os.environ.keys():
        os.environ.pop(_MODE, None)


def _has_session() -> bool:
    """Of Spark Connect, and in this process: processes that it starts inherit the variable."""
    pyspark = getattr(sys.modules.get("pyspark.sql.connect.session"), "SparkSession", None)
    return any(not one.is_stopped for one in (*_OPENED, getattr(pyspark, "_default_session", None)) if one is not None)


def check_client() -> None:
    """Raise `EnvironmentProblem` where a package is missing that sessions of Spark Connect need here."""
    check_pyspark()
    missing = [name for name in _CLIENT if not _is_there(name)]
    if missing:
        hint = "Install them: pip install 'hudi-assets[connect]'."
        raise EnvironmentProblem(f"Spark Connect needs packages that are not here: {', '.join(missing)}.", hint=hint)


def _new_session(url: str) -> SparkSession:
    check_client()
    hint = "Start it (sbin/start-connect-server.sh of Spark), or correct the address."
    _check_answers(_channels_to(url), _shown(url), hint)
    check_no_own_spark()
    from pyspark.sql import SparkSession

    # Not getOrCreate: that gives the session of another server, or one that its server has ended, as well.
    session: SparkSession = SparkSession.builder.remote(url).create()
    _OPENED.add(session)
    return session


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor is what it is part of
        return False


def _channels_to(url: str) -> DefaultChannelBuilder:
    """As PySpark makes them of an address."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        return DefaultChannelBuilder(url)
    except PySparkException as error:
        hint = "Give one as sc://HOST:15002."
        raise EnvironmentProblem(f"{_shown(url)!r} is no address of a Spark Connect server.", hint=hint) from error


def _local_channels(port: int, token: str, session_id: str) -> DefaultChannelBuilder:
    """To a server of this machine, by the one address that it listens on.

    PySpark sends a token without TLS to `localhost` alone. That is [::1] first, where any user of the machine
    can listen at the same port, and be told the token.
    """
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Loopback(DefaultChannelBuilder):
        def toChannel(self) -> grpc.Channel:  # noqa: N802
            who = grpc.access_token_call_credentials(token)
            return self._secure_channel(
                self.endpoint, grpc.composite_channel_credentials(grpc.local_channel_credentials(), who)
            )

    found = Loopback(f"sc://{LOOPBACK}:{port}/;session_id={session_id};user_id={USER}")
    found.setChannelOption("grpc.enable_http_proxy", 0)
    return found


def _check_answers(
    channels: DefaultChannelBuilder, where: str, hint: str, is_alive: Callable[[], bool] = lambda: True
) -> None:
    """PySpark itself tries for ten minutes."""
    import grpc

    channel = channels.toChannel()
    ready, end = grpc.channel_ready_future(channel), time.monotonic() + _ANSWER_S
    try:
        while True:
            try:
                ready.result(timeout=min(_LOOK_S, _ANSWER_S))
                return
            except grpc.FutureTimeoutError as error:
                if time.monotonic() < end and is_alive():
                    continue
                what = f"No Spark Connect server answers within {_ANSWER_S:.0f} s."
                raise EnvironmentProblem(what, where=where, hint=hint) from error
    finally:
        channel.close()


def _shown(url: str) -> str:
    """Without what follows the address: a token may be there."""
    return url.partition("/;")[0]
