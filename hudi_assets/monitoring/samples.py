"""What was seen of tables as metrics for Prometheus: names in base units, with a help text each.

What is not known has no sample. A table whose look failed has `hudi_assets_up` 0 and no number: none stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from hudi_assets.engine import DayBill, PastCompaction, TableMetrics
from hudi_assets.monitoring.runs import RunsSeen
from hudi_assets.monitoring.watch import LastLook, Watch

LABELS = ("table", "path")


@dataclass(frozen=True, slots=True)
class Gauge:
    """`value`: of a table's numbers; None where there is no sample."""

    name: str
    help: str
    value: Callable[[TableMetrics], float | None]


def _of_last(value: Callable[[PastCompaction], float | None]) -> Callable[[TableMetrics], float | None]:
    return lambda seen: None if seen.last_compaction is None else value(seen.last_compaction)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _lag(seen: TableMetrics) -> float | None:
    promise = seen.stats.freshness
    return None if promise.freshness is None else (promise.computed_at - promise.freshness) / 1000


def _pending_age(seen: TableMetrics) -> float | None:
    return None if seen.pending_since_ms is None else max(0, seen.read_at_ms - seen.pending_since_ms) / 1000


GAUGES: tuple[Gauge, ...] = (
    Gauge(
        "hudi_assets_freshness_known",
        "1 if a freshness can be promised, 0 if not.",
        lambda seen: float(seen.stats.freshness.freshness is not None),
    ),
    Gauge(
        "hudi_assets_freshness_timestamp_seconds",
        "Event time up to which the read-optimized view holds every ingested record.",
        lambda seen: _seconds(seen.stats.freshness.freshness),
    ),
    Gauge("hudi_assets_freshness_lag_seconds", "How far the freshness is behind the table's clock.", _lag),
    Gauge(
        "hudi_assets_min_event_timestamp_seconds",
        "The smallest event time in the log files that are not compacted.",
        lambda seen: _seconds(seen.stats.min_event_time),
    ),
    Gauge(
        "hudi_assets_threshold_timestamp_seconds",
        "Event time up to which the last event-time compaction compacted.",
        lambda seen: _seconds(seen.stats.freshness.threshold),
    ),
    Gauge(
        "hudi_assets_remaining_log_files",
        "Log files that are not compacted.",
        lambda seen: seen.stats.remaining_log_files,
    ),
    Gauge(
        "hudi_assets_remaining_log_bytes",
        "Bytes of the log files that are not compacted.",
        lambda seen: seen.stats.remaining_bytes,
    ),
    Gauge(
        "hudi_assets_remaining_file_slices",
        "File slices with log files that are not compacted.",
        lambda seen: seen.stats.remaining_file_slices,
    ),
    Gauge("hudi_assets_base_files", "Base files of the read-optimized view.", lambda seen: seen.stats.base_files),
    Gauge(
        "hudi_assets_base_bytes", "Bytes of the base files of the read-optimized view.", lambda s: s.stats.base_bytes
    ),
    Gauge(
        "hudi_assets_pending_compactions",
        "Compaction plans that are published and not executed.",
        lambda seen: len(seen.stats.pending),
    ),
    Gauge(
        "hudi_assets_pending_compaction_age_seconds",
        "How long ago the oldest pending compaction plan was published. No sample without such a plan.",
        _pending_age,
    ),
    Gauge(
        "hudi_assets_inflight_writes",
        "Writes that were begun and are not completed. The oldest of them holds the freshness back.",
        lambda seen: len(seen.stats.inflight_writes),
    ),
    Gauge(
        "hudi_assets_last_compaction_timestamp_seconds",
        "When the last compaction was completed.",
        _of_last(lambda last: last.completed_ms / 1000),
    ),
    Gauge(
        "hudi_assets_last_compaction_duration_seconds",
        "How long the last compaction took.",
        _of_last(lambda last: _seconds(last.duration_ms)),
    ),
    Gauge(
        "hudi_assets_last_compaction_read_bytes",
        "Bytes of the base files and log files that the last compaction read.",
        _of_last(lambda last: last.bytes_read),
    ),
    Gauge(
        "hudi_assets_last_compaction_written_bytes",
        "Bytes of the base files that the last compaction wrote.",
        _of_last(lambda last: last.bytes_written),
    ),
    Gauge(
        "hudi_assets_last_compaction_log_files",
        "Log files that the last compaction merged.",
        _of_last(lambda last: last.log_files),
    ),
)
# Of each of the last days that the active timeline knows: label `day`.
_DAYS: Final = 7
_OF_DAYS: tuple[tuple[str, str, Callable[[DayBill], float]], ...] = (
    ("hudi_assets_day_compactions", "Compactions that were completed on a day (UTC).", lambda day: day.compactions),
    ("hudi_assets_day_read_bytes", "Bytes that the compactions of a day read.", lambda day: day.bytes_read),
    ("hudi_assets_day_written_bytes", "Bytes that the compactions of a day wrote.", lambda day: day.bytes_written),
    (
        "hudi_assets_day_compacting_seconds",
        "How long the compactions of a day took together.",
        lambda day: day.duration_ms / 1000,
    ),
    (
        "hudi_assets_day_freshness_gained_seconds",
        "By how much the compactions of a day moved the freshness on, in event time.",
        lambda day: day.gained_ms / 1000,
    ),
)
# Of every look, also of one that failed.
_OF_LOOKS: tuple[tuple[str, str, Callable[[LastLook], float | None]], ...] = (
    ("hudi_assets_up", "1 if the last look at the table succeeded, 0 if not.", lambda s: float(s.metrics is not None)),
    ("hudi_assets_look_duration_seconds", "How long the last look at the table took.", lambda s: s.seconds),
    (
        "hudi_assets_look_timestamp_seconds",
        "When the last look at the table that succeeded was done.",
        lambda s: s.succeeded_at,
    ),
)
# Of Dagster's runs of the table, where `--dagster` is given.
_OF_RUNS: tuple[tuple[str, str, Callable[[RunsSeen], float | None]], ...] = (
    (
        "hudi_assets_failed_runs_in_a_row",
        "Runs of the table that failed or were cancelled since the last that succeeded, counted to 25. "
        "Nothing where Dagster knows no runs of the table.",
        lambda runs: runs.failed_in_a_row,
    ),
    (
        "hudi_assets_last_failed_run_timestamp_seconds",
        "When the last run of the table ended that failed or was cancelled.",
        lambda runs: runs.failed_at,
    ),
    (
        "hudi_assets_last_succeeded_run_timestamp_seconds",
        "When the last run of the table ended that succeeded.",
        lambda runs: runs.succeeded_at,
    ),
)
_DAGSTER = ("hudi_assets_dagster_up", "1 if Dagster told of the table's runs, 0 if it was asked and did not.")
_SLO = ("hudi_assets_freshness_slo_seconds", "How far the freshness may be behind the table's clock, as stated.")
_FAILURES = ("hudi_assets_look_failures", "Looks at the table that failed.")

NAMES = frozenset(
    {gauge.name for gauge in GAUGES}
    | {name for name, _, _ in (*_OF_DAYS, *_OF_LOOKS, *_OF_RUNS)}
    | {_SLO[0], _DAGSTER[0], f"{_FAILURES[0]}_total"}
)


class Tables(Collector):
    """What prometheus_client asks for each time that it is asked itself."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        seen = self._watch.seen()
        for name, words, of_look in _OF_LOOKS:
            yield _family(name, words, [(one, of_look(one)) for one in seen])
        failures = CounterMetricFamily(*_FAILURES, labels=LABELS)
        for one in seen:
            failures.add_metric(_labels(one), one.failures)
        yield failures
        if self._watch.asks_dagster:
            runs = [(one, self._watch.runs_of(one)) for one in seen]
            yield _family(*_DAGSTER, [(one, float(told is not None)) for one, told in runs])
            for name, words, of_runs in _OF_RUNS:
                yield _family(name, words, [(one, of_runs(told)) for one, told in runs if told is not None])
        known = [(one, one.metrics) for one in seen if one.metrics is not None]
        yield _family(*_SLO, [(one, _seconds(one.table.slo_ms)) for one, _ in known])
        for gauge in GAUGES:
            yield _family(gauge.name, gauge.help, [(one, gauge.value(metrics)) for one, metrics in known])
        for name, words, of_day in _OF_DAYS:
            family = GaugeMetricFamily(name, words, labels=(*LABELS, "day"))
            for one, metrics in known:
                for day in metrics.days[:_DAYS]:
                    family.add_metric([*_labels(one), day.day], of_day(day))
            yield family


def registry_of(watch: Watch) -> CollectorRegistry:
    """Of these tables alone, without what prometheus_client tells of its own process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Tables(watch))
    return registry


def _family(name: str, words: str, values: list[tuple[LastLook, float | None]]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=LABELS)
    for one, value in values:
        if value is not None:
            family.add_metric(_labels(one), value)
    return family


def _labels(one: LastLook) -> list[str]:
    return [one.name, one.table.path]
