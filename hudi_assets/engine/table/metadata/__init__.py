"""Hudi's metadata table (`.hoodie/metadata`): which files the data table has, and column statistics.

- `reader.FilesState`: what it says of the files. Begin here. `reader.ValidInstants`: which of its instants count.
- `writer.MetadataTable`: keeps it right in what is written here.
- `policy`: which of its partitions an action leaves true, and what is done about the others. `partitions`: which it
  has.
- `own_timeline.OwnTimeline`: its timeline. `slices.FilesSlice`: a newest slice. `compaction.OwnCompaction`: folds its
  log files.
- `records.FilesRecord`, `record_schema`, `index_keys`, `column_stats.ColumnStatsIndex`, `decimal_limits`: its records.

The actions and `transaction` call `policy` and `writer` in each change; `table.files` checks it against the files. Its
files are HFiles (`format.hfile`). `docs/reference/metadata_table.md` describes it.
"""
