"""What hoodie.properties says, checked before anything else is believed.

- `config.TableConfig`: all of it as a frozen value. Begin at `config.read_config`, which reads, checks and overlays.
- `new_table`: the properties of a table that is made here.
- `merging.MergeSettings`, `compaction.CompactionSettings`, `indexes.IndexSettings`, `parquet.ParquetSettings`,
  `key_generators`: a subject each. `not_merged.NotMerged`: why a table's log records are not merged here.
- `stated`: checks settings that are given for one process. `written_again`: one of the owner's words.
- `java_properties`: the format of the file.

A `TableState` has a `TableConfig`; everything that opens or makes a table calls `config`. What depends on the table's
version is asked of its `layout`. `docs/reference/settings.md` lists the keys.
"""
