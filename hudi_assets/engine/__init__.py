"""The engine: Apache Hudi merge-on-read tables with event-time compaction. Imports no Dagster."""

from hudi_assets.engine.actions.compaction.series import CompactionSeries
from hudi_assets.engine.errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    HudiAssetsError,
    InvalidInput,
    UnsupportedTable,
)
from hudi_assets.engine.hudi_table.table import HudiTable
from hudi_assets.engine.model import CommitResult, CompactionResult, Freshness, NoPlan, Plan, Stats

__all__ = [
    "CommitResult",
    "CompactionResult",
    "CompactionSeries",
    "Conflict",
    "CorruptTable",
    "EnvironmentProblem",
    "Freshness",
    "HudiAssetsError",
    "HudiTable",
    "InvalidInput",
    "NoPlan",
    "Plan",
    "Stats",
    "UnsupportedTable",
]
