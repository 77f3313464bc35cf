"""What hoodie.properties says, checked before anything else is believed.

`config.read_config` is the way in. The other modules have a subject each: `merging`, `compaction`, `indexes`,
`parquet`, `key_generators`, `not_merged`; `stated` checks settings that are given for one process, `written_again` is
one of the owner's words. What depends on the table's
version is asked of its `layout`. `docs/reference/settings.md` lists the keys.
"""
