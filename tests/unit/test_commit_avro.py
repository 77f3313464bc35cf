"""Commit metadata of versions 8 and 9: Apache Hudi's own files, and ours."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.record import decode, encode
from hudi_assets.engine.timeline.clean_metadata import decode_clean, decode_clean_plan, decode_savepoint
from hudi_assets.engine.timeline.commit_avro import COMMIT, REPLACE, decode_commit, encode_commit
from hudi_assets.engine.timeline.commit_metadata import THRESHOLD, WRITER, CommitMetadata, WriteStat
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from hudi_assets.engine.timeline.rollback_metadata import (
    decode_restore_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
)

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("hudi_1_2_v8", "hudi_1_2_v9")

LOG = WriteStat(
    path="p=a/.00000000-f-0_20260101000000000.log.1_0-1-2",
    partition="p=a",
    file_id="00000000-f-0",
    prev_commit="20260101000000000",
    size=1011,
    num_writes=3,
    num_inserts=1,
    num_updates=2,
    num_deletes=1,
    min_event_time=-5,
    max_event_time=1_700_000_000_000,
    log_version=1,
    base_file="",
    log_files=(".00000000-f-0_20260101000000000.log.1_0-1-2",),
)
BASE = WriteStat(
    path="p=a/00000000-f-0_0-0-0_20260101000000001.parquet",
    partition="p=a",
    file_id="00000000-f-0",
    prev_commit="20260101000000000",
    size=434_982,
    num_writes=3,
    logs_compacted=2,
    log_records=6,
    log_bytes_compacted=652,
    log_blocks=2,
)
EXTRA = {"schema": '{"type":"record"}', WRITER: "hudi-assets", THRESHOLD: "1700000000000"}


def golden(version: str, suffix: str) -> tuple[str, bytes]:
    """(instant, content) of the one file of a kind."""
    (file,) = (f for f in (GOLDEN / version).glob(f"*{suffix}") if f.name.partition(".")[2] == suffix[1:])
    return file.name[:17], file.read_bytes()


def bare(schema: Any) -> Any:
    """A schema without what says nothing about its values: defaults and documentation, where they may stand."""
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if isinstance(schema, dict):
        return {k: bare(v) for k, v in schema.items() if k not in ("default", "doc", "namespace")}
    return schema


# ------------------------------------------------------------------------------------ Apache Hudi's files


@pytest.mark.parametrize("version", VERSIONS)
def test_hudis_delta_commit(version: str) -> None:
    instant, data = golden(version, ".deltacommit")
    commit = decode_commit(data, "x")
    assert (commit.operation, commit.compacted, commit.replaced) == ("UPSERT", False, {})
    assert {stat.partition for stat in commit.stats} == {"p=a"}
    assert sum(stat.num_updates for stat in commit.stats) == 6
    assert all(instant in stat.path and stat.log_version == 1 for stat in commit.stats)
    assert json.loads(commit.extra["schema"])["type"] == "record"


@pytest.mark.parametrize("version", VERSIONS)
def test_hudis_compaction_and_its_plan(version: str) -> None:
    instant, data = golden(version, ".commit")
    commit = decode_commit(data, "x")
    assert (commit.operation, commit.compacted) == ("COMPACT", True)
    assert all(stat.path.endswith(f"_{instant}.parquet") and stat.log_version is None for stat in commit.stats)
    planned, plan_data = golden(version, ".compaction.requested")
    plan = decode_plan(planned, plan_data, "x")
    assert planned == instant
    assert {(o.file_id, len(o.log_files)) for o in plan.operations} == {
        (stat.file_id, stat.logs_compacted) for stat in commit.stats
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_hudis_replacecommit(version: str) -> None:
    _, data = golden(version, ".replacecommit")
    commit = decode_commit(data, "x")
    assert commit.operation == "INSERT_OVERWRITE"
    assert len(commit.replaced["p=a"]) == 2
    assert not {stat.file_id for stat in commit.stats}.intersection(commit.replaced["p=a"])


@pytest.mark.parametrize("version", VERSIONS)
def test_hudis_unfinished_write(version: str) -> None:
    """Its stats name no file yet: nothing is believed of it but that it is there."""
    commit = decode_commit(golden(version, ".deltacommit.inflight")[1], "x")
    assert commit.operation == "UPSERT"
    assert {stat.path for stat in commit.stats} == {""}


@pytest.mark.parametrize("version", VERSIONS)
def test_hudis_other_actions_are_as_on_version_6(version: str) -> None:
    at, data = golden(version, ".clean")
    cleaned = decode_clean(at, data, "x")
    at, data = golden(version, ".clean.requested")
    assert decode_clean_plan(at, data, "x").plan.files == {"p=a": cleaned.deleted}
    assert cleaned.deleted
    at, data = golden(version, ".savepoint")
    assert all(path.startswith("p=a/") for path in decode_savepoint(at, data, "x").files)
    plan = decode_rollback_plan(golden(version, ".rollback.requested")[1], "x")
    assert all(plan.target.timestamp in path for path in plan.files)
    done = decode_rollback_metadata(golden(version, ".rollback")[1], "x")
    assert done["commitsRollback"] == [plan.target.timestamp]
    restore = decode_restore_plan(golden(version, ".restore.requested")[1], "x")
    assert restore.savepoint == at


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("suffix", "schema"), [(".deltacommit", COMMIT), (".commit", COMMIT), (".replacecommit", REPLACE)]
)
def test_our_schema_is_hudis(version: str, suffix: str, schema: dict[str, Any]) -> None:
    written = fastavro.reader(io.BytesIO(golden(version, suffix)[1])).metadata["avro.schema"]
    assert bare(schema) == bare(json.loads(written))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("suffix", [".deltacommit", ".commit", ".replacecommit"])
def test_written_again_it_is_the_same(version: str, suffix: str) -> None:
    commit = decode_commit(golden(version, suffix)[1], "x")
    assert decode_commit(encode_commit(commit), "x") == commit


# ----------------------------------------------------------------------------------------------- ours


@pytest.mark.parametrize(
    "commit",
    [
        CommitMetadata("UPSERT", (LOG,), EXTRA),
        CommitMetadata("COMPACT", (BASE, LOG), EXTRA, compacted=True),
        CommitMetadata("INSERT_OVERWRITE", (BASE,), {}, replaced={"p=a": ("g", "h")}),
        CommitMetadata("UNKNOWN", ()),
    ],
)
def test_ours_comes_back(commit: CommitMetadata) -> None:
    assert decode_commit(encode_commit(commit), "x") == commit


def test_ours_has_what_java_unboxes() -> None:
    (stat,) = decode(encode_commit(CommitMetadata("COMPACT", (BASE,))), "x")["partitionToWriteStats"]["p=a"]
    mine = {name for name, value in stat.items() if value is None}
    _, data = golden("hudi_1_2_v9", ".commit")
    theirs, _ = decode(data, "x")["partitionToWriteStats"]["p=a"]
    assert mine <= {name for name, value in theirs.items() if value is None} | {"runtimeStats", "prevBaseFile"}


def test_an_empty_file_and_what_version_6_left() -> None:
    assert decode_commit(b"", "x") == CommitMetadata("UNKNOWN", ())
    commit = CommitMetadata("UPSERT", (LOG,), EXTRA)
    assert decode_commit(commit.to_json(), "x") == commit


def test_fields_of_another_release() -> None:
    """Fewer fields than ours, and one that nobody knows yet."""
    stat = {
        "type": "record",
        "name": "HoodieWriteStat",
        "fields": [
            {"name": "path", "type": ["null", "string"]},
            {"name": "partitionPath", "type": ["null", "string"]},
            {"name": "fileId", "type": "string"},
            {"name": "fileSizeInBytes", "type": ["null", "long"]},
            {"name": "colourOfTheFile", "type": "string"},
        ],
    }
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    schema = {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "somethingNew", "type": "long"},
            {"name": "operationType", "type": ["null", "string"]},
            {"name": "partitionToWriteStats", "type": stats},
        ],
    }
    value = {"path": "p/f", "partitionPath": "p", "fileId": "f", "fileSizeInBytes": 7, "colourOfTheFile": "blue"}
    data = encode(schema, {"somethingNew": 1, "operationType": "UPSERT", "partitionToWriteStats": {"p": [value]}})
    (read,) = decode_commit(data, "x").stats
    assert (read.path, read.size, read.prev_commit) == ("p/f", 7, "null")


# -------------------------------------------------------------------------------------------- hostile


def with_stat(**changes: Any) -> bytes:
    body: dict[str, Any] = CommitMetadata("UPSERT", (LOG,)).to_body()
    stat = {k: v for k, v in body["partitionToWriteStats"]["p=a"][0].items() if k != "recordsStats"} | changes
    schema = json.loads(json.dumps(COMMIT))
    return encode(schema, {**body, "partitionToWriteStats": {"p=a": [stat]}})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PAR1 is no commit", "neither Avro nor JSON"),
        (b"Obj\x01", "cannot be parsed"),
        (encode_commit(CommitMetadata("UPSERT", (LOG,)))[:-30], "cannot be parsed"),
        (encode({"type": "array", "items": "long"}, [1]), "one record"),  # type: ignore[arg-type]
        (b'{"partitionToWriteStats": 3}', "no dict"),
        (b"{" * 100_000, "cannot be parsed"),
        (with_stat(path="../../etc/passwd"), "outside the table"),
        (with_stat(partitionPath="/etc"), "outside the table"),
        (encode_commit(CommitMetadata("COMPACT", (), {THRESHOLD: "soon"})), "cannot be parsed"),
        (encode_commit(CommitMetadata("X", (), replaced={"../p": ("f",)})), "outside the table"),
    ],
)
def test_what_is_no_commit_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(CorruptTable, match=words) as caught:
        decode_commit(data, "t: 1.commit")
    assert "t: 1.commit" in str(caught.value)


@pytest.mark.parametrize(("kind", "value"), [("string", "many"), ("boolean", True), ("double", 1.5)])
def test_a_number_of_another_type_is_refused(kind: str, value: object) -> None:
    """The file brings its own schema, so any field may be of any type."""
    stat = {"type": "record", "name": "S", "fields": [{"name": "fileSizeInBytes", "type": kind}]}
    schema = {
        "type": "record",
        "name": "C",
        "fields": [
            {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": stat}}}
        ],
    }
    data = encode(schema, {"partitionToWriteStats": {"p": [{"fileSizeInBytes": value}]}})
    with pytest.raises(CorruptTable, match="fileSizeInBytes"):
        decode_commit(data, "x")
