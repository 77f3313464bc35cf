"""`HudiTable`, the engine's public class: one table, every call reading it as it stands and leaving it whole.

`table` creates and opens. The methods are in parts by what they are for: `reads` (queries), `writes` (upsert, delete,
bulk insert), `maintenance` (compaction, rollback, clean, archive, savepoints), `reports` (freshness, statistics).
`opened` is what all of them have: an `OpenTable`, and its state whenever it is asked.
"""
