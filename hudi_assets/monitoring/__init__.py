"""Tables as Prometheus sees them: `hudi-assets metrics`. Starts no Spark and imports no Dagster.

`tables` says which tables, `watch` looks at them, `samples` turns what was seen into metrics, and `alerts.yml` has the
rules for them.
"""
