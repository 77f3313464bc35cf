"""Upserts and deletes: from a DataFrame to log files and a delta commit."""
