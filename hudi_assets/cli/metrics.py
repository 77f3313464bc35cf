"""`hudi-assets metrics`: tables for Prometheus, over HTTP or in a file for its node exporter. Starts no Spark."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_assets.cli.table import FAILED, SettingsOption, settings_of
from hudi_assets.engine import EnvironmentProblem, InvalidInput

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from hudi_assets.monitoring.watch import Watch

LOG = logging.getLogger("hudi_assets.metrics")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def metrics(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH…", help="The tables' base paths.", show_default=False)
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(metavar="FILE", help=r"Tables in TOML: \[\[table]] with path, slo, settings.")
    ] = None,
    slo: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How far the freshness may lag, as 6h: for the alert.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Serve them over HTTP. Default host: 127.0.0.1.")
    ] = None,
    textfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write them into a file for the node exporter, as a whole.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two looks.")] = 60,
    once: Annotated[bool, typer.Option("--once", help="With --textfile: one look, as for cron.")] = False,
    dagster: Annotated[
        str | None, typer.Option(metavar="URL", help="Dagster's web server: its runs of the tables are told too.")
    ] = None,
    settings: SettingsOption = None,
    log_format: Annotated[LogFormat, typer.Option(help="Of the log on stderr.")] = LogFormat.TEXT,
    rules: Annotated[bool, typer.Option("--rules", help="Print alert rules for Prometheus, and end.")] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Print a dashboard for Grafana, and end.")] = False,
) -> None:
    """Tables as metrics for Prometheus. Without --listen and --textfile: once, on stdout; exit code 1 if one fails."""
    if rules or dashboard:
        print(_shipped("alerts.yml" if rules else "dashboard.json"), end="")
        return
    if once and (listen is not None or textfile is None):
        raise InvalidInput("--once goes with --textfile alone.", hint="Leave it out: stdout is written once.")
    address = None if listen is None else _address(listen)
    _log_to_stderr(log_format)
    # Imported here: the other commands answer without them.
    from hudi_assets.monitoring.runs import DagsterRuns
    from hudi_assets.monitoring.samples import registry_of
    from hudi_assets.monitoring.tables import watched_tables
    from hudi_assets.monitoring.watch import Watch

    goes_on = not once and (listen is not None or textfile is not None)
    watch = Watch(
        watched_tables(paths or (), tables, slo, settings_of(settings)),
        interval if goes_on else None,
        runs=None if dagster is None else DagsterRuns(dagster),
    )
    registry = registry_of(watch)
    watch.look()
    if goes_on:
        _serve(watch, registry, address, textfile, interval)
        return
    _put_out(registry, textfile)
    if watch.runs_problem or any(one.problem for one in watch.seen()):
        raise typer.Exit(FAILED)


def _serve(
    watch: Watch, registry: CollectorRegistry, address: tuple[str, int] | None, textfile: Path | None, interval: float
) -> None:
    """Until Ctrl-C or SIGTERM, which are no errors."""
    from prometheus_client import start_http_server

    if textfile is not None:
        _put_out(registry, textfile)  # what is wrong with its place is wrong use
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if address is not None:
            try:
                server, _ = start_http_server(address[1], address[0], registry)
            except OSError as error:
                where = f"{address[0]}:{address[1]}"
                raise EnvironmentProblem(
                    f"Cannot listen: {error.strerror or error}.", where=where, hint="Give another port by --listen."
                ) from error
            LOG.info("Metrics are at http://%s:%d/metrics", address[0], server.server_port)
        while not ended.wait(interval):
            watch.look()
            if textfile is not None:
                _put_out_or_log(registry, textfile)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _put_out(registry: CollectorRegistry, textfile: Path | None) -> None:
    from prometheus_client import generate_latest, write_to_textfile

    if textfile is None:
        sys.stdout.write(generate_latest(registry).decode())
    else:
        write_to_textfile(str(textfile), registry)


def _put_out_or_log(registry: CollectorRegistry, textfile: Path) -> None:
    """A disk that is full for a while ends nothing: the file then tells its age."""
    try:
        _put_out(registry, textfile)
    except OSError as error:
        LOG.error("The file %s cannot be written: %s", textfile, error.strerror or error)


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise InvalidInput(f"--listen {listen} has no port.", hint="Give HOST:PORT, as 127.0.0.1:9477, or PORT.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _shipped(name: str) -> str:
    return (files("hudi_assets.monitoring") / name).read_text("utf-8")


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        told |= {key: getattr(record, key) for key in ("table", "path") if hasattr(record, key)}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


def _log_to_stderr(log_format: LogFormat) -> None:
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_AsJson() if log_format is LogFormat.JSON else text)
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.INFO)
