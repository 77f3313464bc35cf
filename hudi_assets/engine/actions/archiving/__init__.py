"""Archiving: old instants leave the active timeline for the archived one, so that it never grows without bound.

- `archive.Archiver`: archives one table's timeline, under its lock. Begin here.
- `archive.ArchiveResult`: which instants went, or none.
- `plan`: which instants go. Pure. `Keep` is how many writes stay, `Bounds` what the start of the timeline must not
  pass: pending work, savepoints, what a clean retains.
- `metadata_table`: archives the metadata table's own timeline, where only this project writes it.

`HudiTable.archive` calls it. How an archived file looks is told in `timeline.archive`; what is kept of archived commits
for event times is in `timeline.archived_facts`.
"""
