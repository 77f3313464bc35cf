"""What a reading of a table tells of its files, beyond the slices that readers see.

- `missing.Missing`: files that the timeline says are there and are not. Begin here: most actions ask it first.
- `hidden.Hidden`: files that lie behind a base file and are in no view. `grown`: which base files the newest was not
  made of.
- `orphans.Orphans`: files of instants that are on no timeline. `strays.Strays`: files of completed instants that no
  commit lists.
- `needed.Inventory`: what a cleaner looks at, and what no clean may take. `cleaned`: what the timeline says of cleans.
- `past`: what timeline and files say of the table's past. `origins`: where carried-over bytes first were written.
- `published`: what a published view may name, by the table's own notes.
- `base_times.BaseTimes`: the greatest event time in a base file. `metadata_check`: the metadata table
  against the files.

`transaction.recover`, the actions and `validate` call these.
"""
