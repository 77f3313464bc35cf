"""Do the crash tests and the state machine make their tables in buckets? `tests/stores/folder.py` has those."""

import os

IN_HDFS = os.environ.get("TABLES_IN") == "hdfs"
IN_BUCKETS = IN_HDFS or os.environ.get("TABLES_IN") == "bucket"
