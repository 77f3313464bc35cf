"""Metadata of the assets: numbers, tables and the event-time picture. Reads, never writes, the table."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.dates as mdates
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dagster import MetadataValue, TableColumn, TableRecord, TableSchema
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image

from hudi_assets.engine import AUTO, duration, iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hudi_assets.engine import (
        ArchiveResult,
        CleanResult,
        CommitResult,
        CompactionResult,
        CostPoint,
        Freshness,
        HudiTable,
        LogBar,
        Operation,
        OperationResult,
        Plan,
        Stats,
    )

MAX_ROWS = 20
_COMPACTED, _REMAINING, _THRESHOLD = "#2f7ebc", "#f2a33a", "#b3202a"
_MAX_BARS = 600
_DAY_MS = 86_400_000

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
    files = hudi.read_optimized_files()
    title = f"{hudi.config.name}: compaction {result.instant}"
    return {
        "picture": picture_metadata(hudi.log_bars(plan), plan.claims, title),
        **stats_metadata(stats, hudi.now_ms()),
        "dagster/row_count": count_rows(files),
        **schema_metadata(hudi),
        "instant": result.instant,
        **_threshold_metadata(plan),
        "logs_compacted": result.logs_compacted,
        "logs_remaining": result.logs_remaining,
        "rows_written": result.rows,
        "seconds": round(result.seconds, 3),
        "operations_count": len(result.operations),
        "operations": executed_operations(result.operations),
    }


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


def cost_picture(curve: Sequence[CostPoint]) -> bytes:
    """Bytes to rewrite over the threshold as steps, and the freshness that each step reaches, as PNG."""
    figure = Figure(figsize=(9.5, 3.2), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    days = [_days(point.threshold) for point in curve]
    megabytes = [point.bytes_to_rewrite / 1e6 for point in curve]
    axes.step(days, megabytes, where="post", color=_COMPACTED, linewidth=1.6, label="threshold")
    fresh = [(_days(p.freshness), p.bytes_to_rewrite / 1e6) for p in curve if p.freshness is not None]
    axes.plot([x for x, _ in fresh], [y for _, y in fresh], "o", color=_REMAINING, markersize=4, label="freshness then")
    axes.set_ylabel("MB to rewrite")
    axes.set_ylim(bottom=0)
    _time_axis(axes)
    axes.legend(fontsize=8, frameon=False)
    return _png(figure)


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
        **latency_metadata(hudi),
        "published_properties": MetadataValue.md(f"| property | value |\n|---|---|\n{rows}"),
    }


def count_rows(files: Sequence[str]) -> int:
    """Rows of the read-optimized view, from the Parquet footers."""
    return sum(pq.read_metadata(file.removeprefix("file://")).num_rows for file in files)


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


def event_time_picture(bars: Sequence[LogBar], threshold: int | None, title: str) -> bytes:
    """Every log file as a bar from its smallest to its largest event time, as PNG.

    Grouped by partition, in order of event time; compacted and remaining ones in two colours, the threshold
    as a line. Files without a known range are counted in the legend. The newest 600 are drawn.
    """
    drawn = [bar for bar in bars if bar.min_event_time is not None and bar.max_event_time is not None]
    drawn.sort(key=lambda bar: (bar.partition, bar.min_event_time, bar.max_event_time))
    if len(drawn) > _MAX_BARS:
        newest = sorted(drawn, key=lambda bar: bar.max_event_time or 0)[-_MAX_BARS:]
        drawn = [bar for bar in drawn if bar in set(newest)]
    height = min(9.0, 1.6 + 0.11 * len(drawn))
    figure = Figure(figsize=(9.5, max(2.6, height)), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    _draw_bars(axes, drawn)
    if threshold is not None:
        axes.axvline(_days(threshold), color=_THRESHOLD, linewidth=1.6)
    _label(axes, drawn, threshold, title, unknown=len(bars) - len(drawn))
    return _png(figure)


def _draw_bars(axes: Axes, bars: Sequence[LogBar]) -> None:
    starts = [_days(bar.min_event_time or 0) for bar in bars]
    # A file with one event time still shows: at least a three-hundredth of the picture.
    ends = [_days(bar.max_event_time or 0) for bar in bars]
    least = max((max(ends) - min(starts)) / 300, 1 / 86_400)
    widths = [max(end - start, least) for start, end in zip(starts, ends, strict=True)]
    colours = [_COMPACTED if bar.compacted else _REMAINING for bar in bars]
    axes.barh(range(len(bars)), widths, left=starts, height=0.75, color=colours)
    axes.set_ylim(len(bars) - 0.4, -0.6)


def _label(axes: Axes, bars: Sequence[LogBar], threshold: int | None, title: str, *, unknown: int) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    _time_axis(axes)
    _mark_partitions(axes, bars)
    compacted = sum(bar.compacted for bar in bars)
    entries = [
        Patch(color=_COMPACTED, label=f"compacted ({compacted} log files)"),
        Patch(color=_REMAINING, label=f"remaining ({len(bars) - compacted} log files)"),
    ]
    if threshold is not None:
        entries.append(Patch(color=_THRESHOLD, label=f"threshold {iso(threshold)}"))
    if unknown:
        entries.append(Patch(color="none", label=f"{unknown} not drawn"))
    axes.figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), fontsize=8, frameon=False)


def _time_axis(axes: Axes) -> None:
    axes.set_xlabel("event time (UTC)")
    axes.xaxis_date()
    locator = mdates.AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _mark_partitions(axes: Axes, bars: Sequence[LogBar]) -> None:
    """One tick per partition in the middle of its bars, and a line between two partitions."""
    centres, names = [], []
    first = 0
    for i in range(1, len(bars) + 1):
        if i < len(bars) and bars[i].partition == bars[first].partition:
            continue
        centres.append((first + i - 1) / 2)
        names.append(bars[first].partition or "(not partitioned)")
        if i < len(bars):
            axes.axhline(i - 0.5, color="#888888", linewidth=0.6)
        first = i
    axes.set_yticks(centres, names, fontsize=8)
    axes.tick_params(axis="y", length=0)


def _png(figure: Figure) -> bytes:
    """As a picture of 64 colours: a third of the bytes, and every materialization stores one."""
    drawn = FigureCanvasAgg(figure)
    drawn.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(drawn.buffer_rgba())  # type: ignore[no-untyped-call]
    image = Image.fromarray(pixels[..., :3])
    out = io.BytesIO()
    image.quantize(64).save(out, "PNG", optimize=True)
    return out.getvalue()


def _days(ms: int) -> float:
    """Matplotlib's dates: days since 1970 UTC."""
    return ms / _DAY_MS
