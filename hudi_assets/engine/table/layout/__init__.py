"""Table versions: all that depends on one, from how files are named to where a compaction plan stands.

- `interface.Layout`: what the engine asks of a version, a question at a time. Begin here.
- `v6.LayoutV6`, `v8.LayoutV8`: the answers, of version 6 and of versions 8 and 9.
- `names.FileNames`: names of base and log files, the same in every version.
- `placement.NewInstant`, `placement.PastInstant`: the two ways of choosing a plan's instant.
- `choice`: picks a layout when a table is made or opened.

A `TableState`, the publisher and the actions ask their table's layout. A new version is a new file here; nothing
elsewhere decides by the version (`tests/unit/test_one_layout.py`).
"""
