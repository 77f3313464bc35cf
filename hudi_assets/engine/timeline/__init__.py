"""The timeline: which instants there are, and what their files hold. Values and codecs; nothing is published here.

- `instants.Timeline`: a timeline as a value: what is committed, pending, archived. Begin here.
- `commit_metadata.CommitMetadata` (with `commit_json`, `commit_avro`, `plain_stats`), `compaction_plan`,
  `clean_metadata`, `rollback_metadata`, `carried_over`: what the files of each action hold, as values.
- `clock`, `zone.Zone`: making an instant, and the zone that instants are read in. `writers_zone`: which zone a table's
  writers are in, by what they left.
- `markers`, `attempts.Staged`: files that an instant means to write, and files that task attempts write before they
  count.
- `archive`: instants that have left the active timeline. `archived_facts.Memory`: what we keep of them
  beside the table.
- `stat_columns`: write stats in a tenth of the memory.
- `decode_cache`, `whole_files`, `checked_json`: reading files once, whole, and only if they are what was written.

`table.state` reads a timeline; `transaction.publish` writes one. `docs/reference/format.md` describes the files.
"""
