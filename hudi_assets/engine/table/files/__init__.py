"""What a reading of a table tells of its files, beyond the slices that readers see.

- `missing`: files that the timeline says are there and are not.
- `hidden`: files that lie behind a base file and are in no view. `grown`: which base files the newest was not made of.
- `orphans`: files of instants that are on no timeline. `strays`: files of completed instants that no commit lists.
- `needed`: files that no clean may take. `cleaned`: what the timeline says of cleans and savepoints.
- `past`: what timeline and files say of the table's past. `origins`: where carried-over bytes first were written.
- `published`: what a published view may name, by the table's own notes.
- `base_times`: the greatest event time in a base file. `metadata_check`: the metadata table against the files.

`transaction.recover`, the actions and `validate` call these.
"""
