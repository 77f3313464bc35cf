"""Records of the files partition: as bytes, merged, and the schemas that they are written with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_assets.engine.errors import CorruptTable, InvalidInput
from hudi_assets.engine.format.hfile.file import Flavour, read_hfile
from hudi_assets.engine.format.log_file.codec import BlockType, read_blocks
from hudi_assets.engine.table.metadata.record_schema import record_schema
from hudi_assets.engine.table.metadata.records import (
    GONE,
    PARTITION_LIST_KEY,
    FilesRecord,
    ListedFile,
    RecordType,
    combine,
    decode,
    decode_row,
    encode,
    merge,
    partition_files,
    partition_list,
    partition_path,
)
from tests.unit.test_hfile import GOLDEN

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=20)
FILES = st.dictionaries(NAMES, st.builds(ListedFile, st.integers(1, 2**63 - 1)) | st.just(GONE), max_size=8)
TABLES = sorted(folder.name for folder in GOLDEN.glob("metadata_*"))


def bare(schema: Any) -> Any:
    """A schema without its words for people."""
    if isinstance(schema, dict):
        return {key: bare(value) for key, value in schema.items() if key != "doc"}
    return [bare(item) for item in schema] if isinstance(schema, list) else schema


@given(NAMES.filter(lambda name: name != PARTITION_LIST_KEY), FILES, st.sampled_from(list(Flavour)))
def test_records_read_back(key: str, files: dict[str, ListedFile], flavour: Flavour) -> None:
    record = FilesRecord(key, files)
    entry = encode(record, record_schema(flavour))
    assert entry[0] == key.encode()
    assert decode(entry, record_schema(flavour)) == record


def test_the_list_of_partitions_reads_back() -> None:
    record = partition_list(["", "p=a"], ["p=b"])
    schema = record_schema(Flavour.NATIVE)
    key, row = decode_row(encode(record, schema), schema)
    assert (key, row["type"], row["key"]) == (PARTITION_LIST_KEY, RecordType.PARTITION_LIST, "")
    assert row["filesystemMetadata"] == {
        ".": {"size": 0, "isDeleted": False},
        "p=a": {"size": 0, "isDeleted": False},
        "p=b": {"size": 0, "isDeleted": True},
    }
    assert [partition_path(name) for name in record.present] == ["", "p=a"]


def test_a_base_file_names_itself_in_its_records() -> None:
    schema = record_schema(Flavour.HBASE)
    entry = encode(partition_files("p", {"x.parquet": 5}), schema, base_file="files-0000-0_0-1-2_001.hfile")
    _, row = decode_row(entry, schema)
    assert row["_hoodie_file_name"] == "files-0000-0_0-1-2_001.hfile"
    assert row["_hoodie_commit_time"] is None


@pytest.mark.parametrize("files", [{"x": 0}, {"x": -1}, {"a/b": 1}, {"": 1}, {"x": 2**63}])
def test_what_hudis_readers_refuse_is_not_written(files: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        encode(partition_files("p", files), record_schema(Flavour.NATIVE))


# ---------------------------------------------------------------------------------- what Hudi writes itself


@pytest.mark.parametrize("table", TABLES)
def test_schemas_are_hudis(table: str) -> None:
    flavour = Flavour.HBASE if "0_15" in table else Flavour.NATIVE
    seen = 0
    for file in (GOLDEN / table).iterdir():
        data = file.read_bytes()
        contents = [data] if file.suffix == ".hfile" else [b.content for b in read_blocks(data) if b.is_data]
        for content in contents:
            schema = read_hfile(content).schema
            assert schema
            assert bare(json.loads(schema)) == json.loads(record_schema(flavour))
            seen += 1
    assert seen >= 2


@pytest.mark.parametrize("table", TABLES)
def test_hudis_records_are_written_the_same_way(table: str) -> None:
    compared = 0
    for file in (GOLDEN / table).glob(".files*"):
        for block in read_blocks(file.read_bytes()):
            if block.type is not BlockType.HFILE_DATA:
                continue
            found = read_hfile(block.content)
            assert found.schema
            for entry in found.entries:
                record = decode(entry, found.schema)
                again = encode(record, found.schema)
                # Java's map is in the order of its hashes, ours by name.
                assert (len(again[1]), sorted(again[1])) == (len(entry[1]), sorted(entry[1]))
                compared += 1
    assert compared >= 2


# ---------------------------------------------------------------------------------------------- merging


def test_merging_follows_the_payload() -> None:
    older = FilesRecord("p", {"kept": ListedFile(5), "grew": ListedFile(5), "went": ListedFile(5), "came": GONE})
    newer = FilesRecord("p", {"grew": ListedFile(9), "went": GONE, "new": ListedFile(1), "never": GONE, "came": GONE})
    assert combine(older, newer).files == {
        "kept": ListedFile(5),
        "grew": ListedFile(9),
        "new": ListedFile(1),
        "never": GONE,  # it may be in the base file
        "came": GONE,
    }
    assert combine(newer, older).files["grew"] == ListedFile(9)


def test_a_file_that_went_in_a_log_goes_from_the_base_file() -> None:
    base = partition_files("p", {"a": 1, "b": 2})
    merged = merge(base, [partition_files("p", {"c": 3}, ["a"]), partition_files("p", {}, ["c"])])
    assert merged is not None
    assert merged.files == {"b": ListedFile(2)}
    assert merge(None, []) is None
    assert merge(base, []) == base


def test_what_a_log_mentions_again_and_takes_away_stays_as_in_hudi() -> None:
    """Among themselves the two changes leave nothing, so that the base file's entry stays: name a file once."""
    base = partition_files("p", {"a": 1})
    merged = merge(base, [partition_files("p", {"a": 1}), partition_files("p", {}, ["a"])])
    assert merged == base


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=30), st.data())
def test_files_that_come_and_go_once_are_listed_right(events: list[tuple[str, bool]], data: st.DataObject) -> None:
    """Wherever the base file is cut, and however the changes are batched."""
    state: dict[str, int] = {}
    gone: set[str] = set()
    changes = []
    for number, (name, deleted) in enumerate(events, start=1):
        if deleted and name in state:
            changes.append(partition_files("p", {}, [name]))
            del state[name]
            gone.add(name)
        elif not deleted and name not in state and name not in gone:
            changes.append(partition_files("p", {name: number}))
            state[name] = number
    cut = data.draw(st.integers(0, len(changes)))
    base = merge(None, changes[:cut])
    merged = merge(base, changes[cut:])
    assert (merged.present if merged else {}) == state


# ------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00", b"\x00" * 5, b"\x00" * 20, b"\xff" * 40, b"\x00" * 7 + b"\x02" + b"\xff" * 9 + b"\x01"],
)
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(CorruptTable):
        decode((b"p", value), record_schema(Flavour.NATIVE))


def test_bytes_behind_a_record_are_refused() -> None:
    schema = record_schema(Flavour.NATIVE)
    key, value = encode(partition_files("p", {"x": 1}), schema)
    with pytest.raises(CorruptTable, match="does not end"):
        decode((key, value + b"\x00"), schema)


def test_a_record_of_another_type_is_refused() -> None:
    schema = record_schema(Flavour.NATIVE)
    _, value = encode(partition_files("p", {"x": 1}), schema)
    with pytest.raises(CorruptTable, match="has type 2"):
        decode((PARTITION_LIST_KEY.encode(), value), schema)


@pytest.mark.parametrize("schema", ["", "{", '"string"', '{"type":"record","name":"x","fields":[]}', "[]", "null"])
def test_schemas_that_are_none_are_refused(schema: str) -> None:
    with pytest.raises(CorruptTable, match="schema"):
        decode((b"p", b""), schema)
