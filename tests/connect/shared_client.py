"""A run of its own process, which uses the shared Spark: `python shared_client.py work [FILE]`.

It prints the server's process when it has a session. `work` is what it does then:

- `count`: a query, and it prints the answer.
- `beat FILE`: a task that says in FILE that it lives, for as long as it does.
- `many FOLDER`: 60 tasks of half a second, each of which leaves a file in FOLDER as it begins.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from hudi_assets.engine import problem_of
from hudi_assets.shared_spark.sessions import servers, shared_session
from tests.connect.shared import SETTINGS


def beating(file: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    for batch in batches:
        for _ in range(600):
            with open(file, "w") as out:
                out.write(str(time.time()))
            time.sleep(0.1)
        yield batch


def leaving(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    for batch in batches:
        Path(folder, str(batch.column(0)[0])).touch()
        time.sleep(0.5)
        yield batch


spark = shared_session(SETTINGS)
pid, session_id = os.getpid(), str(getattr(spark, "session_id", ""))
print(json.dumps({"server": servers()[0].running.pid, "session": session_id, "pid": pid}), flush=True)
work, *files = sys.argv[1:]
try:
    if work == "count":
        print(spark.range(7).count(), flush=True)
    elif work == "many":
        spark.range(60, numPartitions=60).mapInArrow(lambda batches: leaving(files[0], batches), "id long").collect()
    else:
        spark.range(1, numPartitions=1).mapInArrow(lambda batches: beating(files[0], batches), "id long").collect()
except Exception as error:
    print(problem_of(error) or repr(error), flush=True)
    sys.exit(1)
