"""A table as it stands: its settings, its version's layout, its file slices, and one reading of all of it.

`state.TableState` is the noun to know, and the place to begin: one reading of a table, from the timeline listed first.
What a caller asks of it is computed when it is asked for. It knows no event times; `event_time.table_times` does.

- `settings.config.TableConfig`: hoodie.properties, checked before anything else is believed.
- `layout.interface.Layout`: everything that depends on the table's version. No other package asks for the version.
- `schema_evolution`, `schema_on_read`, `record_keys`, `index`: columns, keys and how writers find a key's file group.
- `gaps`: which values of its rows are filled from older records of the key.
- `log_files`, `slices`: log files as records; files and timeline as file slices.
- `metadata`: Hudi's metadata table, read and kept right.
- `files`: what a reading tells of files: missing, orphaned, needed, stray, of the past.
- `base_file_writer.BaseFileWriter`: a base file with Hudi's footer. `zone_check`: no work in another
  zone than the writers'.

Actions and queries take a state; only `transaction.OpenTable.read` makes one.
"""
