"""Changing a table safely: locks, recovery, publishing. Every action goes through `transaction.transaction`.

Begin there. The order never changes: refuse another time zone → lock → recover what a crash left → read → refuse what
is refused → act → check that the lock is still ours → publish. `open_table.OpenTable` is what an action needs of a
table, and a `Transaction` is that table under its write lock.

- `lock.HeldLock`: locks between processes. `lock_providers.SharedLock`: those that Hudi's writers take too, as a file
  (`file_lock`) or in ZooKeeper (`zookeeper`). `lease.Lease`: those of a store of objects. `holder`: what a lock says of
  who holds it. `renewing`: a lock that ends by time, renewed by a thread. `heartbeat.Heartbeats`: who is alive.
- `publish.Publisher`: the one writer of the timeline, and the order in which files appear.
- `recover`: what each transaction begins with. `clean`, `rollback`, `restore`: carrying out what is published, from
  wherever an earlier attempt stopped; `rollback_plan`: what a rollback takes out. `leftovers`: the same as a cheap
  look. `taken_back`: notes of what was undone, for commits that arrive afterwards.
- `other_executors`, `late_log_files`, `flink_job`: what another engine does meanwhile.

The actions call it. `docs/explanation/concurrency.md` has the protocol and the measurements behind it.
"""
