"""Which of a key's records wins. Pure: Arrow tables in, Arrow tables out.

- `merge`: a slice's log records and base rows into the rows of a merge mode. Begin here. `merge.Rows` and
  `merge.Deletes` are the records of one log block.
- `winners.Winners`: the winner of each key, whole columns at a time.
- `passes.SliceMerge`: the same within a memory budget, whatever the slice's size. `passes.SliceRecords` is what it
  reads, `passes.Leaving` what it leaves to readers of the new slice.
- `gaps.Gaps`: values of a row in whose place older records of the key give theirs.
- `partial.Filling`: partial updates, and rows with gaps, which older records of the key fill.
- `ordering`: ordering values, of one field or of several. `delete_records`: those of deletes.

Queries (`table.slices`) and compactions (`actions.compaction`) call `passes`. The rules, and where Hudi's releases
differ, are in `docs/explanation/merge.md`.
"""
