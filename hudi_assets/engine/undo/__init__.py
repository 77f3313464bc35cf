"""Rollback, restore, and recovery from what a crash left."""
