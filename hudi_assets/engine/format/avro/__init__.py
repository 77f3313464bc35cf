"""Avro ↔ Arrow: the records of data blocks, and the container files of the timeline.

`codec` is the way in: a data block's bytes to an Arrow table and back. `columns` and `encode` do the same for a
column of all rows at a time, which is faster than a record at a time; `logical` and `project` bring values to other
types. `schema` turns Avro schemas into Arrow's and back, in the shape that Hudi's Spark writer gives them.
`container` and `record` read and write the Avro files of the timeline.
"""
