"""Compaction on event time: what is due, what it takes, planning and executing it.

- `planning.CompactionPlanner` and `executor.CompactionExecutor`: the two halves. `hudi_executor`: Hudi executes our
  plan. `who_executes`: whether the one of the two that is asked for can.
- `threshold`, `triggers`: up to which event time, and when. `strategy`, `closure`: which log files (pure);
  `hudi_strategies`: Hudi's own choices. `placement`: at which instant a plan stands. `series`: several plans up to
  one threshold.
- `residue`: what a compaction leaves for readers of the new slice. `tasks`: what a worker does for one file group.
- `cost`: what each threshold would cost. `other_engines`, `decimal_limits`: what is refused, or settled, beside
  others.

`docs/explanation/compaction.md` has the rules and why they are right.
"""
