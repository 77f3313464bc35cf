"""AWS Glue on this machine: moto's server, and tables in it as Hudi's sync leaves them.

moto takes each UpdateTable, whatever its VersionId. AWS refuses one that is not for the newest version, by
ConcurrentModificationException, and changes nothing. So the server here looks at the version before moto does. It also
denies what `denied` names, in AWS's words: moto's own policies answer in another form than Glue does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import boto3
import pytest
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.glue.responses import GlueResponse
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from hudi_assets.catalog.publication import PREFIX

REGION: Final = "eu-central-1"
URI: Final = f"glue://{REGION}"
ACCOUNT: Final = "123456789012"
KEY, SECRET, TOKEN = "AKIDOFATEST", "a-secret-of-a-test", "a-token-of-a-test"
# Whoever has this environment finds these credentials, and no others.
ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": TOKEN,
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_CALLS: Final = {
    "get_table": "GetTable",
    "create_table": "CreateTable",
    "update_table": "UpdateTable",
    "delete_table": "DeleteTable",
}
# Glue's own: UpdateTable takes none of them.
_OF_GLUE: Final = ("VersionId", "UpdateTime", "CreateTime", "CatalogId", "DatabaseName")
_HADOOP: Final = "org.apache.hudi.hadoop"
_FORMATS: Final = {
    "ro": f"{_HADOOP}.HoodieParquetInputFormat",
    "rt": f"{_HADOOP}.realtime.HoodieParquetRealtimeInputFormat",
}


@dataclass
class Glue:
    """`asked`: each call of a table, by its name and what it said. `denied`: calls that are refused.

    `before_update`: is done before the next UpdateTable is looked at, once.
    """

    client: Any
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    before_update: Callable[[], None] | None = None

    def table(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_table(DatabaseName="lake", Name=name)["Table"]
        return found

    def updates(self) -> list[dict[str, Any]]:
        return [said for call, said in self.asked if call == "UpdateTable"]

    def set(self, name: str, **parameters: str) -> None:
        """As Hudi's sync sets parameters: with no version, and with those fields alone that it knows."""
        table = self.table(name)
        kept = {field: table[field] for field in ("Name", "TableType", "PartitionKeys", "StorageDescriptor")}
        changed = {**kept, "Parameters": table["Parameters"] | parameters}
        self.client.update_table(DatabaseName="lake", TableInput=changed, SkipArchive=True)


def others(table: dict[str, Any]) -> dict[str, Any]:
    """All of a table that is not ours, and not Glue's to set."""
    parameters = {key: value for key, value in table["Parameters"].items() if not key.startswith(PREFIX)}
    return {key: value for key, value in table.items() if key not in _OF_GLUE} | {"Parameters": parameters}


def synced_table(name: str, location: str, **fields: Any) -> dict[str, Any]:
    """As Hudi's AwsGlueCatalogSyncTool makes it of a partitioned table of Spark's.

    tests/interop/test_glue_sync.py compares it with what Hudi 0.15.0 makes.
    """
    kind = name.rpartition("_")[2]
    now = datetime(2026, 3, 1, 5, 0, 0, 123000, tzinfo=UTC)
    columns = [("_hoodie_commit_time", "string"), ("id", "string"), ("at", "bigint"), ("price", "decimal(10,2)")]
    serde = {"hoodie.query.as.ro.table": str(kind == "ro").lower(), "path": location, "serialization.format": "1"}
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "hudi.metadata-listing-enabled": "FALSE",
            "last_commit_time_sync": "20260301050000000",
            "spark.sql.create.version": "3.5.9",
            "spark.sql.sources.provider": "hudi",
            "spark.sql.sources.schema.numPartCols": "1",
            "spark.sql.sources.schema.numParts": "1",
            "spark.sql.sources.schema.part.0": '{"type":"struct","fields":[]}',
            "spark.sql.sources.schema.partCol.0": "part",
        },
        "PartitionKeys": [{"Name": "part", "Type": "string", "Comment": ""}],
        "StorageDescriptor": {
            "Columns": [{"Name": column, "Type": kind, "Comment": ""} for column, kind in columns],
            "Location": location,
            "InputFormat": _FORMATS[kind],
            "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
            "SerdeInfo": {
                "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
                "Parameters": serde,
            },
        },
        "LastAccessTime": now,
        "LastAnalyzedTime": now,
        **fields,
    }


@contextmanager
def _server(glue: list[Glue]) -> Iterator[str]:
    """`glue`: the last of them is asked; set before the first call."""
    of_moto = {name: getattr(GlueResponse, name) for name in _CALLS}

    def look(response: GlueResponse, call: str) -> None:
        one, said = glue[-1], response.parameters
        one.asked.append((call, said))
        if call in one.denied:
            raise JsonRESTError(
                "AccessDeniedException",
                f"User: arn:aws:sts::{ACCOUNT}:assumed-role/publisher/i is not authorized to perform: glue:{call} on "
                f"resource: arn:aws:glue:{REGION}:{ACCOUNT}:catalog because no identity-based policy allows it",
            )

    def looked_at(name: str) -> Callable[[GlueResponse], ActionResult]:
        def answer(response: GlueResponse) -> ActionResult:
            if name == "update_table":
                first, glue[-1].before_update = glue[-1].before_update, None
                if first is not None:
                    first()
            look(response, _CALLS[name])
            if name == "update_table":
                check_version(response)
            done: ActionResult = of_moto[name](response)
            return done

        return answer

    def check_version(response: GlueResponse) -> None:
        said = response.parameters
        now = response.glue_backend.get_table(said["DatabaseName"], said["TableInput"]["Name"]).as_dict()["VersionId"]
        if said.get("VersionId", now) != now:
            raise JsonRESTError(
                "ConcurrentModificationException", "Update table failed due to concurrent modifications."
            )

    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(GlueResponse, name, looked_at(name))
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield f"http://{host}:{port}"
        finally:
            server.stop()


@pytest.fixture(scope="module")
def glue_server() -> Iterator[tuple[str, list[Glue]]]:
    """One for all tests of a file: to stop it takes half a second."""
    asked: list[Glue] = []
    with _server(asked) as endpoint:
        yield endpoint, asked


@pytest.fixture
def glue(glue_server: tuple[str, list[Glue]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Glue]:
    """AWS Glue, to which boto3's own environment leads, with an empty database `lake`."""
    endpoint, asked = glue_server
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL_GLUE": endpoint}.items():
        monkeypatch.setenv(name, value)
    made = Glue(boto3.session.Session().client("glue", region_name=REGION))
    asked.append(made)
    made.client.create_database(DatabaseInput={"Name": "lake"})
    yield made
    made.client.delete_database(Name="lake")
