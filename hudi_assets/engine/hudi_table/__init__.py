"""`HudiTable`, the engine's public class: one table, every call reading it as it stands and leaving it whole.

- `table.HudiTable`: creates and opens. Begin here. Its methods are in parts, by what they are for.
- `reads.Reads`: queries and the schema. `writes.Writes`: upsert, delete, bulk insert.
- `maintenance.Maintenance`: compaction, rollback, clean, archive, savepoints.
- `reports.Reports`: freshness, statistics, event times, costs.
- `opened.OpenedTable`: what all of them have: an `OpenTable` (`transaction`), and its state whenever it is asked.

A method checks its arguments and hands on to a package below: `actions`, `queries`, `status`, `past`. The command line,
the assets and users' scripts call it, by `hudi_assets.engine`.
"""
