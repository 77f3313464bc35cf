"""Event times of a table: the freshness that is promised, and what it rests on.

- `table_times.TableTimes`: the event times of a reading's log files, and the thresholds of its compactions. Begin
  here.
- `ranges`: what is known of each log file, told partition by partition.
- `remembering`: what commits state of them, kept beyond their archiving.
- `column_unit`: the event-time column and the unit in which it counts.
- `commit_bound`: what a commit's time says of records without event time.
- `freshness`: the promise itself. Pure. `hidden_times`: what rows in no view mean for it.
- `latency.ObservedLatency`, `lateness.LateLog`: how late records come, learned from the commits; which records came
  too late.

Planning (`actions.compaction`), `status` and the sensor's look call these.
"""
