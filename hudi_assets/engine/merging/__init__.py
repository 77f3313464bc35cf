"""Which of a key's records wins. Pure: Arrow tables in, Arrow tables out.

`merge` is the way in: a slice's log records and base rows into the rows of a merge mode. `winners` decides for each
key, whole columns at a time. `passes` does it within a memory budget, whatever the slice's size. `delete_records`
has the ordering values of deletes. The rules, and where Hudi's releases differ, are in `docs/explanation/merge.md`.
"""
