"""The archived timeline of versions 8 and 9: Apache Hudi's own, ours, and what a crash or a stranger leaves."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.storage import LocalStorage, Storage
from hudi_assets.engine.timeline.archive.layers import Layering, add_instants, layering_of, merge_layers
from hudi_assets.engine.timeline.archive.v8 import (
    HISTORY,
    SCHEMA,
    VERSION_FILE,
    ArchivedInstant,
    archived_instants,
    archived_names,
    completion_times,
    manifest_path,
    manifest_versions,
    read_manifest,
)
from hudi_assets.engine.timeline.commit_avro import decode_commit
from hudi_assets.engine.timeline.compaction_plan import decode_plan
from tests.crash.faulty import Crash, DyingStorage

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("hudi_1_2_v8", "hudi_1_2_v9")
FEW = Layering(files=3, most_bytes=1 << 30)


def at(number: int) -> str:
    return f"202601010000{number:05d}"


def instants(*numbers: int) -> list[ArchivedInstant]:
    return [ArchivedInstant(at(n), at(n + 1), "deltacommit", b"metadata %d" % n, None) for n in numbers]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture(params=VERSIONS)
def hudis(request: pytest.FixtureRequest, storage: LocalStorage) -> LocalStorage:
    shutil.copytree(GOLDEN / request.param / "history", Path(storage.base) / HISTORY)
    return storage


def names(storage: LocalStorage) -> list[str]:
    return [file.name for file in sorted(read_manifest(storage).files)]


def files(storage: LocalStorage) -> set[str]:
    return {file.name for file in storage.list_files(HISTORY)}


def times(storage: LocalStorage) -> list[str]:
    return [i.timestamp for i in archived_instants(storage)]


# ------------------------------------------------------------------------------------------- Hudi's own


def test_hudis_instants(hudis: LocalStorage) -> None:
    found = list(archived_instants(hudis))
    assert [i.timestamp for i in found] == sorted({i.timestamp for i in found})
    assert {i.action for i in found} >= {"deltacommit", "commit", "clean", "replacecommit"}
    assert all(i.completion is not None and i.completion > i.timestamp for i in found)
    for instant in found:
        assert instant.metadata is not None
        if instant.action in ("deltacommit", "commit", "replacecommit"):
            assert decode_commit(instant.metadata, "x").stats
        if instant.action == "commit":
            assert instant.plan is not None
            assert decode_plan(instant.timestamp, instant.plan, "x").operations
    assert {i.action for i in found if i.plan is not None} == {"commit", "clean", "replacecommit"}


def test_hudis_completion_times(hudis: LocalStorage) -> None:
    found = {i.timestamp: i.completion for i in archived_instants(hudis)}
    first, *_, last = found
    assert completion_times(hudis, [last, first, at(1)]) == {first: found[first], last: found[last]}
    assert archived_names(hudis, [first, at(1)]) == {(first, "deltacommit")}


def test_a_table_that_hudi_upgraded(storage: LocalStorage) -> None:
    shutil.copytree(GOLDEN / "hudi_1_2_upgraded" / "history", Path(storage.base) / HISTORY)
    found = list(archived_instants(storage))
    assert [i.timestamp for i in found] != sorted(i.timestamp for i in found), "no golden file of what it is for"
    assert {i.timestamp: i.completion for i in found} == completion_times(storage)
    assert all(i.completion is not None and i.completion > i.timestamp for i in found)
    assert all(decode_commit(i.metadata or b"", "x").stats for i in found if i.action == "deltacommit")


def test_our_file_has_the_columns_of_hudis(hudis: LocalStorage) -> None:
    theirs = pq.ParquetFile(Path(hudis.base, sorted(read_manifest(hudis).files)[0].path))
    path = add_instants(hudis, instants(1))
    ours = pq.ParquetFile(Path(hudis.base, path))
    key = b"parquet.avro.schema"
    assert json.loads(ours.metadata.metadata[key]) == json.loads(theirs.metadata.metadata[key])
    for number in range(6):
        mine, its = ours.schema.column(number), theirs.schema.column(number)
        assert (mine.path, mine.physical_type, str(mine.logical_type), mine.max_definition_level) == (
            its.path,
            its.physical_type,
            str(its.logical_type),
            its.max_definition_level,
        )


def test_we_go_on_after_hudi(hudis: LocalStorage) -> None:
    before, version = times(hudis), read_manifest(hudis).version
    add_instants(hudis, instants(7, 8))
    assert read_manifest(hudis).version == version + 1
    assert times(hudis) == [at(7), at(8), *before]


# ------------------------------------------------------------------------------------------------ ours


def test_nothing_was_archived_yet(storage: LocalStorage) -> None:
    assert (times(storage), completion_times(storage, [at(1)]), newest(storage)) == ([], {}, 0)


def newest(storage: LocalStorage) -> int:
    return read_manifest(storage).version


def test_what_goes_in_comes_out(storage: LocalStorage) -> None:
    some = [
        ArchivedInstant(at(1), at(2), "deltacommit", b"m", None),
        ArchivedInstant(at(3), at(9), "commit", b"m2", b"p2"),
        ArchivedInstant(at(4), at(5), "clean", None, None),
    ]
    add_instants(storage, [some[2], some[0], some[1]])
    assert list(archived_instants(storage)) == some
    assert completion_times(storage, [at(3), at(1), at(5)]) == {at(1): at(2), at(3): at(9)}


def test_only_files_that_may_hold_the_instant_are_read(storage: LocalStorage) -> None:
    add_instants(storage, instants(1, 2))
    add_instants(storage, instants(5, 6))
    (Path(storage.base) / HISTORY / f"{at(1)}_{at(2)}_0.parquet").write_bytes(b"torn")
    assert completion_times(storage, [at(5), at(3)]) == {at(5): at(6)}
    with pytest.raises(CorruptTable, match=r"_0\.parquet"):
        completion_times(storage, [at(2)])


def test_an_instant_of_before_has_its_own_time(storage: LocalStorage) -> None:
    add_instants(storage, [ArchivedInstant(at(1), None, "deltacommit")])
    assert completion_times(storage, [at(1)]) == {at(1): at(1)}


def test_layers(storage: LocalStorage) -> None:
    """Three files make one of the next layer, and three of those one of the layer after."""
    for number in range(1, 9):
        add_instants(storage, instants(number))
        merge_layers(storage, FEW)
    assert names(storage) == [f"{at(1)}_{at(3)}_1.parquet", f"{at(4)}_{at(6)}_1.parquet"] + [
        f"{at(n)}_{at(n)}_0.parquet" for n in (7, 8)
    ]
    add_instants(storage, instants(9))
    merge_layers(storage, FEW)
    assert names(storage) == [f"{at(1)}_{at(9)}_2.parquet"]
    assert list(archived_instants(storage)) == instants(*range(1, 10))


def test_what_is_obsolete_goes(storage: LocalStorage) -> None:
    """Three manifests stay, and one for each merge that was just made; with them the files that they name."""
    for number in range(1, 30):
        add_instants(storage, instants(number))
        merge_layers(storage, FEW)
        versions = manifest_versions(storage)
        assert 3 <= len(versions) <= 6 or number < 3
        assert versions[-1] == newest(storage)
    assert len(files(storage)) < 20
    assert times(storage) == [at(n) for n in range(1, 30)]


def test_a_file_with_its_rows_in_no_order(storage: LocalStorage) -> None:
    """As Hudi's upgrade from version 6 leaves them: named after the first and the last row."""
    add_instants(storage, instants(1, 2, 3))
    old = read_manifest(storage).files[0]
    table = pq.read_table(Path(storage.base, old.path)).take([2, 0, 1])
    name = f"{at(3)}_{at(2)}_0.parquet"
    pq.write_table(table, Path(storage.base, HISTORY, name))
    storage.delete(old.path)
    size = storage.size(f"{HISTORY}/{name}")
    storage.replace(manifest_path(1), json.dumps({"files": [{"fileName": name, "fileLen": size}]}).encode())
    assert completion_times(storage, [at(1)]) == {at(1): at(2)}
    assert completion_times(storage) == {at(n): at(n + 1) for n in (1, 2, 3)}
    for number in (4, 5):
        add_instants(storage, instants(number))
    merge_layers(storage, FEW)
    assert names(storage) == [f"{at(1)}_{at(5)}_1.parquet"]
    assert sorted(times(storage)) == [at(n) for n in range(1, 6)]


def test_a_large_file_is_not_merged_again(storage: LocalStorage) -> None:
    sizes = [storage.size(add_instants(storage, instants(number))) for number in range(1, 4)]
    merge_layers(storage, Layering(files=3, most_bytes=min(sizes) - 1))
    assert [name[-9] for name in names(storage)] == ["0", "0", "0"]
    merge_layers(storage, Layering(files=3, most_bytes=max(sizes) + 1))
    assert names(storage) == [f"{at(1)}_{at(2)}_1.parquet", f"{at(3)}_{at(3)}_0.parquet"]


@pytest.mark.parametrize("value", ["some", "1", "-3"])
def test_settings_that_cannot_be(value: str) -> None:
    with pytest.raises(InvalidInput, match="batch"):
        layering_of({"hoodie.timeline.compaction.batch.size": value}, "t")


# --------------------------------------------------------------------------------------------- crashes


def test_a_crash_anywhere_loses_nothing(storage: LocalStorage) -> None:
    """Before each write and delete in turn: what was archived can be read, and the next run goes on."""
    for number in range(1, 6):
        add_instants(storage, instants(number))
    crashes = 0
    for step in range(100):
        place = Path(storage.base).with_name(f"crash{step}")
        shutil.copytree(storage.base, place)
        dying: Storage = DyingStorage(str(place), step + 1)
        fine = LocalStorage(str(place))
        try:
            add_instants(dying, instants(7))
            merge_layers(dying, FEW)
        except Crash:
            crashes += 1
            assert [t for t in times(fine) if t != at(7)] == [at(n) for n in range(1, 6)], step
            add_instants(fine, instants(7))
            merge_layers(fine, FEW)
        else:
            break
        assert sorted(set(times(fine))) == [at(n) for n in (1, 2, 3, 4, 5, 7)], step
        for file in files(fine):
            assert not file.endswith(".parquet") or file in names(fine) or len(manifest_versions(fine)) > 1
    assert crashes > 5


@pytest.mark.parametrize("content", [None, b"", b"twelve", b"-3", b"99999999999999999999"])
def test_without_a_version_file_the_greatest_manifest_counts(storage: LocalStorage, content: bytes | None) -> None:
    for number in (1, 2):
        add_instants(storage, instants(number))
    storage.delete(VERSION_FILE)
    if content is not None:
        storage.create(VERSION_FILE, content)
    assert newest(storage) == 2
    add_instants(storage, instants(3))
    assert (newest(storage), times(storage)) == (3, [at(1), at(2), at(3)])


def test_a_manifest_that_was_not_published_is_written_over(storage: LocalStorage) -> None:
    add_instants(storage, instants(1))
    storage.create(manifest_path(2), b"torn")
    checksum = Path(storage.base, HISTORY, ".manifest_2.crc")
    checksum.write_bytes(b"of the torn one")
    assert times(storage) == [at(1)]
    add_instants(storage, instants(2))
    assert times(storage) == [at(1), at(2)]
    assert not checksum.exists()


# --------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"files": 3}',
        b'{"files": [{"fileName": "a.parquet", "fileLen": 1}]}',
        b'{"files": [{"fileName": "../../../../etc/passwd", "fileLen": 1}]}',
        b'{"files": [{"fileName": "1_3_0.parquet", "fileLen": "much"}]}',
        b'{"files": [{"fileName": "1_3_0.parquet", "fileLen": -1}]}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_is_none(storage: LocalStorage, body: bytes) -> None:
    storage.create(manifest_path(1), body)
    os.utime(Path(storage.base, manifest_path(1)), (0, 0))  # nobody is still writing it
    with pytest.raises(CorruptTable, match="manifest"):
        list(archived_instants(storage))


def test_a_manifest_or_file_that_is_missing(storage: LocalStorage) -> None:
    storage.create(VERSION_FILE, b"4")
    with pytest.raises(CorruptTable, match="missing"):
        times(storage)
    storage.create(manifest_path(4), json.dumps({"files": [{"fileName": "1_3_0.parquet", "fileLen": 1}]}).encode())
    with pytest.raises(CorruptTable, match="missing"):
        times(storage)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"when": ["x"]}),
        pa.table({name: [1] for name in SCHEMA.names}),
        pa.table({**{name: ["../x"] for name in SCHEMA.names[:5]}, "version": [1]}),
        pa.table({**{name: pa.array([None], pa.string()) for name in SCHEMA.names[:5]}, "version": [1]}),
        pa.table({**{name: [at(1)] for name in SCHEMA.names[:5]}, "completionTime": ["soon"], "version": [1]}),
    ],
)
def test_a_file_that_is_none_of_the_timelines(storage: LocalStorage, table: pa.Table) -> None:
    add_instants(storage, instants(1))
    out = io.BytesIO()
    pq.write_table(table, out)
    storage.replace(read_manifest(storage).files[0].path, out.getvalue())
    with pytest.raises(CorruptTable, match="archived timeline"):
        times(storage)
    with pytest.raises(CorruptTable, match="archived timeline"):
        completion_times(storage, [at(1)])
