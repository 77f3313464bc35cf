"""Avro ↔ Arrow: the records of data blocks, and the container files of the timeline."""
