"""Compaction on event time: what is due, what it takes, planning and executing it.

- `planning.CompactionPlanner` and `executor.CompactionExecutor`: the two halves. Begin at the planner.
  `hudi_executor.HudiExecutor`: Hudi executes our plan. `who_executes`: whether the one that is asked for can.
- `threshold`, `triggers`: up to which event time, and when. `strategy.CompactionStrategy`, `closure`: which log files
  (pure); `candidates`: what is kept of each slice until the plan is made. `hudi_strategies`: Hudi's own choices.
  `placement`, in `table.layout`: at which instant a plan stands. `series.CompactionSeries`: several plans up to one
  threshold.
- `tasks.CompactionSpec`: what a worker needs for a file group. `residue`: what a compaction leaves for readers of the
  new slice.
- `cost.CostPoint`: what a threshold would cost. `other_engines`, `decimal_limits`: what is refused, or settled, beside
  others.

`HudiTable` calls it (`hudi_table.maintenance`). `docs/explanation/compaction.md` has the rules and why they are right.
"""
