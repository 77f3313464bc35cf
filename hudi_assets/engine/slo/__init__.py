"""When to compact so that a freshness SLO is kept with as few bytes as it allows. Pure: values in, values out.

- `policy.propose`: the rule. `values`: what it is told and what it answers. `selection`: what a threshold takes.
  `learning`: how long a compaction will take. `bounds`: the owner's hours, gaps and bytes.
  `terms`: the owner's words.
- `simulation`: days of a table in seconds, with this policy and others.

`docs/explanation/slo.md` has the rule and what it saves.
"""
