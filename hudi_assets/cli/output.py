"""What the command line prints: each answer as lines for people, or as one JSON object for programs.

Times are ISO-8601 UTC; `…_ms` beside one is the same in epoch milliseconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from hudi_assets.engine import (
    EVENT_TIME_UNIT,
    ColumnUnit,
    CostPoint,
    Finding,
    Freshness,
    HiddenRows,
    HudiAssetsError,
    ObservedLatency,
    PartitionFreshness,
    Plan,
    Stats,
    duration,
    iso,
)
from hudi_assets.sizes import size_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_ROWS = 20
_SHOWN_OPERATIONS = _SHOWN_PARTITIONS = 20
_ANY_WIDTH = 1_000_000
OUT = Console(highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    print(json.dumps(value, indent=2))


def print_text(text: str) -> None:
    OUT.print(text, markup=False, soft_wrap=True)


def show_nothing_to_do(reason: str, as_json: bool, curve: Sequence[CostPoint] = ()) -> None:
    """The reason, and for a dry run what other thresholds would cost."""
    if as_json:
        print_json({"nothing_to_do": reason, **({"cost_curve": _curve_json(curve)} if curve else {})})
    else:
        print_text(f"Nothing to do: {reason.rstrip('.')}.")
        _print_curve(curve)


def show_error(error: HudiAssetsError, as_json: bool) -> None:
    """To stderr: what, where and the hint; as JSON also the error's kind."""
    if as_json:
        fields = {"error": type(error).__name__, "what": error.what, "where": error.where, "hint": error.next_step}
        print(json.dumps(fields), file=sys.stderr)
        return
    lines = [f"Error: {error.what}"]
    lines += [f"{label}: {text}" for label, text in (("Where", error.where), ("Hint", error.next_step)) if text]
    print("\n".join(lines), file=sys.stderr)


# -- status and freshness -------------------------------------------------------------------------


def show_status(
    path: str,
    stats: Stats,
    learned: ObservedLatency | None,
    as_json: bool,
    *,
    auto: bool = False,
    each: Sequence[PartitionFreshness] | None = None,
) -> None:
    """`learned`: the data latency's evidence, where the table's is to be learned (`auto`). `each`: partition."""
    if as_json:
        told = {} if each is None else {"partitions": [_partition_json(one) for one in each]}
        print_json({**_status_json(stats), **_latency_json(learned, auto=auto), **told})
        return
    base_files = f"{stats.base_files} in {stats.file_groups} file groups, {size_of(stats.base_bytes)}"
    remaining = (
        f"{stats.remaining_log_files} in {stats.remaining_file_slices} file slices, {size_of(stats.remaining_bytes)}"
    )
    print_facts(
        {
            "table": f"{path} (version {stats.table_version})",
            **freshness_facts(stats.freshness),
            **_latency_facts(learned, auto=auto),
            "base files": base_files,
            "remaining log files": remaining,
            "pending compactions": ", ".join(stats.pending) or "none",
            "last compaction": stats.last_compaction or "none",
            "last commit": stats.last_commit or "none",
            "inflight writes": ", ".join(stats.inflight_writes) or "none",
            **({"orphans": f"{len(stats.orphans)} files of no instant (recover)"} if stats.orphans else {}),
        }
    )
    if each is not None:
        _print_partitions(each)


def _print_partitions(each: Sequence[PartitionFreshness]) -> None:
    behind = sum(one.holds_back for one in each)
    print_text(f"{behind} of {len(each)} partitions wait for a compaction:" if behind else "No partition waits.")
    grid = Table(box=None, pad_edge=False)
    for heading in ("partition", "freshness"):
        grid.add_column(heading)
    for heading in ("log files", "remain"):
        grid.add_column(heading, justify="right")
    for one in each[:_SHOWN_PARTITIONS]:
        fresh = iso(one.freshness) or f"none: {one.reason}"
        grid.add_row(one.partition or "(the table)", fresh, str(one.remaining_log_files), size_of(one.remaining_bytes))
    OUT.print(grid, markup=False)
    if len(each) > _SHOWN_PARTITIONS:
        print_text(f"… and {len(each) - _SHOWN_PARTITIONS} more (--json shows all)")


def _partition_json(one: PartitionFreshness) -> dict[str, Any]:
    return {**asdict(one), "freshness": iso(one.freshness), "freshness_ms": one.freshness}


def _status_json(stats: Stats) -> dict[str, Any]:
    return {
        "table_version": stats.table_version,
        **_freshness_json(stats.freshness),
        "min_event_time": iso(stats.min_event_time),
        "remaining": {
            "file_slices": stats.remaining_file_slices,
            "log_files": stats.remaining_log_files,
            "bytes": stats.remaining_bytes,
        },
        "base": {"file_groups": stats.file_groups, "files": stats.base_files, "bytes": stats.base_bytes},
        "pending": list(stats.pending),
        "last_compaction": stats.last_compaction,
        "last_commit": stats.last_commit,
        "inflight_writes": list(stats.inflight_writes),
        "orphans": list(stats.orphans),
    }


def show_freshness(promise: Freshness, learned: ObservedLatency | None, as_json: bool, *, auto: bool = False) -> None:
    if as_json:
        print_json({**_freshness_json(promise), **_latency_json(learned, auto=auto)})
    else:
        print_facts(freshness_facts(promise) | _latency_facts(learned, auto=auto))


def _freshness_json(promise: Freshness) -> dict[str, Any]:
    return {
        "freshness": iso(promise.freshness),
        "freshness_ms": promise.freshness,
        "reason": promise.reason,
        "watermark": iso(promise.watermark),
        "threshold": iso(promise.threshold),
        "instant": promise.instant,
        "min_event_time": iso(promise.min_event_time),
        "computed_at": iso(promise.computed_at),
        "bounds": [{**asdict(one), "min_event_time": iso(one.min_event_time)} for one in promise.bounds],
        "hidden": [_hidden_json(rows) for rows in promise.hidden],
        "event_time_unit": _unit_json(promise.unit),
    }


def _hidden_json(rows: HiddenRows) -> dict[str, Any]:
    """`log_files` is the old name of `files`."""
    return {**asdict(rows), "log_files": rows.files, "min_event_time": iso(rows.min_event_time)}


def _unit_json(unit: ColumnUnit | None) -> dict[str, Any] | None:
    """`source`: `type`, `setting`, `default` or `values` (then it was inferred, by `evidence`)."""
    return None if unit is None else asdict(unit)


def _unit_facts(unit: ColumnUnit | None) -> dict[str, str]:
    """Only where the unit was inferred: what was stated needs no words."""
    if unit is None or unit.evidence is None:
        return {}
    settled = f"{EVENT_TIME_UNIT}={unit.unit} settles it"
    return {"event-time unit": f"{unit.unit} for column {unit.column}, inferred: {unit.evidence}; {settled}"}


def freshness_facts(promise: Freshness) -> dict[str, str]:
    since = f" (compaction {promise.instant})" if promise.instant else ""
    return {
        "freshness": iso(promise.freshness) or f"none: {promise.reason}",
        "watermark": iso(promise.watermark) or "none",
        "threshold": (iso(promise.threshold) or "none") + since,
        "oldest remaining event": iso(promise.min_event_time) or "none",
        **({"bounded by commits": "; ".join(bound.words for bound in promise.bounds)} if promise.bounds else {}),
        **({"in no view": "; ".join(rows.words for rows in promise.hidden)} if promise.hidden else {}),
        "computed at": iso(promise.computed_at) or "",
        **_unit_facts(promise.unit),
    }


def _latency_json(learned: ObservedLatency | None, *, auto: bool) -> dict[str, Any]:
    """Only where the latency is to be learned; null where nothing was learned yet."""
    return {"learned_latency": None if learned is None else asdict(learned)} if auto else {}


def _latency_facts(learned: ObservedLatency | None, *, auto: bool) -> dict[str, str]:
    if not auto:
        return {}
    if learned is None:
        return {"learned latency": "none yet"}
    unknown = f", {learned.unknown} more without known event times" if learned.unknown else ""
    return {
        "learned latency": f"{duration(learned.latency_ms)} for {learned.quantile:g} of {learned.records:,} records, "
        f"{duration(learned.max_ms)} for all",
        "learned from": f"{learned.log_files} log files of {learned.commits} commits, "
        f"{learned.first_instant} to {learned.last_instant}{unknown}",
    }


# -- plans and compactions ------------------------------------------------------------------------


def show_plan(
    plan: Plan,
    happened: str,
    as_json: bool,
    *,
    dry_run: bool = False,
    curve: Sequence[CostPoint] = (),
    unit: ColumnUnit | None = None,
    refused: str | None = None,
) -> None:
    """`happened` completes the sentence "Compaction 2013… …". `curve`: what other thresholds would cost.

    `refused`: why the executor of the settings would not execute the plan.
    """
    if as_json:
        more = {"cost_curve": _curve_json(curve), "refused": refused} if dry_run else {}
        print_json(_plan_json(plan, dry_run=dry_run) | more | {"event_time_unit": _unit_json(unit)})
        return
    for name, words in _unit_facts(unit).items():
        print_text(f"{name}: {words}")
    logs = sum(len(op.log_files) for op in plan.operations)
    kept = sum(len(op.carried_over) for op in plan.operations)
    print_text(
        f"Compaction {plan.instant} {happened}: {reach_of(plan)}, "
        f"{logs} log files in {len(plan.operations)} file groups, {kept} log files remain."
    )
    grid = Table("partition", "file group", "log files", "remain")
    for op in plan.operations[:_SHOWN_OPERATIONS]:
        grid.add_row(op.partition, op.file_id, str(len(op.log_files)), str(len(op.carried_over)))
    OUT.print(grid, markup=False)
    if len(plan.operations) > _SHOWN_OPERATIONS:
        print_text(f"… and {len(plan.operations) - _SHOWN_OPERATIONS} more (--json shows all)")
    if plan.is_first_of_several:
        print_text(f"{iso(plan.asked_for)} takes more plans than this one: compact makes them all.")
    print_query_time(plan)
    if refused is not None:
        print_text(f"Refused: {refused}")
    _print_curve(curve)


def print_query_time(plan: Plan) -> None:
    """The warning, where a plan leaves running queries too little time."""
    time = plan.query_time
    if time is not None and time.warning is not None:
        print_text(f"{'Refused' if time.refused else 'Warning'}: {time.warning}")


def query_time_json(plan: Plan) -> dict[str, Any]:
    """Where another engine's cleaner takes what the plan replaces; null where none does, or nothing is known."""
    time = plan.query_time
    return {"query_minutes": time and time.minutes, "warning": time and time.warning}


def reach_of(plan: Plan) -> str:
    return plan.strategy.rsplit(".", 1)[-1] if plan.claims is None else f"event times up to {iso(plan.claims)}"


def _curve_json(curve: Sequence[CostPoint]) -> list[dict[str, Any]]:
    return [{**asdict(point), "threshold": iso(point.threshold), "freshness": iso(point.freshness)} for point in curve]


def _print_curve(curve: Sequence[CostPoint]) -> None:
    if not curve:
        return
    print_text("What a compaction would cost at each threshold:")
    # Narrow enough for 80 columns: a time that is cut off is of no use.
    grid = Table(box=None, pad_edge=False)
    for heading in ("threshold", "freshness then"):
        grid.add_column(heading, min_width=24)
    for heading in ("to rewrite", "logs", "groups"):
        grid.add_column(heading, justify="right")
    for point in curve:
        grid.add_row(
            iso(point.threshold),
            iso(point.freshness) or "none",
            size_of(point.bytes_to_rewrite),
            str(point.log_files),
            str(point.file_groups),
        )
    OUT.print(grid, markup=False)


def _plan_json(plan: Plan, *, dry_run: bool) -> dict[str, Any]:
    operations = [
        {
            "partition": op.partition,
            "file_id": op.file_id,
            "base_file": op.base_file,
            "log_files": list(op.log_files),
            "carried_over": [{"link": c.link, "target": c.target} for c in op.carried_over],
        }
        for op in plan.operations
    ]
    return {
        "instant": plan.instant,
        "threshold": iso(plan.claims),
        "asked_for": iso(plan.asked_for),
        "strategy": plan.strategy,
        "dry_run": dry_run,
        **query_time_json(plan),
        "operations": operations,
    }


def print_findings(findings: Sequence[Finding]) -> None:
    if not findings:
        print_text("All is as the timeline says.")
    for one in findings:
        print_text(f"{one.kind}: {one.path}")
        print_text(f"  {one.what} {one.hint}")


# -- rows -----------------------------------------------------------------------------------------


def show_rows(frame: DataFrame, query: str, limit: int, as_json: bool) -> None:
    """At most `limit` rows of a view, and whether there are more."""
    # Spark's own JSON: timestamps in the session's zone, UTC, and nothing that Python would have to guess.
    as_text = "to_json(struct(*), map('ignoreNullFields', 'false')) AS row"
    found = [json.loads(row["row"]) for row in frame.limit(limit + 1).selectExpr(as_text).collect()]
    more, rows = len(found) > limit, found[:limit]
    if as_json:
        print_json({"query": query, "columns": frame.columns, "rows": rows, "more": more})
        return
    texts = [["" if row[name] is None else str(row[name]) for name in frame.columns] for row in rows]
    _print_rows(frame.columns, texts)
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    print_text(count + ("; there are more (--limit N, or --out FILE for all)" if more else ""))


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """As a table, or a column a line where that is too wide for the terminal: cut-off values are of no use."""
    grid = Table(*columns)
    for row in rows:
        grid.add_row(*map(escape, row))
    if Measurement.get(OUT, OUT.options.update(max_width=_ANY_WIDTH), grid).maximum <= OUT.width:
        OUT.print(grid)
        return
    for number, row in enumerate(rows, 1):
        print_text(f"row {number}")
        print_facts({f"  {name}": value for name, value in zip(columns, row, strict=True)})


def show_written(query: str, out: Path, rows: int, as_json: bool) -> None:
    if as_json:
        print_json({"query": query, "out": str(out), "rows": rows})
    else:
        print_text(f"{rows:,} rows of the {query} view in {out}")


def print_facts(facts: Mapping[str, str]) -> None:
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        print_text(f"{name:<{width}}  {value}")
