"""A table's past, from what its timeline keeps. Reads only.

- `compactions`: what compactions took and gave. `metrics`: what monitoring asks.
- `freshness`: the freshness after each write.
- `bills`: what each compaction cost and bought, also by day.
- `rewriting`: what the compaction policy of `slo` is told of a table, and the past as a feed for its simulator.

When something happened is told by the timeline's files: by the completion time in a name, else by when the file was
written. A copy of a table that did not keep its files' times has lost the latter.
"""
