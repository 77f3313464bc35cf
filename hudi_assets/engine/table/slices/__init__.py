"""File slices: what listing and timeline make of the files, now and in the past.

- `file_view.FileView`: the file slices of a table, per file group. Pure. Begin here.
- `listing`: the partitions, listed, and each name parsed once.
- `parts.Part`: a partition with its files and slices, and what was told of it. `slice_columns`: the same in few bytes.
  `by_partition`: files of all partitions, each made when it is asked for. `kept`: what a look keeps for the next one.
- `reader.SliceReader`, `reader.SliceTask`: what is needed to read slices of one table on any machine.
  `streams.StoredSlice`: a slice as a merge reads it, part by part. `rows`: its rows, merged.
- `history.History`, `as_of.Since`: which slices answer a query of the past, and whether they still can. Pure.
- `bounds.Bounds`: rows that need not be read, by Parquet's statistics.

A `TableState` makes the view. Queries and compaction's tasks read by `reader`.
"""
