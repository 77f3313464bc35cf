"""Snapshot, read-optimized, time travel and incremental queries, as Spark DataFrames or as tasks.

- `query`: each query twice, as a frame and as tasks. Begin here. `query.ReadTask` is one file slice of a query, which
  any process can read.
- `moments`: what people write for an instant, as one of the table's timeline. Pure.
- `columns`, `partition_filter`: what a query does not ask for, and so leaves out. Pure.
- `in_range.CommitRange`: the rows that commits of a range wrote.
- `read_optimized_columns`: whether Spark can read base files as they are.

`HudiTable` calls `query` (`hudi_table.reads`). What a task does on a worker is in `table.slices`.
`docs/explanation/queries.md` has the rules.
"""
