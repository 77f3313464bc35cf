"""The engine: Apache Hudi merge-on-read tables with event-time compaction. Imports no Dagster."""

from hudi_assets.engine.compaction.series import CompactionSeries
from hudi_assets.engine.errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    HudiAssetsError,
    InvalidInput,
    UnsupportedTable,
)
from hudi_assets.engine.model import CommitResult, CompactionResult, Freshness, NoPlan, Plan, Stats
from hudi_assets.engine.table import HudiTable

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
