"""Tables for tests: how to make one, and what to do with it. Nothing here starts a Spark.

A test asks for the fixture `session` (`tests/conftest.py`). It stands where a SparkSession stands, and runs the
engine's tasks in this process (`tests/tables/local_session.py`). A step takes milliseconds then.

    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = created(tmp_path / "t", schema)                   # as `HudiTable.create`, with what is usual
    table.upsert(session, session.rows([{"id": "a", "ts": 5}], schema))
    assert table.snapshot(session).rows() == …

    life = Life(tmp_path / "t", session, 9)     # an empty table of version 9, of two partitions
    life.upsert()
    life.compact()
    assert life.snapshot() == …

Begin here:

- `life`: `Life`, a table told step by step: upserts whose event times follow one another, compactions, and what is
  there after them. Take it where the rows do not matter.
- `steps`: a table of one's own, by `created`, and the steps on it: `planned`, `compact`, `rows_in` tasks,
  `with_properties`, and `at`, a moment of the table's clock.

Tables that are not only ours:

- `payments`: the table that the pages for users speak of, made here or by others.
- `others`: as Apache Hudi's writers leave them: no setting of ours, no event times in commits.
- `other_index`: as Hudi's other indexes leave them: file ids that name no bucket.
- `metadata`: with Hudi's metadata table; and what stands in it.

Parts of tables:

- `held_slice`: a file slice in memory, for the merge alone.
- `schemas`: columns of every type with values at their edges, and how schemas change.

Folders have tables of their own where a suite needs them: `tests/crash/tables.py`, `tests/fuzz/table.py`,
`tests/races/player.py`, `tests/machine/table_under_test.py`, `tests/interop/tables.py` (Hudi writes these).
"""
