"""Spark: nothing else in the engine imports PySpark or calls a session.

- `interface` is what the rest of the engine knows of a session and of a DataFrame.
- `start` starts a session on this machine, on the Java that `java_runtime` finds.
- `session` is what the engine asks of a session: tasks that run on workers, DataFrames made of tasks.
- `parquet` lets workers read a DataFrame that is plain Parquet files.
- `java_classes` compiles the classes of `java/` in the driver: they take part in Spark's planning, which Python cannot.
  Where a Spark lacks what they take, queries do without. `partitions` is what those classes are told of partitions.
- `capabilities` says what a session is and lacks. `errors` puts Spark's errors into the engine's words.
"""
