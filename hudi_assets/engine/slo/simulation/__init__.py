"""Days of a table in seconds: what a policy reads, writes and misses. No Spark, no files.

- `run.simulate`: a policy over a feed. Begin here.
- `feed.Feed`: commits and their log files, made up or of a real table. `feeds`: five made-up ones.
- `table.Table`: the model of a table: what a compaction makes of base and log files.
- `policies.Policy`: ours (`Ours`) and others' (`CompactEvery`, `HudiTrigger`).
- `outcome.Outcome`: bytes, compactions, and for how long the SLO was missed.
- `least`: bytes below which no policy stays that keeps the SLO.
- `comparison.Comparison`: every policy on one feed, with those of Hudi tuned afterwards.

`hudi-assets simulate` calls `comparison`. The tests of the policy call `run`.
"""
