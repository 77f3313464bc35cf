"""When to compact so that a freshness SLO is kept with as few bytes as it allows. Pure: values in, values out.

- `policy.propose`: the rule. Begin here.
- `values`: what it is told (`View`, `History`, `Clock`, `SloTerms`). It answers `StartNow` or `WaitUntil`, of `model`.
- `levels.Work`: what waits, by threshold, and the latest start of each part. `selection`: what a threshold takes.
- `learning.Speed`: how long a compaction will take. `bounds`: the owner's hours, gaps and bytes.
- `terms`: the owner's words. `words`: the policy's own, for why it chose so.
- `simulation`: days of a table in seconds, with this policy and others.

`past.rewriting` tells it of a real table, for `HudiTable.propose_compaction`. `docs/explanation/slo.md` has the rule
and what it saves.
"""
