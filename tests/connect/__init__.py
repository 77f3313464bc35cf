"""Spark Connect: a server in a process of its own, as a client of other machines would find it."""
