"""Catalogs: where readers find a table by name, and the freshness that is promised there. No Dagster, no Spark session.

`publishing.Form` says in which of two ways a table stands in a catalog.

- **Own views** (`views`): the read-optimized view names the current base files, and a snapshot view. Files and
  freshness change in one call, so no reader meets one without the other.
- **Synced tables** (`synced`): Hudi's own Hive sync made `<t>_ro` and `<t>_rt`. Only parameters of theirs are set.
  In AWS Glue this is the only way.

Begin at `places.Place`, a table's names in one metastore: it finds and publishes. `publishing` does so, `publication`
has the properties. How Spark keeps a view is in `spark_types`, `queries` and `views`. `hive.Connection` speaks a Hive
metastore's own protocol, by `thrift_values`; `hive.Entry` is a table or view there. `glue` has the same of AWS Glue, by
boto3, and `connections` tells which of them an address names. `spark_sql` publishes through a
Spark session, for catalogs that no other way leads to. `partition_table` is the freshness of each partition as a table
beside both forms, and `partition_folders` where its rows lie. `follow` keeps the published state true at a sensor's
tick. `metastore.Metastore` is the one that runs in the home directory. `same_table` tells whether two locations are one
table's. The command line, the resource `Catalog` and the sensor call this package.
"""
