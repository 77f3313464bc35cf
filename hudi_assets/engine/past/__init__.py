"""A table's past, from what its timeline keeps. Reads only.

- `compactions`: what compactions took and gave (`PastCompaction`). Begin here.
- `metrics`: what monitoring asks (`TableMetrics`).
- `freshness`: the freshness after each write (`PastFreshness`).
- `bills`: what each compaction cost and bought, also by day (`Bill`, `DayBill`).
- `rewriting`: what the compaction policy of `slo` is told of a table, and the past as a feed for its simulator.

`HudiTable` calls these (`hudi_table.reports`); the values are in `model`. When something happened is told by the
timeline's files: by the completion time in a name, else by when the file was written. A copy of a table that did not
keep its files' times has lost the latter.
"""
