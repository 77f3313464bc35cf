"""The engine: Apache Hudi merge-on-read tables with event-time compaction. Imports no Dagster."""

from .errors import (
    Conflict,
    CorruptTable,
    EnvironmentProblem,
    HudiAssetsError,
    InvalidInput,
    UnsupportedTable,
)
from .model import CommitResult, CompactionResult, Freshness, NoPlan, Plan, Stats
from .table import HudiTable

__all__ = [
    "CommitResult",
    "CompactionResult",
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
