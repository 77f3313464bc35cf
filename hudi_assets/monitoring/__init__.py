"""Tables as Prometheus sees them: `hudi-assets metrics`. Starts no Spark and imports no Dagster.

`tables` says which tables, `watch` looks at them, and `samples` turns what was seen into metrics. `alerts.yml` has
rules for them, `dashboard.json` a dashboard for Grafana.
"""
