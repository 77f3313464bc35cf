"""Days of a table in seconds: what a policy reads, writes and misses. No Spark, no files.

- `feeds`: five made-up distributions of lateness. `feed`: what a simulation is given, made up or of a real table.
- `table`: the model of a table. `run`: the simulation. `policies`: ours and others'.
- `least`: bytes below which no policy stays that keeps the SLO.
- `outcome`: what came of it. `comparison`: every policy on one feed, with those of Hudi tuned afterwards.
"""
