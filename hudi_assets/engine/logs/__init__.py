"""Log files: bytes ↔ blocks ↔ records."""
