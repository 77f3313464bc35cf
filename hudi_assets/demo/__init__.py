"""This repository's demo, `make run` and `make ui`. It is not in the wheel.

- `replay.Replay`: one replay of the stream of flights through Dagster, as `make run` does it. Begin here.
- `driver.Driver`: a Dagster instance in this process: its runs and the ticks of its sensor (`Tick`) are real.
- `shown.Summary`: what came of a replay, on the terminal and in `.hudi-assets/last-run.json`.
- `flights`: the stream that is replayed.
- `ui`: what `make ui` asks for before Dagster starts, which is a directory and a free port.

The Makefile calls it as `python -m hudi_assets.demo` and `python -m hudi_assets.demo.ui`. The table's block is
`hudi_assets/defs/flights/defs.yaml`.
"""
