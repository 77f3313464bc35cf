"""Hudi's metadata table (`.hoodie/metadata`): which files the data table has, and column statistics.

`reader` reads it, `writer` keeps it right in what is written here, `policy` says which of its partitions an action
leaves true. `own_timeline` is its timeline, `slices` its newest file slices, `compaction` folds its log files.
`records`, `record_schema`, `index_keys`, `column_stats`, `decimal_limits` are its records.
`docs/reference/metadata_table.md` describes it.
"""
