"""Spark: nothing else in the engine imports PySpark or calls a session.

- `session`: what the engine asks of a session: tasks that run on workers, DataFrames made of tasks. Begin here.
- `interface.Session`, `interface.Frame`: what the rest of the engine knows of a session and of a DataFrame.
- `start`: a session on this machine, on the Java that `java_runtime` finds. `connect`: one of Spark Connect.
- `connect_server.ConnectServer`: a Spark of this process that serves such sessions, for `hudi_assets.shared_spark`.
- `probe.check_workers`: whether workers elsewhere can run tasks and see the table, by `worker_answer`, sent to them.
- `parquet.PlainFiles`: a DataFrame of plain Parquet files, which workers read themselves.
- `java_classes` compiles the classes of `java/` in the driver: they take part in Spark's planning, which Python cannot.
  Where a Spark lacks what they take, queries do without. `partitions.Places`: what those classes are told.
- `stores`: files on a store as Spark names them. `workers`: what Spark's Python workers keep between two tasks.
- `capabilities.Capabilities` says what a session is and lacks. `errors` puts Spark's errors into the engine's words.

Queries, writing and compaction call `session`. Tests put a session of their own in its place
(`tests/tables/local_session.py`).
"""
