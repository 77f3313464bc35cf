"""Asset checks: what is promised of a table, looked at again.

Each `find_…` function takes what it looks at and returns findings in words, so that a test can show it
failing; the checks below wire them to the assets. A check that fails names at most 20 findings.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetKey,
    MetadataValue,
    asset_check,
)

from hudi_assets.dagster.assets import TableAssets, lasting_findings
from hudi_assets.dagster.report import MAX_ROWS
from hudi_assets.dagster.told import PROMISED, Events, latest_metadata, told_ms
from hudi_assets.engine import (
    CarryOver,
    Finding,
    Freshness,
    LateLog,
    LogBar,
    LogFile,
    Stats,
    Storage,
    duration,
    iso,
    no_threshold_reason,
)

if TYPE_CHECKING:
    from hudi_assets.engine import HudiTable

FRESHNESS_WITHIN_SLO = "freshness_within_slo"
NO_PRE_THRESHOLD_LOGS = "no_pre_threshold_logs"
NO_LATE_RECORDS = "no_late_records"
_MAGIC = b"#HUDI#"
# Kinds of findings that change no answer.
_LEFTOVERS = frozenset({"unfinished", "guard", "orphan", "markers", "unknown_file", "broken_link"})


def find_pre_threshold_logs(bars: Iterable[LogBar], threshold: int) -> list[str]:
    """Remaining log files that may hold an event time at or below the last compaction's threshold."""
    return [
        f"{bar.partition}/{bar.name}: "
        + ("event times unknown" if bar.min_event_time is None else f"begins at {iso(bar.min_event_time)}")
        for bar in bars
        if not bar.compacted and (bar.min_event_time is None or bar.min_event_time <= threshold)
    ]


def find_unresolved(storage: Storage, carried_over: Iterable[CarryOver]) -> list[str]:
    """Carried-over log files that do not open as Hudi log files, or differ in size from what they show."""
    found = []
    for carry in carried_over:
        try:
            size = storage.size(carry.link)
            magic = storage.read_at(carry.link, 0, len(_MAGIC))
        except OSError as error:
            found.append(f"{carry.link}: {error.strerror or error}, shows {carry.target}")
            continue
        if size and magic != _MAGIC:
            found.append(f"{carry.link}: not a Hudi log file, shows {carry.target}")
        # The original may be cleaned by now where the carried-over file is a hard link or a copy.
        elif storage.exists(carry.target) and storage.size(carry.target) != size:
            found.append(f"{carry.link}: {size} bytes, but {carry.target} has {storage.size(carry.target)}")
    return found


def find_at_or_below(event_times: Iterable[tuple[LogFile, pa.ChunkedArray]], freshness: int) -> tuple[list[str], int]:
    """(log files with a record at or below the freshness, records looked at). A null event time counts."""
    found, looked_at = [], 0
    for log, times in event_times:
        looked_at += len(times)
        # A comparison with null is null, and a missing event time could be anything.
        count = pc.sum(pc.fill_null(pc.less_equal(times, freshness), True)).as_py() or 0
        if count:
            found.append(f"{log.path}: {count} of {len(times)} records, smallest {iso(pc.min(times).as_py())}")
    return found, looked_at


def find_beyond_slo(freshness: Freshness, now: int, slo: int) -> list[str]:
    """Why the freshness is not within `slo` ms of the clock."""
    if freshness.freshness is None:
        return [f"no freshness can be stated: {freshness.reason}"]
    behind = now - freshness.freshness
    return [f"{duration(behind)} behind the clock, allowed are {duration(slo)}"] if behind > slo else []


def find_late(logs: Iterable[LateLog]) -> list[str]:
    """Log files with records that came after a freshness at or above them was published."""
    return [
        f"{log.file}: {log.records} late record{'' if log.records == 1 else 's'} of commit {', '.join(log.instants)}, "
        f"the first of {iso(log.min_event_time)}"
        for log in logs
        if log.records
    ]


def describe(findings: Iterable[Finding]) -> tuple[list[str], AssetCheckSeverity]:
    """Findings of `validate` in words, and whether any of them changes what queries answer.

    What a dead process left is a warning: it changes no answer, and is mended by the next run.
    """
    found = list(findings)
    error = any(one.kind not in _LEFTOVERS for one in found)
    words = [f"{one.kind}: {one.path}: {one.what} {one.hint}" for one in found]
    return words, AssetCheckSeverity.ERROR if error else AssetCheckSeverity.WARN


def table_checks(table: TableAssets) -> list[AssetChecksDefinition]:
    """The checks of one table, on `ro_snapshot` and `freshness`."""
    checks = [
        _no_pre_threshold_logs(table),
        _carried_over_logs_resolve(table),
        _files_match_timeline(table),
        _ro_complete(table),
        _no_late_records(table),
    ]
    if table.freshness_slo_ms is not None:
        checks.append(_freshness_within_slo(table, table.freshness_slo_ms))
    return checks


def check_key(table: TableAssets, name: str) -> AssetCheckKey:
    """Of a check that a look evaluates."""
    return AssetCheckKey(table.key("ro_snapshot" if name == NO_PRE_THRESHOLD_LOGS else "freshness"), name)


def look_checks(table: TableAssets) -> list[AssetCheckKey]:
    """Those that a look evaluates."""
    names = [NO_PRE_THRESHOLD_LOGS, NO_LATE_RECORDS]
    if table.freshness_slo_ms is not None:
        names.append(FRESHNESS_WITHIN_SLO)
    return [check_key(table, name) for name in names]


def _no_pre_threshold_logs(table: TableAssets) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("ro_snapshot"),
        name=NO_PRE_THRESHOLD_LOGS,
        blocking=True,
        description="No remaining log file reaches down to the last compaction's threshold.",
        required_resource_keys={table.resource_key},
    )
    def no_pre_threshold_logs(context: AssetCheckExecutionContext) -> AssetCheckResult:
        hudi = table.open(context)
        return pre_threshold_result(hudi, hudi.stats())

    return no_pre_threshold_logs


def pre_threshold_result(hudi: "HudiTable", stats: Stats) -> AssetCheckResult:
    """`no_pre_threshold_logs`, of numbers just read. Looks at single log files only where the smallest is in doubt."""
    threshold = stats.freshness.threshold
    if threshold is None:
        return _result([], {"reason": no_threshold_reason(hudi.config.event_time_field)})
    above = stats.min_event_time is not None and stats.min_event_time > threshold
    bars = () if above or not stats.remaining_log_files else hudi.log_bars()
    return _result(find_pre_threshold_logs(bars, threshold), {"threshold": iso(threshold)})


def _carried_over_logs_resolve(table: TableAssets) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("ro_snapshot"),
        name="carried_over_logs_resolve",
        description="Every carried-over log file opens and is what it stands for.",
        required_resource_keys={table.resource_key},
    )
    def carried_over_logs_resolve(context: AssetCheckExecutionContext) -> AssetCheckResult:
        hudi = table.open(context)
        carried = hudi.carried_over()
        return _result(find_unresolved(hudi.storage, carried), {"carried_over_logs": len(carried)})

    return carried_over_logs_resolve


def _files_match_timeline(table: TableAssets) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("ro_snapshot"),
        name="files_match_timeline",
        blocking=True,
        description=(
            "The files are those that the timeline says: none is missing, short or there twice, and no file of "
            "an instant that is on no timeline hides another. What a dead process left is only a warning."
        ),
        required_resource_keys={table.resource_key},
    )
    def files_match_timeline(context: AssetCheckExecutionContext) -> AssetCheckResult:
        words, severity = describe(lasting_findings(table.open(context)))
        return _result(words, {}, severity)

    return files_match_timeline


def _no_late_records(table: TableAssets) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("freshness"),
        name=NO_LATE_RECORDS,
        description=(
            "No record lies at or below a freshness that was published before it came. Such records are out of the "
            "read-optimized view until the next compaction."
        ),
        required_resource_keys={table.resource_key},
    )
    def no_late_records(context: AssetCheckExecutionContext) -> AssetCheckResult:
        promised = told_ms(latest_metadata(context.instance, table.key("freshness")), PROMISED, old="promised_ms")
        if promised is None:
            return _result([], {"reason": "no freshness was published yet: nothing can be late"})
        return late_result(find_late(table.open(context).late_records(promised)), promised)

    return no_late_records


def late_result(found: Iterable[str], promised: int) -> AssetCheckResult:
    """`no_late_records`, of what was found at or below the highest freshness that was published."""
    return _result(list(found), {"promised": iso(promised)})


def _ro_complete(table: TableAssets) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("freshness"),
        name="ro_complete_below_freshness",
        description=(
            "Reads the event time of every record of every remaining log file: none is at or below the "
            "freshness that was published."
        ),
        required_resource_keys={table.resource_key},
    )
    def ro_complete_below_freshness(context: AssetCheckExecutionContext) -> AssetCheckResult:
        promised = published_freshness(context.instance, table.key("freshness"))
        if promised is None:
            return _result([], {"reason": "no freshness is published: nothing is promised"})
        found, looked_at = find_at_or_below(table.open(context).log_event_times(), promised)
        return _result(found, {"freshness": iso(promised), "records_read": looked_at})

    return ro_complete_below_freshness


def _freshness_within_slo(table: TableAssets, slo: int) -> AssetChecksDefinition:
    @asset_check(
        asset=table.key("freshness"),
        name=FRESHNESS_WITHIN_SLO,
        description=f"The freshness lies at most {duration(slo)} behind the table's clock.",
        required_resource_keys={table.resource_key},
    )
    def freshness_within_slo(context: AssetCheckExecutionContext) -> AssetCheckResult:
        promise = table.open(context).freshness()
        return slo_result(promise, promise.computed_at, slo)

    return freshness_within_slo


def slo_result(
    promise: Freshness,
    now: int,
    slo: int,
    says: Mapping[str, str] | None = None,
    *,
    refusal: str | None = None,
    held: str | None = None,
    why: str = "",
) -> AssetCheckResult:
    """`freshness_within_slo`. `says`: more for the reader.

    `refusal`: why the table can not be compacted at all, which is a finding. `held`: why what is due is not planned:
    told at once, and no finding before the SLO is broken. `why`: what the sensor does, told where it is broken.
    """
    metadata: dict[str, Any] = {"freshness": iso(promise.freshness) or "none", "table_clock": iso(now)}
    if promise.freshness is not None:
        metadata["lag_seconds"] = (now - promise.freshness) / 1000
    found = find_beyond_slo(promise, now, slo)
    words = [] if held is None else [f"no compaction is planned: {held}"]
    if found and why and not words:
        words.append(why)
    found += [] if refusal is None else [f"it cannot be compacted: {refusal}"]
    made = _result(found, metadata | {"slo": duration(slo)} | dict(says or {}))
    return made._replace(description="; ".join(found + words) or None)


def unseen_result(freshness: int, seen_ms: int, now: int, slo: int, problem: Exception) -> AssetCheckResult:
    """`freshness_within_slo` where no look was possible since, and the freshness of then is too old by now."""
    words = f"{duration(now - freshness)} behind the clock, allowed are {duration(slo)}"
    return _result(
        [f"{words}, by the last look of {iso(seen_ms)}; none was possible since: {problem}"],
        {"freshness": iso(freshness), "table_clock": iso(now), "lag_seconds": (now - freshness) / 1000},
    )


def unreadable_result(problem: Exception) -> AssetCheckResult:
    """`freshness_within_slo` of a table that could not be looked at."""
    return _result([f"no freshness can be stated: {problem}"], {})


def published_freshness(instance: Events, key: AssetKey) -> int | None:
    """The freshness (epoch ms) of the asset's last materialization; None when none was promised."""
    return told_ms(latest_metadata(instance, key), "freshness", old="freshness_ms")


def _result(
    findings: list[str],
    metadata: dict[str, Any],
    severity: AssetCheckSeverity = AssetCheckSeverity.ERROR,
) -> AssetCheckResult:
    shown = "\n".join(f"- {finding}" for finding in findings[:MAX_ROWS])
    more = f"\n- and {len(findings) - MAX_ROWS} more" if len(findings) > MAX_ROWS else ""
    details = {"findings": MetadataValue.md(shown + more)} if findings else {}
    return AssetCheckResult(
        passed=not findings,
        severity=severity,
        description=findings[0] if findings else None,
        metadata={**metadata, **details, "findings_count": len(findings)},
    )
