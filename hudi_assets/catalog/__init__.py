"""Catalogs: where readers find a table by name, and the freshness that is promised there. No Dagster, no Spark session.

A table stands in a catalog in one of two ways.

- **Own views** (`views`): the read-optimized view names the current base files, and a snapshot view. Files and
  freshness change in one call, so no reader meets one without the other.
- **Synced tables** (`synced`): Hudi's own Hive sync made `<t>_ro` and `<t>_rt`. Only parameters of theirs are set.

What is published is in `publication`; how Spark keeps a view, in `spark_types`, `queries` and `views`. `hive` speaks a
Hive metastore's own protocol, by `thrift_values`; `spark_sql` publishes through a Spark session, for catalogs that no
other way leads to. `follow` keeps the published state true at a sensor's tick. `metastore` is the one that runs in the
home directory where nobody names another. `places` says which is meant, by settings and environment. `same_table` tells
whether two locations are one table's.
"""
