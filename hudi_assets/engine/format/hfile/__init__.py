"""HFiles as Hudi writes them (HBase's format, version 3): the files of the metadata table.

- `file.HFile`: a whole file, bytes to entries of key and value and back. Begin here. `file.HFileReader`: one that is
  read where it is asked for.
- `blocks.Block`: a block's contents, unpacked; `blocks.IndexEntry`: where one is; `blocks.Codec`: how it is packed.
- `trailer.Trailer`: the end of a file, which says where everything is. `trailer.Flavour`: whose reader it is for, as
  version 6 is read by HBase's and versions 8 and 9 by Hudi's own.

`table.metadata` calls it, and a layout says which flavour its version has. `docs/reference/metadata_table.md` describes
the bytes.
"""
