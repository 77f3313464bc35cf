"""This repository's demo, `make run` and `make ui`. It is not in the wheel.

`replay` does what `make run` does, `shown` is what it shows. `driver` drives a Dagster instance from one process.
`flights` is the stream that is replayed, and `ui` what `make ui` asks for before Dagster starts.
The table's block is `hudi_assets/defs/flights/defs.yaml`.
"""
