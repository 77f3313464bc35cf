"""Snapshot, read-optimized, time travel and incremental queries, as Spark DataFrames or as tasks.

`query` is the way in. `moments` reads what people write for an instant; `columns` and `partition_filter` leave out
what a query does not ask for; `in_range` reads the rows that commits of a range wrote; `read_optimized_columns`
tells whether Spark can read base files as they are. `docs/explanation/queries.md` has the rules.
"""
