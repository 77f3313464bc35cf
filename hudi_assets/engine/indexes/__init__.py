"""Hudi's indexes: how its writers find the file group of a key, and what a base file owes them."""
