"""A Hudi log file, bytes ↔ blocks (org.apache.hudi.common.table.log.HoodieLogFormat).

- `codec.LogBlock`: one block with its headers (`HeaderKey`) and its type (`BlockType`), or a stretch of damaged bytes.
  Begin here: `read_blocks` and `encode_block`.
- `delete_codec.DeleteRecord`: one deleted key in a delete block, with its ordering value (`OrderingType`).
- `block_times.BlockTimes`: what the header of a block of ours says of its records' event times, so that its content
  need not be read.

Blocks are written by `actions.writing` and by residues of compactions. Records are read above, in `table.log_files`.
`docs/reference/log_format.md` describes the bytes.
"""
