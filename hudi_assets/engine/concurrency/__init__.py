"""Several processes on one table: locks, heartbeats, and writes that a plan did not see."""
