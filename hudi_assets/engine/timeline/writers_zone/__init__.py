"""Which time zone a table's writers are in, by what they left; and instants that were made in a zone east of theirs.

`evidence` compares instants with the modification times of their files. `damage` finds instants ahead of true time.
Pure. `table.zone_check` refuses to work in another zone. `docs/explanation/timezones.md` says why.
"""
