"""HFiles as Hudi writes them (HBase's format, version 3): the files of the metadata table.

`file` is the way in: bytes ↔ entries of key and value. `blocks` has the blocks, `trailer` the end of the file.
"""
