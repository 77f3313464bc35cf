"""Hudi's metadata table: HFiles ↔ records ↔ which files the table has; read, and kept right by what is written here."""
