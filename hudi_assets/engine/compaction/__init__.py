"""Compaction on event time: what is due, what it takes, planning and executing it."""
