"""Avro ↔ Arrow: the records of data blocks, and the container files of the timeline.

- `codec`: a data block's bytes to an Arrow table and back (`decode_records`, `encode_records`). Begin here.
- `columns`, `encode`: the same for a column of all rows at a time, which is faster than a record at a time.
  `columns.Irregular`: records that it leaves to the slower way.
- `logical`, `project`: values to other types, and columns to another schema.
- `schema.AvroType`: Avro schemas to Arrow's and back, in the shape that Hudi's Spark writer gives them.
- `container`, `record`: the Avro files of the timeline, each of one record.

The log reader (`table.log_files`), the writer of log files, the metadata table and the timeline's codecs call it.
"""
