"""What a table tells about itself to somebody who sets it up: from its settings, timeline and a sample of its rows.

- `profile`: all of it, as a `TableProfile`. Begin here.
- `sample.SampledFile`: rows of the newest files, with the columns that may be event times.
- `columns`: which of those are event times, in which unit, and which one to take (`TimeColumn`). Pure.
- `timeline`: who wrote the table, which table services ran, at what pace. Pure but for reading commits.

`HudiTable.profile` calls it; `hudi-assets init` makes a Dagster block of it.
"""
