"""Small tables as Apache Hudi's writers leave them, made without Hudi and without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_assets.engine import HudiTable
from tests.tables.local_session import LocalSession


def others(path: Path, session: LocalSession, *batches: list[Any], type_: pa.DataType | None = None) -> None:
    """A table as Apache Hudi leaves it: of our settings there is none, and its commits state no event times."""
    schema = pa.schema([("id", pa.int64()), ("ts", type_ or pa.int64())])
    table = HudiTable.create(str(path), schema, record_key=["id"], ordering_field="id", buckets=1)
    for values in batches:
        rows = [{"id": n, "ts": value} for n, value in enumerate(values)]
        table.upsert(session, session.rows(rows, schema))
    leave_to_others(path)


def leave_to_others(path: Path) -> None:
    """Takes out of a table of version 6 what only this project writes."""
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text().replace("event.time.field=id", "event.time.field=ts").splitlines()
    properties.write_text("\n".join(line for line in lines if not line.startswith("hudi_assets.")) + "\n")
    forget_event_times(path)


def forget_event_times(path: Path) -> None:
    """Delta commits as Apache Hudi writes them: no event times, no tag of ours; the clock time stays."""
    for file in path.glob(".hoodie/*.deltacommit"):
        body = json.loads(file.read_text())
        del body["extraMetadata"]["hudi_assets.event.time"]
        for stats in body["partitionToWriteStats"].values():
            for stat in stats:
                stat["minEventTime"] = stat["maxEventTime"] = None
        file.write_text(json.dumps(body) + " ")  # another size, so that no process takes it for the one it read
