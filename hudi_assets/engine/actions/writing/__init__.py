"""Upserts, deletes and bulk inserts: from a DataFrame to log files or base files, and a delta commit.

`delta_commit.Writer` is the way in, and has the order of things. Rows are checked (`row_checks`) and put together
by file group (`packing`), travel as Arrow bytes (`exchange`, `parcels`), and become log files (`log_files`) or base
files (`bulk_insert`). `lookup` is for tables whose index looks keys up.
`docs/explanation/writing.md` tells the way of a row.
"""
