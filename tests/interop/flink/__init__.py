"""A writer that takes the steps of Hudi's Flink job, in its order, with Hudi's classes. No Flink runs: see job.py."""
