"""Event-time compaction for Apache Hudi merge-on-read tables, under Dagster."""
