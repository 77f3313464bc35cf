"""Executing a published plan by Apache Hudi's own Spark bundle (`hudi_assets.executor=hudi`).

The session is the caller's: its class path has the bundle, its SQL extensions Hudi's (`session_settings`). The plan is
executed by Hudi's procedure run_compaction, which keeps markers, metadata table and commit itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hudi_assets.engine.errors import Conflict, EnvironmentProblem, InvalidInput, UnsupportedTable
from hudi_assets.engine.model import Action, CompactionResult, OperationResult, Plan
from hudi_assets.engine.spark.capabilities import check_classic
from hudi_assets.engine.spark.interface import Frame, Session, spark_of
from hudi_assets.engine.spark.java_classes import jvm_offset_ms
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import WriteStat
from hudi_assets.engine.timeline.compaction_plan import RESIDUE
from hudi_assets.engine.timeline.zone import offset_text, zone_of
from hudi_assets.engine.transaction.late_log_files import refuse_stragglers
from hudi_assets.engine.transaction.lock import EXECUTE, table_lock
from hudi_assets.engine.transaction.open_table import OpenTable
from hudi_assets.engine.transaction.transaction import transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION: Final = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
_CLASS: Final = "org.apache.spark.sql.hudi.command.procedures.RunCompactionProcedure"
_LOCK_WAIT_S = 30.0
_METADATA = "hoodie.table.metadata.partitions"
# What the caller says about writing holds for Hudi's execution too; the rest is the table's own.
_PASSED: Final = ("hoodie.write.", "hoodie.client.", "hoodie.metadata.", "hoodie.memory.", "hoodie.parquet.")
# A compaction is a compaction: cleaning and archiving are the writers' or ours, each by its own settings.
_NATIVELY: Final = "Execute the plan natively (hudi_assets.executor=native)."
_FIXED: Final = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def session_settings(bundle: str) -> dict[str, str]:
    """Settings of Spark's for a session that runs Hudi's procedures, so that Hudi can execute plans.

    Args:
        bundle: Path of Hudi's Spark bundle, a jar for this Spark.

    Returns:
        Key → value, for the builder of a session.

    Raises:
        EnvironmentProblem: The jar is not there.
    """
    if not Path(bundle).is_file():
        raise EnvironmentProblem(
            "Apache Hudi's Spark bundle is not there.",
            where=bundle,
            hint="Give the path of hudi-spark3.5-bundle_2.12-1.2.0.jar (PySpark 3.5), or one that fits your Spark.",
        )
    return {
        "spark.jars": bundle,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": EXTENSION,
        # Else Hudi, to estimate sizes, starts a second Java that attaches to this one, and prints how it failed.
        "spark.driver.extraJavaOptions": "-Djol.skipHotspotSAAttach=true -Djdk.attach.allowAttachSelf=true",
    }


def check_hudi_executes(config: TableConfig, layout: Layout, plan: Plan | None, where: str) -> None:
    """Raise `UnsupportedTable` where Hudi's execution would not give what the plan says."""
    carries = plan is not None and any(op.carried_over for op in plan.operations)
    if not layout.hudi_executes_plans and (carries or config.merging.not_merged is None):
        raise UnsupportedTable(
            f"Apache Hudi does not execute this project's plans on table version {config.table_version}.",
            where=where,
            hint="Leave hudi_assets.executor at native; it is for versions 8 and 9, and for tables of version 6 whose "
            "records this project does not merge by their settings.",
        )
    if config.merging.exact_split or (plan is not None and RESIDUE in plan.extra_metadata):
        raise UnsupportedTable(
            "The plan leaves a residue log, which only this project's own execution writes.",
            where=where,
            hint="Execute it natively, or switch hudi_assets.exact.split off.",
        )


@dataclass(frozen=True)
class HudiExecutor:
    """Has Apache Hudi execute the compactions of one table."""

    table: OpenTable

    def execute(self, session: Session[Frame], instant: str) -> CompactionResult:
        """Execute the plan of `instant`. Raises `EnvironmentProblem` for a session without Hudi."""
        started = time.monotonic()
        where = f"{self.table.path} {instant}"
        self.table.check_writable()
        check_hudi_executes(self.table.config, self.table.layout, None, where)
        spark = spark_of(session)
        check_session(spark)
        check_jvm_zone(spark, self.table.config, self.table.now_ms(), where)
        action = f"has Apache Hudi execute compaction {instant}"
        storage, config = self.table.storage, self.table.config
        with table_lock(storage, EXECUTE, config=config, wait_s=_LOCK_WAIT_S, action=action):
            # Not between a planner's publishing and its second look, which may withdraw the plan.
            with transaction(self.table, action, recovers=False) as tx:
                state = tx.read()
                plan = _pending(state, instant, where)
                check_hudi_executes(self.table.config, self.table.layout, plan, where)
                refuse_stragglers(state, plan)
            self._run(spark, instant)
            return self._result(plan, time.monotonic() - started)

    def _run(self, spark: SparkSession, instant: str) -> None:
        options = ",".join(f"{key}={value}" for key, value in hudi_options(self.table.config).items())
        path = self.table.path
        for text in (path, options):
            if "'" in text or "\\" in text:
                raise InvalidInput(
                    f"{text!r} cannot be given to Hudi's procedure: it has a quote or backslash.",
                    where=path,
                    hint=_NATIVELY,
                )
        spark.sql(
            f"call run_compaction(op => 'execute', path => '{path}', timestamp => {instant}, options => '{options}')"
        ).collect()

    def _result(self, plan: Plan, seconds: float) -> CompactionResult:
        state = self.table.read()
        done = next((i for i in state.timeline.completed(Action.COMMIT) if i.timestamp == plan.instant), None)
        if done is None:
            raise Conflict(
                "Apache Hudi has not completed the compaction.",
                where=f"{self.table.path} {plan.instant}",
                hint="Its own log says why. The plan is still pending: execute it again.",
            )
        stats = {(stat.partition, stat.file_id): stat for stat in state.commit(done).stats}
        results = tuple(
            _operation_result(state, plan, op.partition, op.file_id, len(op.log_files), stats) for op in plan.operations
        )
        return CompactionResult(plan.instant, plan.claims, results, seconds)


def check_session(session: SparkSession) -> None:
    """Raise `EnvironmentProblem` unless it is a classic session whose class path and SQL extensions are Hudi's."""
    hint = (
        "Start Spark with the bundle: --hudi-bundle on the command line, HUDI_BUNDLE in the environment of Dagster; or "
        f"give your own session spark.jars and spark.sql.extensions={EXTENSION}."
    )
    check_classic(session)
    jvm = getattr(session, "_jvm", None)
    loader = None if jvm is None else jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        if loader is None:
            raise LookupError(_CLASS)
        loader.loadClass(_CLASS)
    except Exception as error:  # py4j's own kinds, and Java's inside them
        raise EnvironmentProblem(
            "This Spark session has no Apache Hudi: its Spark bundle is not on the class path.", hint=hint
        ) from error
    if EXTENSION not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise EnvironmentProblem("This Spark session does not know Apache Hudi's procedures.", hint=hint)


def check_jvm_zone(session: SparkSession, config: TableConfig, now_ms: int, where: str) -> None:
    """Raise `InvalidInput` where Hudi, in the session's JVM, would complete in another zone than the table's."""
    if config.states_utc:
        return
    zone = zone_of(config.timezone)
    offset_ms = jvm_offset_ms(session, now_ms)
    if offset_ms != zone.offset_ms(now_ms):
        raise InvalidInput(
            f"The table's instants are in {zone.described(now_ms)}; the Spark session's JVM, in which Hudi would "
            f"complete the compaction, is at {offset_text(offset_ms)}.",
            where=where,
            hint=f"Start Spark with TZ={zone.name}, or with -Duser.timezone={zone.name} in "
            "spark.driver.extraJavaOptions.",
        )


def hudi_options(config: TableConfig) -> Mapping[str, str]:
    """Hudi's writer settings for the execution: the caller's, and the metadata table on exactly where there is one."""
    passed = {key: value for key, value in config.properties.items() if key.startswith(_PASSED)}
    passed["hoodie.metadata.enable"] = str(bool(config.properties.get(_METADATA))).lower()
    # Else a procedure of a newer release makes a newer table of it (tried: 1.2.0 a version 8 one).
    passed |= {"hoodie.write.table.version": str(config.table_version), "hoodie.write.auto.upgrade": "false"}
    for key, value in passed.items():
        if "," in value or "=" in value:
            raise InvalidInput(
                f"{key}={value} cannot be given to Hudi's procedure: it has a comma or an equals sign.", hint=_NATIVELY
            )
    return {**passed, **_FIXED}


def _pending(state: TableState, instant: str, where: str) -> Plan:
    if any(i.timestamp == instant for i in state.timeline.completed(Action.COMMIT)):
        raise InvalidInput("This compaction is completed already.", where=where, hint="There is nothing left to do.")
    plan = next((p for p in state.executable_plans if p.instant == instant), None)
    if plan is None:
        pending = ", ".join(p.instant for p in state.executable_plans) or "none"
        raise InvalidInput("No compaction is pending at this instant.", where=where, hint=f"Pending: {pending}.")
    return plan


def _operation_result(
    state: TableState,
    plan: Plan,
    partition: str,
    file_id: str,
    logs: int,
    stats: Mapping[tuple[str, str], WriteStat],
) -> OperationResult:
    stat = stats.get((partition, file_id))
    slices = state.view.groups.get((partition, file_id), ())
    remaining = sum(len(one.log_files) for one in slices if one.base_instant == plan.instant)
    return OperationResult(
        partition=partition,
        file_id=file_id,
        base_file=stat.path if stat else "",
        rows=stat.num_writes if stat else 0,
        logs_compacted=logs,
        logs_remaining=remaining,
        log_records=stat.log_records if stat else 0,
        bytes_written=stat.size if stat else 0,
        corrupt_blocks=stat.corrupt_blocks if stat else 0,
    )
