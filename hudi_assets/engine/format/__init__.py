"""Hudi's files as bytes: log files, Avro, HFiles, Parquet, bloom filters. No table, no timeline, no settings.

Bytes come in and go out; nothing here opens a path by itself. Each module follows a format that Hudi defines and
names the Hudi class that it follows. `docs/reference/log_format.md` and `docs/reference/metadata_table.md` describe the
formats in words.

- `log_file`: a log file's blocks (`LogBlock`): data, deletes and commands, and the event times in their headers. Begin
  here.
- `avro`: Avro data blocks as Arrow tables, and the container files of the timeline.
- `hfile`: the files of the metadata table (`HFile`).
- `parquet_reader`, `parquet_footer`: Parquet that nobody has checked yet; `parquet_distinct`, `parquet_required`: how
  columns are written.
- `bloom`: the bloom filter in a base file's footer.
- `paths`: paths that a file names must stay inside the table.

The log reader of `table.log_files`, the metadata table and the timeline's codecs call this package.
"""
