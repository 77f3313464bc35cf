"""Snapshot, read-optimized, incremental and time travel queries."""
