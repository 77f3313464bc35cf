"""Values that the whole engine speaks in: frozen, comparable, free of I/O, in Hudi's own words.

Event times are integers: epoch milliseconds, UTC. Finer sources are floored for a minimum and ceiled for a maximum, so
that a range always covers its records. Instants are Hudi's strings `yyyyMMddHHmmssSSS`; they order as strings.

Begin with `files` (base file, log file, file slice) and `plans` (what a compaction takes); `results` is what
callers of `HudiTable` get back. Everything in the engine imports this package; it imports only the errors.

- `instants`: an action on the timeline, in its latest state.
- `files`: base files, log files, file slices, carried-over log files.
- `plans`, `cleans`: what a compaction, or a clean, is going to do, or why there is nothing to do.
- `units`, `column_unit`: event times as people and columns write them, and in which unit a column counts.
- `log_summary`: what is known of a log file's event times without its records.
- `merge_mode`: which of a key's records wins.
- `results`: freshness, statistics, what a commit or a compaction did.
- `settings`: values of settings, read from their text.
- `profile`: what a table tells about itself.
- `bills`: what compactions cost and bought.
- `proposals`: what the policy of a freshness SLO answers.
- `past`: what compactions cost, as the timeline tells of it; what monitoring asks.
"""

from hudi_assets.engine.model.bills import Bill, DayBill
from hudi_assets.engine.model.files import LOG_ORDER, BaseFile, CarryOver, FileSlice, LogFile
from hudi_assets.engine.model.instants import Action, Instant, State
from hudi_assets.engine.model.merge_mode import MergeMode
from hudi_assets.engine.model.past import PastCompaction, PastFreshness, TableMetrics
from hudi_assets.engine.model.plans import NO_THRESHOLD, NoPlan, NothingToDo, Operation, Plan, QueryTime
from hudi_assets.engine.model.proposals import Proposal, StartNow, WaitUntil
from hudi_assets.engine.model.results import (
    BoundRule,
    CommitBound,
    CommitResult,
    CompactionResult,
    Freshness,
    HiddenRows,
    LogBar,
    Look,
    OperationResult,
    PartitionFreshness,
    Publication,
    PublishedPartitions,
    Stats,
)
from hudi_assets.engine.model.units import EventTimeRange

__all__ = [
    "LOG_ORDER",
    "NO_THRESHOLD",
    "Action",
    "BaseFile",
    "Bill",
    "BoundRule",
    "CarryOver",
    "CommitBound",
    "CommitResult",
    "CompactionResult",
    "DayBill",
    "EventTimeRange",
    "FileSlice",
    "Freshness",
    "HiddenRows",
    "Instant",
    "LogBar",
    "LogFile",
    "Look",
    "MergeMode",
    "NoPlan",
    "NothingToDo",
    "Operation",
    "OperationResult",
    "PartitionFreshness",
    "PastCompaction",
    "PastFreshness",
    "Plan",
    "Proposal",
    "Publication",
    "PublishedPartitions",
    "QueryTime",
    "StartNow",
    "State",
    "Stats",
    "TableMetrics",
    "WaitUntil",
]
