"""Cleaning: file slices that no retained view reads are deleted. `clean` is the way in, `plan` has Hudi's policies
(pure), `query_grace` says how long a replaced slice stays for running queries.
"""
