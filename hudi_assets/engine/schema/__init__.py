"""A table's schema as it changes, and base files of older ones."""
