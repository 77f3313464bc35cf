"""The archived timeline: instants that have left the active one.

- `kind.Archive`: what the engine asks of it. Begin here. `kind.TimelineFile`: a file that is to be archived.
- `v6.ArchivedLogs`: that of table version 6, log files of Avro blocks. `v6.ArchivedEntry`: one file in them.
- `v8`: that of versions 8 and 9, Parquet files in layers, as it is read. `v8.Manifest`: the files of a snapshot of it.
- `layers.ArchivedLayers`: the same, as it is written and made into larger files.

A layout says which kind its tables have. `actions.archiving` writes it, and whoever asks for an instant of long ago
reads it through the layout.
"""
