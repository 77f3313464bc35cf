"""Metadata of the assets: numbers, tables and pictures. Reads, never writes, the table."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from hudi_assets.engine import AUTO, StartNow, duration, iso
from hudi_assets.reporting.pictures import cost_picture, event_time_picture

if TYPE_CHECKING:
    from hudi_assets.engine import (
        ArchiveResult,
        Bill,
        CleanResult,
        CommitResult,
        CompactionResult,
        CostPoint,
        Freshness,
        HudiTable,
        LogBar,
        Operation,
        OperationResult,
        PartitionFreshness,
        Plan,
        Stats,
        WaitUntil,
    )

MAX_ROWS = 20

Metadata = dict[str, Any]


def commit_metadata(result: CommitResult, *, delivered: int, already: bool) -> Metadata:
    """A delta commit: what was delivered and what was written of it."""
    return {
        "dagster/row_count": result.rows,
        "rows_delivered": delivered,
        "instant": result.instant or "none: the batch was empty",
        "already_committed": already,
        "log_files": result.log_files,
        "bytes_written": result.bytes_written,
        "late_records": result.late_records,
        "min_event_time": iso(result.min_event_time) or "none",
        "max_event_time": iso(result.max_event_time) or "none",
    }


def schema_metadata(hudi: HudiTable) -> Metadata:
    return {
        "dagster/column_schema": column_schema(hudi.schema()),
        "dagster/table_name": hudi.config.name,
        "path": MetadataValue.path(hudi.path),
    }


def column_schema(schema: pa.Schema) -> TableSchema:
    return TableSchema([TableColumn(field.name, str(field.type)) for field in schema])


def stats_metadata(stats: Stats, now: int) -> Metadata:
    """The table in numbers: what remains to be compacted, what is, and the freshness."""
    return {**remaining_metadata(stats), "base_files": stats.base_files, "base_bytes": stats.base_bytes} | (
        promise_metadata(stats.freshness, now)
    )


def remaining_metadata(stats: Stats) -> Metadata:
    """The RFC's metrics but the threshold: the minimum event time over all log files, and what is to be compacted."""
    lowest = {} if stats.min_event_time is None else {"min_event_time_epoch_seconds": stats.min_event_time / 1000}
    return {
        **lowest,
        "remaining_log_files": stats.remaining_log_files,
        "remaining_bytes": stats.remaining_bytes,
        "remaining_file_slices": stats.remaining_file_slices,
    }


def look_metadata(stats: Stats, now: int, pending: str | None) -> Metadata:
    """What the sensor's tick saw. Dagster plots the numbers over time."""
    return {
        **promise_metadata(stats.freshness, now),
        **remaining_metadata(stats),
        "pending_plan": pending or "none",
        "last_commit": stats.last_commit or "none",
    }


def proposal_metadata(proposal: StartNow | WaitUntil | None) -> Metadata:
    """What the policy of a freshness SLO says; empty where none is asked."""
    if proposal is None:
        return {}
    if isinstance(proposal, StartNow):
        words = f"compact up to {iso(proposal.threshold)}"
    else:
        words = f"wait until {iso(proposal.until_ms)}"
    return {"proposal": words, "proposal_why": proposal.why, "proposal_bytes": proposal.size}


def promise_metadata(promise: Freshness, now: int) -> Metadata:
    """The freshness, how far it lies behind the table's clock, and the compaction that it rests on."""
    found: Metadata = {
        "freshness": iso(promise.freshness) or "none",
        "threshold": iso(promise.threshold) or "none",
        "last_compaction": promise.instant or "none",
        "table_clock": iso(now),
    }
    if promise.bounds:
        found["bounded_by_commits"] = "; ".join(bound.words for bound in promise.bounds)
    if promise.hidden:
        found["rows_in_no_view"] = "; ".join(rows.words for rows in promise.hidden)
    if promise.unit is not None and promise.unit.evidence is not None:
        found["event_time_unit"] = f"{promise.unit.unit}, inferred: {promise.unit.evidence}"
    if promise.freshness is None:
        return found | {"reason": promise.reason or "unknown"}
    return found | {"lag_seconds": (now - promise.freshness) / 1000}


def plan_metadata(hudi: HudiTable, plan: Plan, data_latency: str | None = None) -> Metadata:
    """A plan before its execution: what it takes, what remains, and the picture of both."""
    stats = hudi.stats()
    return {
        "picture": picture_metadata(hudi.log_bars(plan), plan.claims, f"{hudi.config.name}: planned"),
        **stats_metadata(stats, hudi.now_ms()),
        **latency_metadata(hudi, data_latency),
        **_threshold_metadata(plan),
        **_query_time_metadata(plan),
        "instant": plan.instant,
        "strategy": plan.strategy,
        "logs_to_compact": sum(len(operation.log_files) for operation in plan.operations),
        "logs_carried_over": sum(len(operation.carried_over) for operation in plan.operations),
        "operations_count": len(plan.operations),
        "operations": planned_operations(plan.operations),
    }


def compaction_metadata(hudi: HudiTable, plan: Plan, result: CompactionResult) -> Metadata:
    """A completed compaction."""
    stats = hudi.stats()
    title = f"{hudi.config.name}: compaction {result.instant}"
    return {
        "picture": picture_metadata(hudi.log_bars(plan), plan.claims, title),
        **stats_metadata(stats, hudi.now_ms()),
        "dagster/row_count": hudi.read_optimized_rows(),
        **schema_metadata(hudi),
        "instant": result.instant,
        **_threshold_metadata(plan),
        "logs_compacted": result.logs_compacted,
        "logs_remaining": result.logs_remaining,
        "rows_written": result.rows,
        "seconds": round(result.seconds, 3),
        **bill_metadata(result.bill),
        "operations_count": len(result.operations),
        "operations": executed_operations(result.operations),
    }


def bill_metadata(bill: Bill | None) -> Metadata:
    """What a compaction cost and bought: numbers, which Dagster plots. What is not known is not there."""
    if bill is None:
        return {}
    known: Metadata = {
        "bytes_read": bill.bytes_read,
        "bytes_written": bill.bytes_written,
        "freshness_gained_hours": None if bill.gained_ms is None else round(bill.gained_ms / 3_600_000, 3),
        "bytes_per_hour_of_freshness": None if bill.bytes_per_hour is None else round(bill.bytes_per_hour),
    }
    return {name: value for name, value in known.items() if value is not None}


def _threshold_metadata(plan: Plan) -> Metadata:
    """A plan of Hudi's strategies has no threshold."""
    if plan.claims is None:
        return {"threshold": "none"}
    asked = {"threshold_asked_for": iso(plan.asked_for)} if plan.is_first_of_several else {}
    return {"threshold": iso(plan.claims), "threshold_ms": plan.claims, **asked}


def _query_time_metadata(plan: Plan) -> Metadata:
    """How long queries on what the plan replaces have, beside another engine's cleaner; a warning if that is short."""
    time = plan.query_time
    if time is None:
        return {}
    return {"query_minutes": time.minutes, **({"warning": time.warning} if time.warning else {})}


def latency_metadata(hudi: HudiTable, given: str | None = None) -> Metadata:
    """The learned data latency with its evidence, where it is to be learned; else nothing."""
    if given != AUTO and (given is not None or not hudi.config.data_latency_auto):
        return {}
    learned = hudi.observed_latency()
    if learned is None:
        return {"learned_latency": "none yet: no commit says when its records happened"}
    return {
        "learned_latency": f"{duration(learned.latency_ms)}, which {learned.quantile:g} of the records kept to",
        "learned_latency_ms": learned.latency_ms,
        "learned_from": f"{learned.log_files} log files of {learned.commits} commits with {learned.records} records, "
        f"{learned.first_instant} to {learned.last_instant}; {learned.unknown} more without known event times",
        "longest_latency": duration(learned.max_ms),
    }


def cost_metadata(curve: Sequence[CostPoint]) -> Metadata:
    """What a compaction would cost at each possible threshold, as a table and a picture; empty without points."""
    if not curve:
        return {}
    records = [
        TableRecord(
            {
                "threshold": iso(point.threshold) or "",
                "bytes_to_rewrite": point.bytes_to_rewrite,
                "log_files": point.log_files,
                "file_groups": point.file_groups,
                "freshness": iso(point.freshness) or "none",
            }
        )
        for point in curve
    ]
    types = {
        "threshold": "string",
        **dict.fromkeys(("bytes_to_rewrite", "log_files", "file_groups"), "int"),
        "freshness": "string",
    }
    encoded = base64.b64encode(cost_picture(curve)).decode()
    return {
        "cost_curve": _table(records, types),
        "cost_picture": MetadataValue.md(f"![bytes to rewrite by threshold](data:image/png;base64,{encoded})"),
    }


def recovery_metadata(recovered: Sequence[str]) -> Metadata:
    return {"recovered": "\n".join(recovered)} if recovered else {}


def clean_metadata(result: CleanResult) -> Metadata:
    return {
        "clean": result.instant or "none",
        "files_deleted": len(result.deleted),
        "bytes_deleted": result.bytes_deleted,
        "earliest_retained": result.earliest_retained or "none",
    }


def archive_metadata(result: ArchiveResult) -> Metadata:
    return {
        "archive": result.file or "completed what an earlier run had begun",
        "instants_archived": len(result.instants),
    }


def freshness_metadata(hudi: HudiTable, promise: Freshness, properties: Mapping[str, str]) -> Metadata:
    rows = "\n".join(f"| `{key}` | `{value}` |" for key, value in properties.items())
    return {
        **stats_metadata(hudi.stats(), hudi.now_ms()),
        **promise_metadata(promise, hudi.now_ms()),
        **partition_metadata(hudi.partition_freshness()),
        **latency_metadata(hudi),
        "published_properties": MetadataValue.md(f"| property | value |\n|---|---|\n{rows}"),
    }


def partition_metadata(each: Sequence[PartitionFreshness]) -> Metadata:
    """How many partitions wait for a compaction, and the freshness of those that are furthest behind."""
    behind = [one for one in each if one.holds_back]
    counts: Metadata = {"partitions": len(each), "partitions_behind": len(behind)}
    if not behind:
        return counts
    records = [
        TableRecord(
            {
                "partition": one.partition,
                "freshness": iso(one.freshness) or f"none: {one.reason}",
                "remaining_log_files": one.remaining_log_files,
                "remaining_bytes": one.remaining_bytes,
            }
        )
        for one in behind
    ]
    types = {"partition": "string", "freshness": "string", "remaining_log_files": "int", "remaining_bytes": "int"}
    return counts | {"partition_freshness": _table(records, types)}


def planned_operations(operations: Sequence[Operation]) -> Any:
    return _table(
        [
            TableRecord(
                {
                    "partition": operation.partition,
                    "file_id": operation.file_id,
                    "logs": len(operation.log_files),
                    "carried_over": len(operation.carried_over),
                    "base_file": operation.base_file or "none yet",
                }
            )
            for operation in operations
        ],
        {
            "partition": "string",
            "file_id": "string",
            "logs": "int",
            "carried_over": "int",
            "base_file": "string",
        },
    )


def executed_operations(operations: Sequence[OperationResult]) -> Any:
    return _table(
        [
            TableRecord(
                {
                    "partition": operation.partition,
                    "file_id": operation.file_id,
                    "logs_compacted": operation.logs_compacted,
                    "logs_remaining": operation.logs_remaining,
                    "log_records": operation.log_records,
                    "rows": operation.rows,
                    "bytes_written": operation.bytes_written,
                }
            )
            for operation in operations
        ],
        {
            "partition": "string",
            "file_id": "string",
            **dict.fromkeys(("logs_compacted", "logs_remaining", "log_records", "rows", "bytes_written"), "int"),
        },
    )


def _table(records: list[TableRecord], types: Mapping[str, str]) -> Any:
    """At most 20 rows: the event log keeps every materialization's metadata."""
    schema = TableSchema([TableColumn(name, kind) for name, kind in types.items()])
    return MetadataValue.table(records[:MAX_ROWS], schema=schema)


def picture_metadata(bars: Sequence[LogBar], threshold: int | None, title: str) -> Any:
    if not any(bar.min_event_time is not None for bar in bars):
        return MetadataValue.text("no log files with a known event time")
    encoded = base64.b64encode(event_time_picture(bars, threshold, title)).decode()
    return MetadataValue.md(f"![event times of the log files](data:image/png;base64,{encoded})")
