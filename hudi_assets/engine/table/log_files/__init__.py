"""Log files as records: which blocks of a slice's log files count, and what stands in them.

- `reader.FoundBlocks`: the blocks that count, in log order, and what was passed over (rolled back, not committed,
  damaged). `reader.find_blocks` finds them. Begin here.
- `reader.StoredBlock`: a data or delete block that counts, with its content still in the file. `reader.LogScan`: the
  records of some log files.
- `reader.CommittedInstants`: the timeline as a log reader needs it.
- `headers`: the headers of a log file's blocks, with errors that name table and file.
- `summaries`: what selection needs to know of a log file, from its blocks' headers or, where those do not say, its
  records.

File slices (`table.slices`) read rows by it, event times (`event_time`) ask `summaries`, and the metadata table is read
by it too. The bytes are in `format.log_file`.
"""
