"""Table versions: how a version names files, cuts slices, keeps its timeline and carries log files over.

`seam.Layout` is what the engine asks; `v6` and `v8` (versions 8 and 9) answer. `choice` picks one when a table is
opened. A new version is a new file here.
"""
