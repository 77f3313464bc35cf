"""File slices: what listing and timeline make of the files, now and in the past.

`listing` parses names, `file_view` cuts slices (pure), `reader` and `streams` read a slice as rows of the table's
schema on any machine, `rows` merges them. `as_of` and `history` say which slices answer a query of the past (pure).
`bounds`: rows that need not be read, by Parquet's statistics.
"""
