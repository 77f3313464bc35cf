"""The command line: `hudi-assets COMMAND PATH`, for people and, with --json, for programs. Knows no Dagster.

- `commands`: the app, `status`, `freshness`, `plan`, `compact`, and `main`. Begin here.
- `init`, `maintain`, `metrics`, `publish`, `read`, `report`, `simulate`: the other commands.
- `table`: what they share, which is options, opening a table, starting Spark, and how a command ends. `slo` and
  `groups`: options that go together.
- `output`: answers as lines or as JSON. `series.ShownSeries`: compactions as they go.
- `errors.Interruptible`: what Ctrl-C and a broken pipe do.
- `blocks.Block`: the text that `init` writes.

Most commands open a `HudiTable` and call one or two of its methods. The script `hudi-assets` calls `main`.
"""

from hudi_assets.cli.commands import app, main

__all__ = ["app", "main"]
