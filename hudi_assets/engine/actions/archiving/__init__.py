"""Archiving: old instants leave the active timeline. `archive` is the way in, `plan` says which instants (pure),
`metadata_table` archives the metadata table's own timeline.
"""
