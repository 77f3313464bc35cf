"""Which time zone a table's writers are in, by what they left; and instants that were made in a zone east of theirs.

- `evidence.Verdict`: what the files say of a zone. Begin here. It rests on `evidence.Sighting`, an instant beside the
  modification time of its file, and on `evidence.SavedBy`, what a writer of hoodie.properties said of its own clock.
- `damage.Ahead`: an instant ahead of true time, and until when it will be.

Both are pure. `table.zone_check` asks them, and refuses to work in another zone; `table.settings` reads `SavedBy`.
`docs/explanation/timezones.md` says why.
"""
