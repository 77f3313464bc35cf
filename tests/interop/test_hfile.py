"""Hudi's metadata table: what it wrote we list as the folders do, and it reads HFiles that we wrote in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine.format.hfile.file import MAX_RECORD_KEY, MIN_RECORD_KEY, Flavour, read_hfile, write_hfile
from hudi_assets.engine.format.log_file.codec import BlockType, encode_block, read_blocks
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.table.layout.interface import Layout
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.layout.v8 import LayoutV8
from hudi_assets.engine.table.metadata.reader import FilesState, newest_schema, read_files
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import encode
from hudi_assets.engine.timeline.instants import Timeline, latest_states
from scripts.hudi_client import Hudi
from scripts.hudi_rows import by_key, read_with_hudi_rs
from tests.interop.tables import hudi_options

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("p", pa.string())])
THROUGH_METADATA = {"hoodie.metadata.enable": "true"}
SERVICES = {
    **THROUGH_METADATA,
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
}
WRITERS = [("0.15.0", 6), ("1.2.0", 6), ("1.2.0", 8), ("1.2.0", 9)]


class Written:
    """A table with a metadata table that one Hudi release writes, compacts and cleans."""

    def __init__(self, hudi: Hudi, version: int, path: Path) -> None:
        self.hudi, self.path = hudi, path
        self.layout: Layout = LayoutV6() if version == 6 else LayoutV8()
        self.flavour = Flavour.HBASE if version == 6 else Flavour.NATIVE
        self.storage = LocalStorage(str(path))
        more = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
        self.options = hudi_options(name="t") | SERVICES | more
        self.count = 0

    def upsert(self, numbers: Iterable[int], **more: str) -> None:
        self.count += 1
        rows = [
            {"id": f"k{n}", "ts": 1000 * self.count + n, "v": f"{self.count}", "p": "abc"[n % 3] if n < 90 else "d"}
            for n in numbers
        ]
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), self.options | more)

    def state(self) -> FilesState:
        found = [self.layout.parse_instant(file.name) for file in self.storage.list_files(self.layout.timeline_folder)]
        timeline = Timeline(latest_states(instant for instant in found if instant))
        return read_files(self.storage, self.layout, timeline)

    def folders(self) -> dict[str, dict[str, int]]:
        """What lies in the partitions."""
        return {
            folder: {file.name: file.size for file in self.storage.list_files(folder) if _is_data(file.name)}
            for folder in self.storage.list_directories("")
            if folder != ".hoodie"
        }

    def snapshot(self) -> object:
        return by_key(self.hudi.read(self.path, "snapshot", options=THROUGH_METADATA))

    def replace(self, path: str, data: bytes) -> None:
        self.storage.replace(path, data)
        folder, _, name = path.rpartition("/")
        self.storage.delete(f"{folder}/.{name}.crc")


def _is_data(name: str) -> bool:
    return not name.endswith(".crc") and not name.startswith(".hoodie")


@pytest.fixture(params=WRITERS, ids=lambda writer: f"{writer[0]}-v{writer[1]}")
def table(request: pytest.FixtureRequest, path: Path) -> Written:
    release, version = request.param
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    return Written(hudi, version, path)


@pytest.mark.slow
def test_the_metadata_table_lists_what_the_folders_list(table: Written) -> None:
    """After every write; compactions and cleans of the table and of its metadata table come in between."""
    bases = set()
    for number in range(8):
        table.upsert([100] if number == 6 else range(number, 12))
        state = table.state()
        assert state.listing == table.folders()
        assert state.slice_.base is not None
        bases.add(state.slice_.base.name)
    assert len(bases) > 1, "the metadata table was never compacted"
    names = [file.name for file in table.storage.list_files(table.layout.timeline_folder)]
    assert any(name.endswith(".clean") for name in names)
    assert any(name.endswith(".commit") for name in names)


@pytest.mark.slow
def test_hudi_reads_hfiles_of_ours_in_the_place_of_its_own(table: Written) -> None:
    """The base file with everything folded in, and every log block anew; Hudi reads, writes and compacts on."""
    for number in range(4):
        table.upsert(range(number, 12))
    before, listing = table.snapshot(), table.folders()
    state = table.state()
    base = state.slice_.base
    assert base is not None
    schema = newest_schema(table.storage, state.slice_)
    assert schema
    entries = [encode(record, schema, base_file=base.name) for record in state.records.values()]
    keys = sorted(key for key, _ in entries)
    info = {MIN_RECORD_KEY: keys[0], MAX_RECORD_KEY: keys[-1]}
    table.replace(base.path, write_hfile(entries, schema=schema, flavour=table.flavour, info=info))
    assert state.slice_.logs
    for log in state.slice_.logs:
        table.replace(log.path, rewritten(table.storage.read(log.path), table.flavour))
    assert table.state().listing == listing
    assert table.snapshot() == before
    # It reads the metadata table of versions 8 and 9, so this is a reader of HFiles too.
    assert by_key(read_with_hudi_rs(str(table.path), "snapshot")) == before
    for _ in range(4):
        table.upsert(range(3, 15))
        assert table.state().listing == table.folders()
    assert table.state().slice_.base != base, "Hudi has not compacted what we wrote"
    assert table.snapshot() == by_key(table.hudi.read(table.path, "snapshot"))


def rewritten(data: bytes, flavour: Flavour) -> bytes:
    """A log file of the metadata table with each of its HFiles written by us."""
    parts = []
    for block in read_blocks(data):
        content = block.content
        if block.type is BlockType.HFILE_DATA:
            found = read_hfile(content)
            assert found.schema
            content = write_hfile(found.entries, schema=found.schema, flavour=flavour)
        parts.append(encode_block(block.type, block.header, content))
    return b"".join(parts)


# ------------------------------------------------------------------------------ the readers of HFiles alone

LARGE: dict[str, Callable[[], list[tuple[bytes, bytes]]]] = {
    "many": lambda: [(b"key-%05d" % n, b"x" * (n % 300)) for n in range(1500)],
    "without values": lambda: [(b"%05d" % n, b"") for n in range(4000)],
    "large": lambda: [(b"a", b"1"), (b"b", bytes(range(256)) * 8000), (b"c", b""), (b"d" * 3000, b"long key")],
    "letters": lambda: [(text.encode(), text.encode()) for text in ("é", "日本", "p=ü/q=ß", "🚲", "zz")],
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("flavour", Flavour)
def test_hudis_readers_find_every_entry(
    name: str, flavour: Flavour, tmp_path: Path, hudi_0_15: Hudi, hudi_1_2: Hudi
) -> None:
    """HBase's reader and Hudi's own in 0.15.0, Hudi's own in 1.2.0."""
    entries = sorted(LARGE[name]())
    file = tmp_path / "x.hfile"
    file.write_bytes(write_hfile(entries, schema=record_schema(flavour), flavour=flavour))
    keys = [key.hex() for key, _ in entries]
    for hudi, reader in ((hudi_0_15, "hbase"), (hudi_0_15, "native"), (hudi_1_2, "native")):
        answer = hudi.ask("hfile_keys", path=str(file), reader=reader)
        assert answer["keys"] == keys
        assert answer["value_bytes"] == sum(len(value) for _, value in entries)
