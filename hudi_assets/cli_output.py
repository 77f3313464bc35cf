"""What the command line prints: each answer as lines for people, or as one JSON object for programs.

Times are ISO-8601 UTC; `…_ms` beside one is the same in epoch milliseconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from hudi_assets.engine import CompactionResult, Freshness, HudiAssetsError, Plan, Stats
from hudi_assets.engine.event_time import iso

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_ROWS = 20
_SHOWN_OPERATIONS = 20
OUT = Console(highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    print(json.dumps(value, indent=2))


def print_text(text: str) -> None:
    OUT.print(text, markup=False, soft_wrap=True)


def show_nothing_to_do(reason: str, as_json: bool) -> None:
    if as_json:
        print_json({"nothing_to_do": reason})
    else:
        print_text(f"Nothing to do: {reason.rstrip('.')}.")


def show_error(error: HudiAssetsError, as_json: bool) -> None:
    """To stderr: what, where and the hint; as JSON also the error's kind."""
    if as_json:
        fields = {"error": type(error).__name__, "what": error.what, "where": error.where, "hint": error.hint}
        print(json.dumps(fields), file=sys.stderr)
        return
    lines = [f"Error: {error.what}"]
    lines += [f"{label}: {text}" for label, text in (("Where", error.where), ("Hint", error.hint)) if text]
    print("\n".join(lines), file=sys.stderr)


# -- status and freshness -------------------------------------------------------------------------


def show_status(path: str, stats: Stats, as_json: bool) -> None:
    if as_json:
        print_json(_status_json(stats))
        return
    base_files = f"{stats.base_files} in {stats.file_groups} file groups, {_size(stats.base_bytes)}"
    remaining = (
        f"{stats.remaining_log_files} in {stats.remaining_file_slices} file slices, {_size(stats.remaining_bytes)}"
    )
    _print_facts(
        {
            "table": f"{path} (version {stats.table_version})",
            **_freshness_facts(stats.freshness),
            "base files": base_files,
            "remaining log files": remaining,
            "pending compactions": ", ".join(stats.pending) or "none",
            "last compaction": stats.last_compaction or "none",
            "last commit": stats.last_commit or "none",
            "inflight writes": ", ".join(stats.inflight_writes) or "none",
        }
    )


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
    }


def show_freshness(promise: Freshness, as_json: bool) -> None:
    if as_json:
        print_json(_freshness_json(promise))
    else:
        _print_facts(_freshness_facts(promise))


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
    }


def _freshness_facts(promise: Freshness) -> dict[str, str]:
    since = f" (compaction {promise.instant})" if promise.instant else ""
    return {
        "freshness": iso(promise.freshness) or f"none: {promise.reason}",
        "watermark": iso(promise.watermark) or "none",
        "threshold": (iso(promise.threshold) or "none") + since,
        "oldest remaining event": iso(promise.min_event_time) or "none",
        "computed at": iso(promise.computed_at) or "",
    }


# -- plans and compactions ------------------------------------------------------------------------


def show_plan(plan: Plan, happened: str, as_json: bool, *, dry_run: bool) -> None:
    """`happened` completes the sentence "Compaction 2013… …"."""
    if as_json:
        print_json(_plan_json(plan, dry_run=dry_run))
        return
    logs = sum(len(op.log_files) for op in plan.operations)
    kept = sum(len(op.carried_over) for op in plan.operations)
    print_text(
        f"Compaction {plan.instant} {happened}: event times up to {iso(plan.threshold)}, "
        f"{logs} log files in {len(plan.operations)} file groups, {kept} log files remain."
    )
    grid = Table("partition", "file group", "log files", "remain")
    for op in plan.operations[:_SHOWN_OPERATIONS]:
        grid.add_row(op.partition, op.file_id, str(len(op.log_files)), str(len(op.carried_over)))
    OUT.print(grid, markup=False)
    if len(plan.operations) > _SHOWN_OPERATIONS:
        print_text(f"… and {len(plan.operations) - _SHOWN_OPERATIONS} more (--json shows all)")


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
        "threshold": iso(plan.threshold),
        "strategy": plan.strategy,
        "dry_run": dry_run,
        "operations": operations,
    }


def show_result(result: CompactionResult, promise: Freshness, as_json: bool) -> None:
    if as_json:
        numbers = {
            "instant": result.instant,
            "threshold": iso(result.threshold),
            "file_groups": len(result.operations),
            "logs_compacted": result.logs_compacted,
            "logs_remaining": result.logs_remaining,
            "rows": result.rows,
            "seconds": round(result.seconds, 3),
            "freshness": iso(promise.freshness),
        }
        print_json(numbers)
        return
    print_text(
        f"Compaction {result.instant} done in {result.seconds:.1f} s: {result.logs_compacted} log files "
        f"compacted into {len(result.operations)} base files with {result.rows:,} rows, "
        f"{result.logs_remaining} log files remain."
    )
    _print_facts(_freshness_facts(promise))


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
    grid = Table(*frame.columns)
    for row in rows:
        grid.add_row(*("" if row[name] is None else str(row[name]) for name in frame.columns))
    OUT.print(grid, markup=False)
    print_text(f"{len(rows)} rows{'; there are more (--limit N, or --out FILE for all)' if more else ''}")


def show_written(query: str, out: Path, rows: int, as_json: bool) -> None:
    if as_json:
        print_json({"query": query, "out": str(out), "rows": rows})
    else:
        print_text(f"{rows:,} rows of the {query} view in {out}")


def _print_facts(facts: Mapping[str, str]) -> None:
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        print_text(f"{name:<{width}}  {value}")


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            break
    return f"{size:.1f} {unit}"
