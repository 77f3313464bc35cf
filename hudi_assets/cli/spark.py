"""`hudi-assets spark`: the Spark that all runs of this home share, started, shown and stopped."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from hudi_assets.cli.output import print_facts, print_json, print_text
from hudi_assets.cli.table import AsJson, nothing_to_do
from hudi_assets.engine import duration, iso
from hudi_assets.home import home
from hudi_assets.shared_spark.sessions import Server, servers, start_server, stop_server
from hudi_assets.shared_spark.wanted import SHARED

spark = typer.Typer(
    help="The Spark that runs share: HUDI_ASSETS_SHARED_SPARK=1 lets commands and Dagster's runs use it.",
    no_args_is_help=True,
)


@spark.command()
def start(
    idle: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="After how long without a run it ends. Default: 30m, or as set."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the shared Spark now. Else the first run does."""
    server, begun = start_server(idle=idle)
    if as_json:
        print_json({"started": begun, **_json(server)})
        return
    print_text(f"The shared Spark {'has started' if begun else 'runs already'}.")
    print_facts(_facts(server))
    print_text(f"Commands and Dagster's runs use it with {SHARED}=1 in their environment.")


@spark.command()
def status(as_json: AsJson = False) -> None:
    """The shared Sparks of this home: one, or more where runs ask for different settings."""
    found = servers()
    if as_json:
        print_json({"home": str(home()), "servers": [_json(server) for server in found]})
        return
    if not found:
        print_text(f"No shared Spark runs in {home()}.")
    for server in found:
        print_facts(_facts(server))


@spark.command()
def stop(
    now: Annotated[bool, typer.Option("--now", help="Also where runs use it: they fail.")] = False,
    as_json: AsJson = False,
) -> None:
    """End the shared Sparks of this home, each with its last run. A run that comes before keeps its server."""
    found = servers()
    if not found:
        nothing_to_do(f"no shared Spark runs in {home()}", as_json)
    done = [(server, stop_server(server, now=now)) for server in found]
    if as_json:
        print_json({"servers": [{**_json(server), "stopped": stopped} for server, stopped in done]})
        return
    for server, stopped in done:
        used = f"is used by {_runs(server)}, and ends with the last one if no other comes (--now: at once)"
        what = "has ended" if stopped else used
        print_text(f"The shared Spark of process {server.running.pid} {what}.")


def _runs(server: Server) -> str:
    return "1 run" if server.sessions == 1 else f"{server.sessions} runs"


def _facts(server: Server) -> dict[str, str]:
    found = {
        "address": f"{server.address}, process {server.running.pid}",
        "used by": _runs(server) + (", ends with the last one" if server.is_ending else ""),
        "since": f"{iso(round(server.running.started * 1000))}, {duration(_age_ms(server))} ago",
        "ends": f"after {duration(server.idle_ms)} without a run",
        "versions": f"PySpark {server.versions['pyspark']}, Python {server.versions['python']}",
        "log": str(server.folder.log),
    }
    return found if server.is_current else {**found, "note": "other versions than this command: it is not used here"}


def _json(server: Server) -> dict[str, Any]:
    """Without the token."""
    return {
        "address": server.address,
        "pid": server.running.pid,
        "sessions": server.sessions,
        "started_ms": round(server.running.started * 1000),
        "idle_ms": server.idle_ms,
        "versions": dict(server.versions),
        "is_current": server.is_current,
        "is_ending": server.is_ending,
        "log": str(server.folder.log),
    }


def _age_ms(server: Server) -> int:
    return max(0, round(time.time() - server.running.started)) * 1000
