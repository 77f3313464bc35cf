"""Tables as Prometheus sees them: `hudi-assets metrics`. Starts no Spark and imports no Dagster.

- `watch.Watch`: looks at tables in turn, again and again. Begin here. `watch.LastLook`: what came of the last look.
- `tables.Monitored`: a table to look at, from the command line or from a file in TOML.
- `samples.Tables`: what was seen as metrics, each a `Gauge` with its name and its help.
- `alerts.yml`, `dashboard.json`: rules for Prometheus and a dashboard for Grafana, as `--rules` and `--dashboard` print
  them.

The command line calls it. `docs/how-to/monitor.md` lists the metrics.
"""
