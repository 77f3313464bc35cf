"""Upserts, deletes and bulk inserts: from a DataFrame to log files or base files, and a delta commit.

- `delta_commit.Writer`: the order of things, from checks to commit. Begin here.
- `row_checks.RowCount`: what is wrong with rows before they are written. `packing.Packing`: rows put together by file
  group. Both run on Spark's workers, and are pure.
- `exchange.Packed`, `exchange.Parcel`, `parcels`: rows on their way to the tasks that write them, as Arrow bytes.
- `log_files.WriteSpec`: rows, or deletes, become log files. `bulk_insert`: rows become base files.
- `ordering_fields`: what is not written where several fields order rows; `gaps`: where rows have gaps.
- `lookup.Lookup`: tables whose index looks keys up (SIMPLE, BLOOM).

`HudiTable` calls `Writer` (`hudi_table.writes`). A compaction encodes its residue logs by `log_files` too.
`docs/explanation/writing.md` tells the way of a row.
"""
