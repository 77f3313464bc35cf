"""What the commands share: their options, opening the table, starting Spark, and how they end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hudi_assets.cli.output import show_nothing_to_do
from hudi_assets.engine import (
    EVENT_TIME_FIELD,
    EVENT_TIME_UNIT,
    EXECUTOR,
    WRITERS,
    EventTimeUnit,
    HudiTable,
    InvalidInput,
    connected_session,
    local_session,
    named_server,
    session_settings,
)
from hudi_assets.shared_spark.sessions import shared_session
from hudi_assets.shared_spark.wanted import SHARED, is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED, WRONG_USE, NOTHING_TO_DO = 1, 2, 3


class Writers(StrEnum):
    STOPPED = "stopped"
    LOCKED = "locked"


class Executor(StrEnum):
    NATIVE = "native"
    HUDI = "hudi"


class Unit(StrEnum):
    SECONDS = EventTimeUnit.SECONDS.value
    MILLIS = EventTimeUnit.MILLIS.value
    MICROS = EventTimeUnit.MICROS.value


TablePath = Annotated[str, typer.Argument(metavar="PATH", help="The table's base path.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
EventTimeField = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The event-time column, where the table's settings name none."),
]
EventTimeUnitOption = Annotated[
    Unit | None,
    typer.Option(
        "--event-time-unit",
        help="How an event-time column of integers counts. Default: as the table states, else as its values tell.",
    ),
]
DataLatency = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="The longest time from an event to its commit, as 2h, 90m or 1d, or auto: learned from the "
        "commits. Default: the table's setting.",
    ),
]
WritersOption = Annotated[
    Writers | None,
    typer.Option(
        "--writers",
        help="How other engines write to the table now: stopped, or locked (they share the table's lock).",
    ),
]


ExecutorOption = Annotated[
    Executor | None,
    typer.Option("--executor", help="native, or hudi: Apache Hudi's own Spark bundle (versions 8 and 9)."),
]
HudiBundle = Annotated[
    str | None,
    typer.Option("--hudi-bundle", metavar="JAR", envvar="HUDI_BUNDLE", help="The bundle, for --executor hudi."),
]


SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A hoodie.* or hudi_assets.* setting over the table's own."),
]


def open_table(
    path: str,
    event_time_field: str | None = None,
    writers: Writers | None = None,
    executor: Executor | None = None,
    settings: Sequence[str] | None = None,
    event_time_unit: Unit | None = None,
) -> HudiTable:
    given: Mapping[str, str | None] = {
        EVENT_TIME_FIELD: event_time_field,
        EVENT_TIME_UNIT: event_time_unit and event_time_unit.value,
        WRITERS: writers and writers.value,
        EXECUTOR: executor and executor.value,
    }
    options = {key: value for key, value in given.items() if value is not None}
    return HudiTable.open(path, settings={**settings_of(settings), **options})


def settings_of(settings: Sequence[str] | None) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings or ()]
    wrong = next(
        (key for key, equals, _ in pairs if not equals or not key.startswith(("hoodie.", "hudi_assets."))), None
    )
    if wrong is not None:
        raise InvalidInput(f"--set {wrong} is no setting.", hint="Give hoodie.…=value or hudi_assets.…=value.")
    return {key: value for key, _, value in pairs}


def start_spark(hudi_bundle: str | None = None) -> SparkSession:
    """A Spark session that ends with the process; what its Java process logs is kept off the terminal.

    With `hudi_bundle`, the path of its jar, one that runs Apache Hudi's procedures. Where SPARK_REMOTE names a server
    of Spark Connect, a session there; with HUDI_ASSETS_SHARED_SPARK=1, one of the Spark that all runs share.
    """
    if url := named_server():
        if hudi_bundle:
            raise InvalidInput(
                "--hudi-bundle needs a Spark of this process, and SPARK_REMOTE names a server.", where=url
            )
        return connected_session(url)
    if is_shared():
        if hudi_bundle:
            raise InvalidInput(
                f"--hudi-bundle needs a Spark of this process, and {SHARED} asks for the shared one.",
                hint=f"Set {SHARED}=0 for this command.",
            )
        return shared_session()
    more = session_settings(hudi_bundle) if hudi_bundle else {}
    _silence_py4j()
    return local_session(config={"spark.ui.showConsoleProgress": "false", **more}, quiet=True)


def _silence_py4j() -> None:
    """Else it logs each call that a dead Java does not answer; and, by the root logger, each that Ctrl-C interrupts."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def nothing_to_do(reason: str, as_json: bool) -> NoReturn:
    """End with exit code 3 and the reason."""
    show_nothing_to_do(reason, as_json)
    raise typer.Exit(NOTHING_TO_DO)
