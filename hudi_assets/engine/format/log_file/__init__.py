"""A Hudi log file, bytes ↔ blocks (org.apache.hudi.common.table.log.HoodieLogFormat).

`codec` reads and writes blocks with their headers and footers. `delete_codec` has the content of delete blocks.
`block_times` has what the header of a block of ours says of its records' event times. Records are read above, in
`table.log_files`. `docs/reference/log_format.md` describes the bytes.
"""
