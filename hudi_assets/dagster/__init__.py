"""A table under Dagster. `hudi_assets.components` makes all of it from a block, with `hudi_assets.resources`.

Begin at `assets.TableAssets`: what a table is to Dagster, and its assets. `ingestion` and `housekeeping` are the first
and the last of them, `checks` are their checks, `report` is their metadata.

The sensor is `sensors`: it looks at a table, and asks for a run where one is due, by `decisions`, which gives a
`Compact`, a `Recover`, a `PublishFreshness` or a `Wait`. `looks.TickLook` is what a tick saw and reports, `late` counts
late records there. `followed` keeps the catalog true, `presence` asks whether the table is there, and `attempts` how
often a run was tried. `known.Known` asks Dagster, of many tables at once. `told` says what readers were told. `round`
is one sensor for many tables, `aside.Aside` a look that takes longer than a tick.

Inside this package `dagster` is Dagster itself: all imports are absolute. In a shell, do not work inside
`hudi_assets/`: there `python -m dagster` would find this package.
"""
