"""Keys, partition paths and buckets against values that Java gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.table.record_keys import (
    bucket_file_id,
    bucket_ids,
    bucket_of,
    java_hash,
    partition_paths,
    record_keys,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    # "…".hashCode() in jshell (Java 17)
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("😀", 1772899),
        ("ключ", 33309882),
    ],
)
def test_java_hash(text: str, expected: int) -> None:
    assert java_hash(pa.array([text])).tolist() == [expected]


def test_bucket_is_the_list_hash_without_its_sign() -> None:
    # java.util.List.of("a", "b").hashCode() = 31 * (31 * 1 + 97) + 98 = 4066
    assert bucket_ids([pa.array(["a"]), pa.array(["b"])], 7, complex_keys=True).tolist() == [4066 % 7]


def test_complex_keys_name_their_fields_and_stand_in_for_nothing() -> None:
    keys = record_keys([pa.array(["x", None]), pa.array([1, 2])], ["a", "b"], complex_keys=True)
    assert keys.to_pylist() == ["a:x,b:1", "a:__null__,b:2"]


def test_simple_key_is_the_text() -> None:
    assert record_keys([pa.array([12])], ["id"], complex_keys=False).to_pylist() == ["12"]


def test_partition_paths() -> None:
    columns = [pa.array(["x", None, ""]), pa.array([1, 2, 3])]
    paths = partition_paths(columns, ["p", "q"], hive_style=True, url_encode=False)
    default = "__HIVE_DEFAULT_PARTITION__"
    assert paths.to_pylist() == ["p=x/q=1", f"p={default}/q=2", f"p={default}/q=3"]


@pytest.mark.parametrize(
    ("value", "path"),
    # PartitionPathEncodeUtils.escapePathName of Hudi 0.15.0
    [("New York", "New York"), ("é", "é"), ("a&b", "a&b"), ("a:b", "a%3Ab"), ("{x}", "%7Bx}"), ("a/b", "a%2Fb")],
)
def test_encoded_partition_paths(value: str, path: str) -> None:
    assert partition_paths([pa.array([value])], ["p"], hive_style=False, url_encode=True).to_pylist() == [path]


@pytest.mark.parametrize("value", ["a/b", "..", "."])
def test_a_partition_value_that_is_a_path_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        partition_paths([pa.array([value])], ["p"], hive_style=False, url_encode=False)


def test_bucket_file_ids_name_their_bucket() -> None:
    file_id = bucket_file_id(3, "123e4567-e89b-12d3-a456-426614174000")
    assert file_id == "00000003-e89b-12d3-a456-426614174000-0"
    assert bucket_of(file_id) == 3
    assert bucket_of("abcdefab-e89b-12d3-a456-426614174000-0") is None
