"""Table versions: all that depends on one, from how files are named to where a compaction plan stands.

`interface.Layout` is what the engine asks, a question at a time; `v6` and `v8` (versions 8 and 9) answer.
`placement` has the two ways of choosing a plan's instant. `choice` picks a layout when a table is opened. A new
version is a new file here; nothing elsewhere decides by the version (`tests/unit/test_one_layout.py`).
"""
