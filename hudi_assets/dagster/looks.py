"""What the sensor reports of every look at a table: without a run and without Spark.

An observation of the asset `freshness` (of `mor_table` too, where others write it), and evaluations of the checks that
cost no more than the look. At once where something changed that calls for a reader; else at a pace, because the event
log keeps every one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from json import dumps, loads
from typing import TYPE_CHECKING, Final
from zlib import crc32

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetObservation,
)

from hudi_assets.dagster import report
from hudi_assets.dagster.assets import HOUR_MS, TableAssets
from hudi_assets.dagster.checks import (
    FRESHNESS_WITHIN_SLO,
    NO_LATE_RECORDS,
    NO_PRE_THRESHOLD_LOGS,
    check_key,
    pre_threshold_result,
    slo_result,
    unreadable_result,
)
from hudi_assets.dagster.known import Known, RunlessEvent
from hudi_assets.dagster.told import latest_metadata, publish_ms
from hudi_assets.engine import Freshness, HudiAssetsError, Look, NoPlan, PublishedPartitions, StartNow, WaitUntil, iso

if TYPE_CHECKING:
    from hudi_assets.engine import HudiTable, Stats

# By this tag Dagster tells whether what stands downstream has seen the newest version.
_DATA_VERSION_TAG: Final = "dagster/data_version"


@dataclass(frozen=True, slots=True)
class TickLook:
    """What one tick saw. `look` is None, and `problem` says why, where what is due cannot be told.

    What is published can be compared all the same, so the view's digest is here too. `failure`: what broke the policy
    of the freshness SLO; then nothing is due.
    """

    stats: "Stats"
    now_ms: int
    look: Look | None
    view_digest: str
    partitions: PublishedPartitions | None = None
    problem: HudiAssetsError | None = None
    failure: Exception | None = None

    @property
    def proposal(self) -> StartNow | WaitUntil | None:
        return None if self.look is None else self.look.proposal

    @property
    def freshness(self) -> Freshness:
        return self.stats.freshness

    @property
    def pending(self) -> str | None:
        """The instant of the plan that waits for its execution."""
        return next(iter(self.stats.pending), None)


def see(hudi: "HudiTable", table: TableAssets, known: Known) -> TickLook:
    """One look at the table; its numbers alone where nothing can be planned. Raises what keeps even those away.

    What breaks the policy of the SLO keeps nobody from seeing how the table stands.
    """
    failure = None
    try:
        look, failure = _look(hudi, table, known)
    except HudiAssetsError as problem:
        stats = hudi.stats()
        return TickLook(
            stats, stats.freshness.computed_at, None, hudi.view_digest(), hudi.published_partitions(), problem
        )
    return TickLook(look.stats, look.now_ms, look, look.view_digest, look.partitions, failure=failure)


def _look(hudi: "HudiTable", table: TableAssets, known: Known) -> tuple[Look, Exception | None]:
    """The look, and what broke the policy of the SLO, where it goes by one."""
    if table.slo_terms is None:
        return hudi.look(), None
    try:
        most = max(0, table.slo_terms.slo_ms - (hudi.config.data_latency_ms or 0)) // 2
        measured = publish_ms(latest_metadata(known, table.key("freshness")), most)
        return hudi.look(table.slo_terms, tick_ms=table.look_every_ms, publish_ms=measured), None
    except HudiAssetsError:
        raise
    except Exception as failure:
        why = f"the policy of the freshness SLO failed: {type(failure).__name__}: {failure}"
        return replace(hudi.look(), due=NoPlan(why)), failure


@dataclass(frozen=True, slots=True)
class Reported:
    """What was reported last, as the sensor's cursor keeps it. Times epoch ms.

    `at` is the system's clock, `clock` the table's: a replayed stream moves its own quickly.
    """

    at: int = 0
    clock: int = 0
    freshness: int | None = None
    state: str = ""
    commit: str | None = None
    commit_at: int = 0

    @classmethod
    def of(cls, cursor: str | None) -> "Reported":
        """Nothing was reported where the cursor is empty or none of ours."""
        try:
            return cls(**loads(cursor or "{}"))
        except (ValueError, TypeError):
            return cls()

    def cursor(self) -> str:
        return dumps(asdict(self))


def observations(
    table: TableAssets, seen: TickLook, last: Reported, wall_ms: int, *, says: Mapping[str, str], before_run: bool
) -> tuple[list[AssetObservation], Reported]:
    """What is to be observed now, and what has been reported then.

    `says`: more for the reader, reported at once where it changes. `before_run`: a run is asked for with this tick; it
    takes the version of `mor_table` that was observed last for the one that it has seen.
    """
    found: list[AssetObservation] = []
    commit, commit_at = last.commit, last.commit_at
    is_new = table.external and seen.stats.last_commit != last.commit
    if is_new and (before_run or is_due(table, last.commit_at, wall_ms, table.report_every_ms)):
        commit, commit_at = seen.stats.last_commit, wall_ms
        found.append(_observed_version(table, seen))
    state = _state(seen, says)
    if not (_is_news(seen, last, state) or _is_time(table, seen, last, wall_ms)):
        return found, Reported(last.at, last.clock, last.freshness, last.state, commit, commit_at)
    metadata = report.look_metadata(seen.stats, seen.now_ms, seen.pending) | dict(says)
    metadata |= report.proposal_metadata(seen.proposal)
    found.append(AssetObservation(table.key("freshness"), metadata=metadata))
    return found, Reported(wall_ms, seen.now_ms, seen.stats.freshness.freshness, state, commit, commit_at)


def _observed_version(table: TableAssets, seen: TickLook) -> AssetObservation:
    version = seen.stats.last_commit or "none"
    return AssetObservation(
        table.key("mor_table"),
        metadata=report.look_metadata(seen.stats, seen.now_ms, seen.pending),
        tags={_DATA_VERSION_TAG: version},
    )


def _state(seen: TickLook, says: Mapping[str, str]) -> str:
    """What a reader is told of at once when it changes. Numbers that move with every commit are not in it."""
    promise = seen.stats.freshness
    problem = str(seen.problem) if seen.problem else None
    return dumps([promise.instant, promise.reason, seen.pending, problem, sorted(says.items())])


def _is_news(seen: TickLook, last: Reported, state: str) -> bool:
    freshness = seen.stats.freshness.freshness
    fell_back = freshness is not None and last.freshness is not None and freshness < last.freshness
    return fell_back or state != last.state


def _is_time(table: TableAssets, seen: TickLook, last: Reported, wall_ms: int) -> bool:
    every_ms = table.report_every_ms
    return is_due(table, last.at, wall_ms, every_ms) or is_due(table, last.clock, seen.now_ms, every_ms)


def is_due(table: TableAssets, then_ms: int, now_ms: int, every_ms: int) -> bool:
    """Whether what was reported then is to be reported again.

    Each of many tables has a beat of its own, by its name: they began together, and not all may be due in one tick.
    """
    if table.shared_key is None:
        return now_ms - then_ms >= every_ms
    phase = crc32(table.name.encode()) % every_ms
    return (now_ms + phase) // every_ms > (then_ms + phase) // every_ms


# ------------------------------------------------------------------------------------------ checks


def results(
    table: TableAssets,
    hudi: "HudiTable",
    seen: TickLook,
    says: Mapping[str, str],
    refused: HudiAssetsError | None = None,
    *,
    held: str | None = None,
    why: str = "",
) -> dict[str, AssetCheckResult]:
    """Check → its result, by this look. `refused`: why the table cannot be compacted until its owner does something.

    `held`, `why`: as for `slo_result`.
    """
    found = {NO_PRE_THRESHOLD_LOGS: pre_threshold_result(hudi, seen.stats)}
    if table.freshness_slo_ms is not None:
        found[FRESHNESS_WITHIN_SLO] = slo_result(
            seen.stats.freshness,
            seen.now_ms,
            table.freshness_slo_ms,
            says,
            refusal=None if refused is None else str(refused),
            held=held,
            why=why,
        )
    return found


def evaluations(
    known: Known,
    table: TableAssets,
    found: Mapping[str, AssetCheckResult],
    wall_ms: int,
    *,
    run_at_work: bool,
) -> list[AssetCheckEvaluation]:
    """Those of the results that the event log does not have yet, or not for long enough.

    None of a look that a run overtook: its checks are newer, and would be hidden.
    """
    if known.was_overtaken(table):
        return []
    events = []
    for name, result in found.items():
        if name == NO_PRE_THRESHOLD_LOGS and run_at_work:
            continue  # the run looks at it itself, and what it finds is final
        key = check_key(table, name)
        record = known.check_record(key)
        event = record.evaluation if record else None
        last = event if isinstance(event, AssetCheckEvaluation) else None
        made_ms = int(record.create_timestamp * 1000) if record and last else None
        if record and last is None:
            last = known.last_evaluation(key)
        if name == NO_LATE_RECORDS and result.passed and (last is None or last.passed):
            continue  # runs say so
        severity = _severity(name, result, last)
        if last is None or made_ms is None or _shows(last) != _shows(result, severity):
            due = True
        else:
            every_ms = max(HOUR_MS, table.report_every_ms) if result.passed else table.report_every_ms
            due = is_due(table, made_ms, wall_ms, every_ms)
        if due:
            events.append(_evaluation(key, result, severity))
    return events


def _shows(
    check: AssetCheckEvaluation | AssetCheckResult, severity: AssetCheckSeverity | None = None
) -> tuple[object, ...]:
    """What is reported at once when it changes. One that passes may say that it will fail."""
    return check.passed, severity or check.severity, check.passed and bool(check.description)


def _severity(name: str, result: AssetCheckResult, last: AssetCheckEvaluation | None) -> AssetCheckSeverity:
    """After a compaction a log file can reach down to its threshold only if it came late: the promise has fallen back.

    What a run called an error stays one until it passes.
    """
    if name != NO_PRE_THRESHOLD_LOGS:
        return result.severity
    if last is not None and not last.passed:
        return last.severity
    return result.severity if result.passed else AssetCheckSeverity.WARN


def _evaluation(key: AssetCheckKey, result: AssetCheckResult, severity: AssetCheckSeverity) -> AssetCheckEvaluation:
    return AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=result.passed,
        severity=severity,
        description=result.description,
        metadata=result.metadata,
        blocking=is_blocking(key.name),
    )


def is_blocking(check: str) -> bool:
    """Whether a run that finds it stops whoever reads the read-optimized view."""
    return check == NO_PRE_THRESHOLD_LOGS


# ------------------------------------------------------------------------------------------ ticks that fail


def report_failure(known: Known, table: TableAssets, problem: Exception, wall_ms: int) -> None:
    """A tick that fails takes no events along: `freshness_within_slo` fails by the instance's own hand."""
    if table.freshness_slo_ms is None:
        return
    found = {FRESHNESS_WITHIN_SLO: unreadable_result(problem)}
    report_now(known, evaluations(known, table, found, wall_ms, run_at_work=False))


# Path of a table → what was reported of it last by a tick that failed: such a tick leaves no cursor.
_refusals: dict[str, Reported] = {}


def report_refusal(
    known: Known,
    table: TableAssets,
    path: str,
    seen: TickLook,
    checks: Iterable[AssetCheckEvaluation],
    wall_ms: int,
    says: Mapping[str, str],
) -> None:
    """What a tick saw that is about to fail because the table is refused: its numbers go on, at the same pace."""
    last = _refusals.get(path, Reported())
    observed, _refusals[path] = observations(table, seen, last, wall_ms, says=says, before_run=False)
    report_now(known, [*observed, *checks])


def report_now(known: Known, events: Iterable[RunlessEvent]) -> None:
    """Report without waiting for the tick's end: it may fail, or take too long, and lose its events."""
    for event in events:
        known.report(event)


def wall_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def in_words(until_ms: int) -> str:
    return iso(until_ms // 1000 * 1000) or ""
