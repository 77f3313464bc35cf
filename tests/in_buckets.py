"""Do the crash tests and the state machine make their tables in buckets? `tests/stores/folder.py` has those."""

import os

IN_BUCKETS = os.environ.get("TABLES_IN") == "bucket"
