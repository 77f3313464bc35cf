"""Tables on S3, looked at from here: the same answers as of the same table on a disk."""

from __future__ import annotations

import json
import sys
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hudi_assets import cli
from hudi_assets.engine import HudiTable, NoPlan, Plan
from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.table.settings.compaction import WHOLE_SLICES
from tests.crash.tables import new_table, planned, write, write_batches
from tests.stores.faults import running_proxy
from tests.stores.minio import BUCKET, Minio
from tests.tables.local_session import LocalSession, install
from tests.tables.metadata import switch_on
from tests.tables.steps import with_properties


@dataclass(frozen=True)
class Pair:
    """A table on this machine's disk, and the same in a bucket."""

    disk: Path
    bucket: str
    minio: Minio

    def on_disk(self) -> HudiTable:
        return HudiTable.open(str(self.disk))

    def in_bucket(self) -> HudiTable:
        return HudiTable.open(self.bucket, self.minio.options)


def _made(path: Path, kind: str, session: LocalSession) -> HudiTable:
    """Three batches, one compaction that leaves log files, and one batch more."""
    version, _, more = kind.partition(" ")
    table = new_table(path, int(version))
    if more == "with a metadata table":
        switch_on(table)
        table = HudiTable.open(str(path))
    write_batches(table, session)
    table.execute_compaction(session, planned(table).instant)
    write(table, session, 6, 9_500)
    # From here on: in a bucket nothing is carried over on version 6.
    return with_properties(table, {WHOLE_SLICES: "true"}) if version == "6" else table


@pytest.fixture(scope="module", params=["6", "9", "6 with a metadata table"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, minio: Minio) -> Pair:
    folder = tmp_path_factory.mktemp("tables") / "t"
    with pytest.MonkeyPatch.context() as patch:
        _made(folder, request.param, install(patch.setattr))
    return Pair(folder, minio.upload(folder, f"tables/{uuid.uuid4().hex}"), minio)


def test_the_numbers(pair: Pair) -> None:
    disk, bucket = pair.on_disk(), pair.in_bucket()
    assert bucket.path == pair.bucket
    assert repr(bucket.stats()) == repr(disk.stats())
    assert bucket.stats().remaining_log_files > 0
    assert repr(bucket.freshness()) == repr(disk.freshness())
    assert bucket.look().stats == disk.look().stats
    assert bucket.leftovers() == disk.leftovers() == ()


def test_validate(pair: Pair) -> None:
    assert pair.on_disk().validate() == ()
    assert pair.in_bucket().validate() == ()


def test_validate_finds_what_is_gone(pair: Pair) -> None:
    log = next(iter(pair.on_disk().state().remaining_logs)).path
    copy = pair.minio.upload(pair.disk, f"tables/{uuid.uuid4().hex}")
    pair.minio.arrow().delete_file(f"{copy.removeprefix('s3://')}/{log}")
    found = HudiTable.open(copy, pair.minio.options).validate()
    assert found
    assert all(log in str(finding) for finding in found)


def test_a_plan_that_is_tried(pair: Pair) -> None:
    asked = {"threshold": 9_400, "dry_run": True}
    ours, theirs = pair.in_bucket().plan_compaction(**asked), pair.on_disk().plan_compaction(**asked)  # type: ignore[arg-type]
    assert isinstance(ours, Plan)
    assert isinstance(theirs, Plan)
    assert [op.file_id for op in ours.operations] == [op.file_id for op in theirs.operations]
    assert [op.log_files for op in ours.operations] == [op.log_files for op in theirs.operations]
    assert isinstance(pair.in_bucket().plan_compaction(threshold=1, dry_run=True), NoPlan)
    assert pair.in_bucket().pending_plan() is None


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_the_command_line(
    pair: Pair, scheme: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in pair.minio.environment.items():
        monkeypatch.setenv(name, value)

    def answer(command: str, path: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["hudi-assets", *command.split(), path, "--json"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0, capsys.readouterr().err
        return _without_plan(json.loads(capsys.readouterr().out))

    path = pair.bucket.replace("s3://", f"{scheme}://")
    for command in ("status", "freshness", "validate", "plan --dry-run --threshold 1970-01-01T00:00:09.400Z"):
        ours, theirs = answer(command, path), answer(command, str(pair.disk))
        assert ours.pop("path", path) == path
        assert {**ours, "path": ""} == {**theirs, "path": ""}


def _without_plan(answer: Any) -> Any:
    """Each plan has an instant of its own, and links that are named by it."""
    instant = answer.get("instant") if isinstance(answer, dict) else None
    return json.loads(json.dumps(answer).replace(instant, "")) if instant else answer


def test_no_table_there(minio: Minio) -> None:
    with pytest.raises(InvalidInput, match="No such directory"):
        HudiTable.open(f"s3://{BUCKET}/nowhere", minio.options)
    with pytest.raises(InvalidInput, match="no such bucket"):
        HudiTable.open("s3://nobucket/nowhere", minio.options)


def test_who_may_only_read_can_look(pair: Pair) -> None:
    with running_proxy(pair.minio.port) as proxy:
        proxy.refuse("PUT", 403, b"<Code>AccessDenied</Code>")
        table = HudiTable.open(pair.bucket, {**pair.minio.options, "endpoint": proxy.endpoint})
        assert repr(table.stats()) == repr(pair.on_disk().stats())
        assert table.validate() == ()


def test_marks_of_folders_are_no_files(pair: Pair) -> None:
    """As hadoop-aws leaves them: empty objects whose names end with a slash."""
    copy = pair.minio.upload(pair.disk, f"tables/{uuid.uuid4().hex}")
    for folder in ("", "/.hoodie", "/.hoodie/.temp", "/new"):
        pair.minio.arrow().create_dir(f"{copy.removeprefix('s3://')}{folder}")
    table = HudiTable.open(copy, pair.minio.options)
    assert repr(table.stats()) == repr(pair.on_disk().stats())
    assert table.validate() == ()


@pytest.mark.parametrize("look", ["stats", "freshness", "look", "validate"])
def test_nothing_is_listed_twice(pair: Pair, look: str) -> None:
    """A listing is what costs most."""
    with running_proxy(pair.minio.port) as proxy:
        table = HudiTable.open(pair.bucket, {**pair.minio.options, "endpoint": proxy.endpoint})
        proxy.seen.clear()
        getattr(table, look)()
        listed = Counter(path for _, path in proxy.seen if "list-type" in path)
    assert listed
    assert [path for path, times in listed.items() if times > 1] == []
