"""Apache Hudi merge-on-read tables with event-time compaction. Imports no Dagster.

`HudiTable` is the way in: create or open one, then write, query, compact, or ask for its freshness. What its methods
give back, the errors that they raise and the keys of the settings stand beside it. Everything else in this package may
change. What needs a Spark is imported when it is first asked for.

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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hudi_assets.engine.actions.archiving.archive import ArchiveResult
from hudi_assets.engine.actions.compaction.cost import CostPoint
from hudi_assets.engine.actions.compaction.hudi_executor import session_settings
from hudi_assets.engine.actions.compaction.other_engines import refuse_short_query_time
from hudi_assets.engine.actions.compaction.series import CompactionSeries
from hudi_assets.engine.errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    HudiAssetsError,
    InvalidInput,
    UnsupportedTable,
    machine_problem,
)
from hudi_assets.engine.event_time.commit_bound import bound_in_words
from hudi_assets.engine.event_time.freshness import no_threshold_reason
from hudi_assets.engine.event_time.latency import ObservedLatency
from hudi_assets.engine.event_time.lateness import LateLog
from hudi_assets.engine.hudi_table.table import HudiTable
from hudi_assets.engine.model import (
    CarryOver,
    CommitResult,
    CompactionResult,
    Freshness,
    LogBar,
    LogFile,
    Look,
    NoPlan,
    NothingToDo,
    Operation,
    OperationResult,
    Plan,
    Stats,
)
from hudi_assets.engine.model.column_unit import ColumnUnit
from hudi_assets.engine.model.profile import TableProfile, TimeColumn
from hudi_assets.engine.model.units import EVENT_TIME_UNIT, EventTimeUnit, duration, iso, parse_latency
from hudi_assets.engine.queries.columns import chosen_columns
from hudi_assets.engine.queries.query import ReadTask, read_task
from hudi_assets.engine.spark.java_runtime import check_pyspark
from hudi_assets.engine.storage import Storage, open_storage
from hudi_assets.engine.table.settings.compaction import TriggerName
from hudi_assets.engine.table.settings.config import (
    AUTO,
    DATA_LATENCY,
    EVENT_TIME_FIELD,
    EXECUTOR,
    HUDI,
    WRITERS,
    check_own_settings,
)
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.timeline.instants import instant_ms
from hudi_assets.engine.transaction.clean import CleanResult
from hudi_assets.engine.validate import Finding

if TYPE_CHECKING:
    from hudi_assets.engine.spark.errors import java_cause, spark_problem
    from hudi_assets.engine.spark.session import local_session

__all__ = [
    "AUTO",
    "DATA_LATENCY",
    "EVENT_TIME_FIELD",
    "EVENT_TIME_UNIT",
    "EXECUTOR",
    "HUDI",
    "WRITER",
    "WRITERS",
    "ArchiveResult",
    "CarryOver",
    "CleanResult",
    "ColumnUnit",
    "CommitResult",
    "CompactionResult",
    "CompactionSeries",
    "Conflict",
    "CorruptTable",
    "CostPoint",
    "EnvironmentProblem",
    "EventTimeUnit",
    "Finding",
    "Freshness",
    "HudiAssetsError",
    "HudiTable",
    "InvalidInput",
    "LateLog",
    "LogBar",
    "LogFile",
    "Look",
    "NoPlan",
    "NothingToDo",
    "ObservedLatency",
    "Operation",
    "OperationResult",
    "Plan",
    "ReadTask",
    "Stats",
    "Storage",
    "TableProfile",
    "TimeColumn",
    "TriggerName",
    "UnsupportedTable",
    "bound_in_words",
    "check_own_settings",
    "check_pyspark",
    "chosen_columns",
    "duration",
    "instant_ms",
    "iso",
    "java_cause",
    "local_session",
    "machine_problem",
    "no_threshold_reason",
    "open_storage",
    "parse_latency",
    "read_task",
    "refuse_short_query_time",
    "session_settings",
    "spark_problem",
]


_NEEDS_SPARK = {"java_cause": "errors", "spark_problem": "errors", "local_session": "session"}


def __getattr__(name: str) -> Any:
    if name in _NEEDS_SPARK:
        return getattr(import_module(f"hudi_assets.engine.spark.{_NEEDS_SPARK[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
