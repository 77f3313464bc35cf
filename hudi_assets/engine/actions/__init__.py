"""What changes a table, one package or module for each action. Each is a transaction (`engine.transaction`).

- `writing`: upsert, delete, bulk insert: a delta commit.
- `compaction`: selecting log files by event time, planning, executing.
- `cleaning`, `archiving`, `savepoint`: keeping the table small, and parts of it safe.
- `undo`: rollback, unschedule, restore, as they are asked for. `recover`: repairing a table by name.

`HudiTable` calls these.
"""
