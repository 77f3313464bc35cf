"""Cleaning: file slices that no retained view reads are deleted, with Hudi's plan and metadata on the timeline.

- `clean.Cleaner`: plans a clean, publishes the plan, and has it carried out. Begin here.
- `plan.Retention`: one of Hudi's policies and how much it retains: commits, file versions or hours. `plan` says which
  files may go. Pure.
- `query_grace`: how long a replaced slice stays for the queries that read it, with our cleaner and with Hudi's.

`HudiTable.clean` calls `Cleaner`. Planning a compaction asks `query_grace` what its readers will have. What deletes the
files, also after a crash, is `transaction.clean`. `docs/explanation/clean.md` has the rules.
"""
