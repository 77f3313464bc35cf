"""The command line: `hudi-assets COMMAND PATH`, for people and, with --json, for programs. Knows no Dagster.

Begin at `commands`: the app, what its main commands do, and `main`. The other commands are in `init`, `maintain`,
`metrics`, `publish`, `read` and `report`. `table` has what they share: options, opening a table, how a command ends.
`output` prints, `series` shows compactions as they go, `errors` says what Ctrl-C and a broken pipe do. `blocks` writes
the block of `hudi-assets init`.
"""

from hudi_assets.cli.commands import app, main

__all__ = ["app", "main"]
