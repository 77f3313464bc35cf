"""What changes a table, one package or module for each action. Each is a transaction (`engine.transaction`).

- `writing.delta_commit.Writer`: upsert, delete, bulk insert: a delta commit.
- `compaction`: selecting log files by event time, planning (`CompactionPlanner`), executing (`CompactionExecutor`).
- `cleaning.clean.Cleaner`, `archiving.archive.Archiver`, `savepoint.Savepoints`: keeping the table small, and parts of
  it safe.
- `undo.Undo`: rollback, unschedule, restore, as they are asked for. `recover`: repairing a table by name.

`HudiTable` calls these (`hudi_table.writes`, `hudi_table.maintenance`). Begin at the action that you mean; `savepoint`
is the shortest that shows a transaction.
"""
