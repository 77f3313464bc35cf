"""Tables on S3, changed from here: the same answers as of the same steps on a disk."""

from __future__ import annotations

import json
import logging
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import Action
from hudi_assets.engine.storage import LOCKS, Storage
from hudi_assets.engine.table.settings.compaction import WHOLE_SLICES
from hudi_assets.engine.transaction.publish import Publisher
from tests.crash.tables import BATCHES, SCHEMA, batch, planned, snapshot, write
from tests.stores.faults import FAULTS, Proxy, running_proxy
from tests.stores.minio import BUCKET, Minio
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, created

SETTINGS = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.cleaner.commits.retained": "1",
    "hudi_assets.query.grace": "0s",
    "hudi_assets.writers": "stopped",
}


def new_table(path: str, version: int, options: dict[str, str] | None = None) -> HudiTable:
    created(path, SCHEMA, clock="commit", table_version=version, storage_options=options)
    return HudiTable.open(path, options, settings=SETTINGS)


def new_path() -> str:
    return f"s3://{BUCKET}/changes/{uuid.uuid4().hex}"


def live(table: HudiTable, session: Any) -> list[Any]:
    """Every kind of change; what it shows after each."""
    shown: list[Any] = []

    def look() -> None:
        assert table.validate() == ()
        stats = table.stats()
        shown.append((snapshot(table), stats.remaining_log_files, len(table.state().timeline.instants)))

    for first, ts in BATCHES:
        write(table, session, first, ts)
    look()
    plan = planned(table)
    look()
    table.unschedule(plan.instant)
    look()
    table.execute_compaction(session, planned(table).instant)
    look()
    savepoint = table.savepoint()
    taken_back = write(table, session, 6, 9_500)
    look()
    table.rollback(taken_back)
    look()
    write(table, session, 6, 9_600)
    table.delete(session, batch_keys(0), clock_time=at(12_000))
    table.execute_compaction(session, planned(table, 9_700).instant)
    look()
    table.restore(savepoint)
    look()
    table.delete_savepoint(savepoint)
    for step in range(3):
        write(table, session, step, 10_000 + step)
        table.execute_compaction(session, planned(table, 10_100 + step).instant)
    look()
    table.clean()
    look()
    table.archive()
    look()
    assert table.recover() == ()
    return shown


def batch_keys(first: int) -> Any:
    frame = batch(first, 9_900)
    return type(frame)(frame.table.select(["id", "ts"]))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On version 6 a commit waits for a later second than its instant's, which is for Hudi's readers."""
    monkeypatch.setattr(Publisher, "_wait_for_later_second", lambda *_: None)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.thorough), 9])
def test_every_kind_of_change(version: int, minio: Minio, session: LocalSession, tmp_path: Path) -> None:
    path = new_path()
    table = new_table(path, version, minio.options)
    on_disk = new_table(str(tmp_path / "t"), version)
    if version == 6:
        on_disk = HudiTable.open(on_disk.path, settings={**SETTINGS, WHOLE_SLICES: "true"})
    assert live(table, session) == live(on_disk, session)
    assert snapshot(HudiTable.open(path, minio.options)) == snapshot(table)
    kinds = {instant.action for instant in table.state().timeline.instants}
    assert {Action.CLEAN, Action.DELTA_COMMIT} <= kinds
    locks = {file.name for file in storage_of(table).list_files(LOCKS)}
    assert {"table_lock.json", "hudi_assets_execute.json"} <= locks
    assert json.loads(storage_of(table).read(f"{LOCKS}/table_lock.json"))["expired"] is True


def test_a_table_is_the_same_by_both_schemes(minio: Minio, session: LocalSession) -> None:
    """Made as s3a://, written, compacted and read as either. Spark is given its files as s3a://."""
    path = new_path().replace("s3://", "s3a://")
    table = new_table(path, 9, minio.options)
    (first, ts), *_ = BATCHES
    write(table, session, first, ts)
    other = HudiTable.open(path.replace("s3a://", "s3://"), minio.options, settings=SETTINGS)
    write(other, session, first, ts + 100)
    assert snapshot(table) == snapshot(other)
    table.execute_compaction(session, planned(other).instant)
    files = table.read_optimized_files()
    assert files == other.read_optimized_files()
    assert all(file.startswith("s3a://lake/") for file in files)
    assert table.validate() == other.validate() == ()


def storage_of(table: HudiTable) -> Storage:
    return table._table.storage


def objects(minio: Minio, path: str) -> dict[str, bytes]:
    store = minio.arrow()
    found: Any = store.get_file_info(fs.FileSelector(path.removeprefix("s3://"), recursive=True, allow_not_found=True))
    names = [file.path for file in found if file.type == fs.FileType.File]
    return {name: store.open_input_stream(name).read() for name in names}


def test_credentials_are_nowhere(
    minio: Minio, session: LocalSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In no file, log, error, plan or pickle; with options, and with those of the environment."""
    caplog.set_level(logging.DEBUG)
    for name, value in minio.environment.items():
        monkeypatch.setenv(name, value)
    for options in (minio.options, None):
        path = new_path()
        table = new_table(path, 9, options)
        for first, ts in BATCHES:
            write(table, session, first, ts)
        plan = planned(table)
        said = [pickle.dumps(storage_of(table)), repr(plan).encode(), repr(table).encode(), pickle.dumps(plan)]
        with pytest.raises(HudiAssetsError) as refused:
            table.execute_compaction(session, "20200101000000000")
        said.append(str(refused.value).encode())
        table.execute_compaction(session, plan.instant)
        said += [*objects(minio, path).values(), caplog.text.encode()]
        for one in said:
            assert minio.secret_access_key.encode() not in one
            assert minio.access_key_id.encode() not in one


# ---------------------------------------------------------------------------------------- answers that fail to come


class _Nth:
    """Spoils the n-th request of a method from now on."""

    def __init__(self, proxy: Proxy, method: str, n: int, fault: str) -> None:
        self.asked, inner = 0, proxy.fault_of

        def fault_of(got: str, path: str) -> Any:
            if got == method and ".locks/" not in path:
                self.asked += 1
                if self.asked == n:
                    return FAULTS[fault]
            return inner(got, path)

        proxy.fault_of = fault_of  # type: ignore[method-assign, assignment]


CHANGES: dict[str, Any] = {
    "write": lambda table, session: write(table, session, 6, 9_500),
    "compact": lambda table, session: table.execute_compaction(session, planned(table).instant),
}
LOST = ["done, and the answer is lost", "500, but done"]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.usefixtures("at_once")
def test_one_lost_answer_is_no_error(
    version: int, every: int, change: str, method: str, minio: Minio, session: LocalSession
) -> None:
    """Whichever request it is of (of each `every`-th): what was asked for is done, once."""
    with running_proxy(minio.port) as proxy:
        done, n = False, 1 - every
        while not done:
            n += every
            path = new_path()
            table = new_table(path, version, minio.options)
            for first, ts in BATCHES:
                write(table, session, first, ts)
            before = snapshot(table)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(proxy, "fault_of", proxy.fault_of)
                slow = HudiTable.open(path, {**minio.options, "endpoint": proxy.endpoint}, settings=SETTINGS)
                slow.check_writable()
                nth = _Nth(proxy, method, n, LOST[n // every % 2])
                CHANGES[change](slow, session)
            done = nth.asked < n
            rows = snapshot(table)
            assert rows == before if change == "compact" else len(rows) == len(before) + 2, n
            assert table.validate() == ()
            assert table.recover() == (), n
    assert n > 1 or method == "DELETE"
