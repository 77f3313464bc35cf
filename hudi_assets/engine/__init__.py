"""Apache Hudi merge-on-read tables with event-time compaction. Imports no Dagster.

`HudiTable` is the way in: create or open one, then write, query, compact, or ask for its freshness. What its methods
give back, the errors that they raise and the keys of the settings stand beside it. Everything else in this package may
change. PySpark is imported when something first needs it.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> from hudi_assets.engine import HudiTable
    >>> schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    >>> path = tempfile.mkdtemp()
    >>> table = HudiTable.create(path, schema, record_key=["id"], ordering_field="at", data_latency="2h")
    >>> table.stats().remaining_log_files
    0
"""

from __future__ import annotations

import warnings
from importlib import import_module
from operator import attrgetter
from typing import Any

from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.actions.compaction.cost import CostPoint
from hudi_assets.engine.actions.compaction.hudi_executor import session_settings
from hudi_assets.engine.actions.compaction.series import CompactionSeries
from hudi_assets.engine.errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    HudiAssetsError,
    InvalidInput,
    OutdatedView,
    UnsupportedTable,
)
from hudi_assets.engine.event_time.freshness import no_threshold_reason
from hudi_assets.engine.event_time.latency import ObservedLatency
from hudi_assets.engine.event_time.lateness import LateLog
from hudi_assets.engine.hudi_table.table import HudiTable
from hudi_assets.engine.model import (
    Bill,
    CarryOver,
    CommitBound,
    CommitResult,
    CompactionResult,
    DayBill,
    Freshness,
    HiddenRows,
    LogBar,
    LogFile,
    Look,
    MergeMode,
    NoPlan,
    NothingToDo,
    Operation,
    OperationResult,
    PartitionFreshness,
    PastCompaction,
    PastFreshness,
    Plan,
    Publication,
    PublishedPartitions,
    QueryTime,
    StartNow,
    Stats,
    TableMetrics,
    WaitUntil,
)
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.profile import TableProfile, TimeColumn
from hudi_assets.engine.model.units import EVENT_TIME_UNIT, EventTimeUnit, duration, iso, parse_latency
from hudi_assets.engine.queries.query import ReadTask
from hudi_assets.engine.slo.simulation.comparison import Comparison, compare
from hudi_assets.engine.slo.simulation.feed import Feed
from hudi_assets.engine.slo.simulation.feeds import DISTRIBUTIONS, feed_of
from hudi_assets.engine.slo.simulation.outcome import Outcome
from hudi_assets.engine.slo.terms import terms_of
from hudi_assets.engine.slo.values import SloTerms
from hudi_assets.engine.spark.connect import (
    check_no_connected_session,
    check_no_own_spark,
    connected_session,
    end_connected_session,
    local_connected_session,
    named_server,
)
from hudi_assets.engine.spark.connect_server import ConnectServer, check_can_serve
from hudi_assets.engine.spark.errors import problem_of
from hudi_assets.engine.spark.interface import Frame, Session
from hudi_assets.engine.spark.start import local_session
from hudi_assets.engine.spark.stores import check_reads_by_itself, tell_of_store
from hudi_assets.engine.storage import Storage, open_storage
from hudi_assets.engine.storage.aws import as_s3
from hudi_assets.engine.table.files.published import NAMES_FILES, NOTED_DIGESTS, PARTITION_TABLES, PUBLISHED_NOTES
from hudi_assets.engine.table.settings.compaction import TriggerName
from hudi_assets.engine.table.settings.config import (
    AUTO,
    DATA_LATENCY,
    EVENT_TIME_FIELD,
    EXECUTOR,
    HUDI,
    PUBLISH_PARTITIONS,
    WRITERS,
    check_own_settings,
)
from hudi_assets.engine.transaction.clean import CleanResult
from hudi_assets.engine.transaction.restore import RestoreResult
from hudi_assets.engine.transaction.rollback import RollbackResult
from hudi_assets.engine.validate import Finding

# No module of this project outside the engine names CommitBound, Frame, MergeMode, QueryTime, RestoreResult,
# RollbackResult and Session. The methods of `HudiTable` take them or give them back, in values of theirs too: whoever
# annotates a program of their own needs the names.
__all__ = [
    "AUTO",
    "DATA_LATENCY",
    "DISTRIBUTIONS",
    "EVENT_TIME_FIELD",
    "EVENT_TIME_UNIT",
    "EXECUTOR",
    "HUDI",
    "NAMES_FILES",
    "NOTED_DIGESTS",
    "PARTITION_TABLES",
    "PUBLISHED_NOTES",
    "PUBLISH_PARTITIONS",
    "WRITERS",
    "ArchiveResult",
    "Bill",
    "CarryOver",
    "CleanResult",
    "ColumnUnit",
    "CommitBound",
    "CommitResult",
    "CompactionResult",
    "CompactionSeries",
    "Comparison",
    "Conflict",
    "ConnectServer",
    "CorruptTable",
    "CostPoint",
    "DayBill",
    "EnvironmentProblem",
    "EventTimeUnit",
    "Feed",
    "Finding",
    "Frame",
    "Freshness",
    "HiddenRows",
    "HudiAssetsError",
    "HudiTable",
    "InvalidInput",
    "LateLog",
    "LogBar",
    "LogFile",
    "Look",
    "MergeMode",
    "NoPlan",
    "NothingToDo",
    "ObservedLatency",
    "Operation",
    "OperationResult",
    "Outcome",
    "OutdatedView",
    "PartitionFreshness",
    "PastCompaction",
    "PastFreshness",
    "Plan",
    "Publication",
    "PublishedPartitions",
    "QueryTime",
    "ReadTask",
    "RestoreResult",
    "RollbackResult",
    "Session",
    "SloTerms",
    "StartNow",
    "Stats",
    "Storage",
    "TableMetrics",
    "TableProfile",
    "TimeColumn",
    "TriggerName",
    "UnsupportedTable",
    "WaitUntil",
    "as_s3",
    "check_can_serve",
    "check_no_connected_session",
    "check_no_own_spark",
    "check_own_settings",
    "check_reads_by_itself",
    "compare",
    "connected_session",
    "duration",
    "end_connected_session",
    "feed_of",
    "iso",
    "local_connected_session",
    "local_session",
    "named_server",
    "no_threshold_reason",
    "open_storage",
    "parse_latency",
    "problem_of",
    "session_settings",
    "tell_of_store",
    "terms_of",
]

# Names that scripts may still have: the module of each, what it is there, and what to use in its place.
_OLD = {
    "WRITER": ("model.plans", "WRITER", "Plan.is_ours"),
    "bound_in_words": ("model.results", "CommitBound.words.fget", "CommitBound.words"),
    "check_pyspark": ("spark.java_runtime", "check_pyspark", "local_session, which checks it"),
    "chosen_columns": ("queries.columns", "chosen_columns", "HudiTable.schema(columns=…)"),
    "instant_ms": ("timeline.instants", "instant_ms", "HudiTable.instant_ms"),
    "java_cause": ("spark.errors", "java_cause", "problem_of"),
    "machine_problem": ("errors", "machine_problem", "problem_of"),
    "read_task": ("queries.query", "read_task", "ReadTask.read"),
    "refuse_short_query_time": (
        "actions.compaction.other_engines",
        "refuse_short_query_time",
        "HudiTable.refuse_short_query_time",
    ),
    "spark_problem": ("spark.errors", "spark_problem", "problem_of"),
}


def __getattr__(name: str) -> Any:
    if name not in _OLD:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there, instead = _OLD[name]
    warnings.warn(f"{__name__}.{name} will go: use {instead}.", DeprecationWarning, stacklevel=2)
    return attrgetter(there)(import_module(f"{__name__}.{module}"))
