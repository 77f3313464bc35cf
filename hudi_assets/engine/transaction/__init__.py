"""Changing a table safely: locks, recovery, publishing. Every action goes through `transaction.transaction`.

The order never changes: refuse another time zone → lock → recover what a crash left → read → refuse what is refused
→ act → check that the lock is still ours → publish. `open_table.OpenTable` is what an action needs of a table.

- `lock`: locks between processes. `lock_providers`: those that Hudi's writers take too, as a file (`file_lock`) or
  in ZooKeeper (`zookeeper`). `lease`: those of a store of objects. `holder`: what a lock says of who holds it.
  `renewing`: a lock that ends by time, renewed by a thread. `heartbeat`: who is alive.
- `publish`: the one writer of the timeline, and the order in which files appear.
- `recover`: what each transaction begins with. `clean`, `rollback`, `restore`: carrying out what is published, from
  wherever an earlier attempt stopped; `rollback_plan`: what a rollback takes out. `leftovers`: the same as a cheap
  look.
- `other_executors`, `late_log_files`: what another engine does meanwhile.

`docs/explanation/concurrency.md` has the protocol and the measurements behind it.
"""
