"""Event-time compaction for Apache Hudi merge-on-read tables, under Dagster, on the command line and from Python.

- `engine`: tables. It reads, writes and compacts them, and knows no Dagster. `HudiTable` is its class.
- `components`, `resources`: what a Dagster project names. `dagster`: the assets, checks and sensor behind them.
- `cli`: the command `hudi-assets`.
- `catalog`: where readers find a table by name, and its freshness there.
- `monitoring`, `reporting`: metrics for Prometheus; pictures and a page on a table.
- `demo`, `defs`, `definitions`: the project of `make run`. They are not in the wheel.
- `home`, `processes`, `sizes`: small helpers of the above.

Scripts use `hudi_assets.engine`, projects of Dagster the components. Begin reading at ARCHITECTURE.md.
"""
