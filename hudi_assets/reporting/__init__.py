"""A table in pictures, for Dagster and for the page of `hudi-assets report`. Reads, never writes, the table.

- `pictures`: event times of log files, costs, lateness, freshness over time, as matplotlib's figures. Begin here.
- `page.Page`: one page of HTML on a table, which needs no network. What cannot be read costs its own section alone.
- `simulations`: what policies did with one feed of a simulation.

The command line calls `page` and `simulations`; `hudi_assets.dagster.report` calls `pictures`. It needs matplotlib, and
imports no Dagster.
"""
