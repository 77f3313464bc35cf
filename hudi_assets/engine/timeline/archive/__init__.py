"""The archived timeline: instants that have left the active one.

`kind` is what the engine asks of it; a layout says which kind its tables have. `v6` is that of table version 6 (log
files of Avro blocks), `v8` that of versions 8 and 9 (Parquet files in layers, written by `layers`).
"""
