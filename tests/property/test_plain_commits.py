"""Commits with nothing special in them are decoded in fewer steps: to the same values, with the same refusals.

The oracle is the decoding that looks at each value by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.timeline import commit_json, commit_metadata
from hudi_assets.engine.timeline.commit_avro import decode_commit, encode_commit
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_assets.engine.timeline.plain_stats import LOG, NUMBERS, TEXTS, TIMES, plain_stat

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 1.5, "", "7", [], ["a"], ["a", 1], [None], {}, -1, 1 << 63, (1 << 63) - 1, -(1 << 63), -(2**64)]
)
PARTITIONS = ["", "p", "year=1/month=2", "..", "a..b", ".hoodie", "/p", "p/../q", "p\0"]
NAMES = [".f_1.log.1_0", "f_0_1.parquet", "a..b", "../x", "x\0", "x\np/y", "x\n/y", ""]


@st.composite
def stats(draw: st.DrawFn) -> dict[str, Any]:
    partition = draw(st.sampled_from(PARTITIONS))
    name = draw(st.sampled_from(NAMES))
    stat: dict[str, Any] = {
        "path": f"{partition}/{name}" if partition else name,
        "partitionPath": partition,
        "fileId": "f",
        "prevCommit": draw(st.sampled_from(["null", "null", "20260101000000000", ""])),
        **{key: draw(st.integers(0, 9)) for key in NUMBERS},
        **{key: draw(st.none() | st.integers(0, 9)) for key in TIMES},
        "tempPath": None,
    }
    if draw(st.booleans()):
        stat |= {"logVersion": 1, "baseFile": draw(st.none() | st.just("b")), "logFiles": ["x", "y"]}
    for key in draw(st.lists(st.sampled_from([*TEXTS, *NUMBERS, *TIMES, *LOG]), max_size=1)):
        stat[key] = draw(ODD)
    for key in draw(st.lists(st.sampled_from([*TEXTS, *NUMBERS, *TIMES, *LOG]), max_size=1)):
        stat.pop(key, None)
    return stat


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    body: dict[str, Any] = {
        "partitionToWriteStats": {
            p: draw(st.lists(stats(), max_size=3)) for p in draw(st.lists(st.sampled_from("ab")))
        },
        "compacted": draw(st.booleans()),
        "extraMetadata": {"schema": "{}", "note": draw(st.none() | st.text(max_size=3))},
        "operationType": "UPSERT",
    }
    if draw(st.integers(0, 5)) == 0:
        body["partitionToReplaceFileIds"] = draw(st.none() | st.just({"p": ["f"]}) | ODD)
    if draw(st.integers(0, 5)) == 0:
        body["extraMetadata"]["hudi_assets.threshold"] = draw(st.sampled_from(["5", "x", str(1 << 64)]))
    for key in draw(st.lists(st.sampled_from(sorted(body)), max_size=1)):
        if draw(st.integers(0, 3)) == 0:
            body[key] = draw(ODD)
    return body


@contextmanager
def value_by_value() -> Iterator[None]:
    with (
        mock.patch.object(commit_metadata, "plain_stat", return_value=None),
        mock.patch.object(commit_json, "decode", return_value=None),
    ):
        yield


def outcome(data: bytes) -> CommitMetadata | tuple[str, str | None]:
    try:
        return CommitMetadata.from_json(data, "here")
    except CorruptTable as error:
        return error.what, error.where


def agrees(data: bytes) -> None:
    with value_by_value():
        expected = outcome(data)
    found = outcome(data)
    assert found == expected
    if isinstance(found, CommitMetadata) and isinstance(expected, CommitMetadata):
        types = [[tuple(map(type, stat)) for stat in commit.stats] for commit in (found, expected)]
        assert types[0] == types[1]
        assert all(type(stat) is WriteStat for stat in found.stats)


@settings(max_examples=200, deadline=None)
@given(bodies())
def test_of_any_fields(body: dict[str, Any]) -> None:
    agrees(json.dumps(body).encode())


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PARTITIONS), st.lists(st.sampled_from([".f_1.log.1_0", *NAMES]), max_size=3), st.data())
def test_of_log_files_of_one_partition(partition: str, names: list[str], data: st.DataObject) -> None:
    """They are looked at together, so one that is odd must not pass among the others."""
    found = [
        WriteStat(
            path=f"{partition}/{name}" if partition else name,
            partition=data.draw(st.sampled_from([partition, partition, "", "p"])),
            file_id="f",
            prev_commit="null",
            size=1,
            log_version=1,
            log_files=("x",) * data.draw(st.sampled_from([1, 1, 1, 0])),
        ).to_json()
        for name in names
    ]
    agrees(json.dumps({**json.loads(b"{" + BODY + b"}"), "partitionToWriteStats": {partition: found}}).encode())


BODY = b'"compacted":false,"extraMetadata":{},"operationType":"UPSERT"'


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=30))
@example(b"")
@example(b" \n")
@example(b"{}")
@example(b"null")
@example(b"[" * 100_000)
@example(b'\xef\xbb\xbf{"compacted": true}')
@example(b'{"partitionToWriteStats":{},"partitionToWriteStats":{"p":[1]},' + BODY + b"}")
@example(b'{"partitionToWriteStats":{"p":[1]},"partitionToWriteStats":{},' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},"operationType":"A",' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},' + BODY + b',"operationType":"A"}')
@example(b'{"partitionToWriteStats":{},"extraMetadata":{"a":"1","a":"2"},"compacted":false,"operationType":"U"}')
@example(b'{"partitionToWriteStats":{},"x":NaN,"y":-Infinity,' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},"x":"\\ud800",' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},"x":"\x01",' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},"x":01,' + BODY + b"}")
@example(b'{"partitionToWriteStats":{},' + BODY + b"} ")
@example(b'{"partitionToWriteStats":{},' + BODY + b"}{}")
@example(b'{"partitionToWriteStats":{},' + BODY + b",}")
@example(b'{"partitionToWriteStats":{},"x":' + b"9" * 5000 + b"," + BODY + b"}")
def test_of_any_bytes(data: bytes) -> None:
    agrees(data)


@settings(max_examples=200, deadline=None)
@given(st.lists(stats(), max_size=3))
def test_what_is_taken_for_plain_is_what_it_is(found: list[dict[str, Any]]) -> None:
    for stat in found:
        plain = plain_stat(stat)
        if plain is not None:
            assert WriteStat.of_fields(plain) == WriteStat._checked(stat)


def test_ours_are_plain_in_both_forms() -> None:
    """Else the quick way would be taken by nobody."""
    log = WriteStat("p/.f_1.log.1_0", "p", "f", "null", 7, min_event_time=1, max_event_time=2, log_version=1)
    base = WriteStat("p/f_0_1.parquet", "p", "f", "null", 9, num_writes=3)
    commit = CommitMetadata("UPSERT", (log._replace(base_file="", log_files=("x",)), base), {"schema": "{}"})
    assert commit_json.decode(commit.to_json()) is not None
    assert all(plain_stat(stat.to_json()) is not None for stat in commit.stats)
    with mock.patch.object(WriteStat, "_checked", side_effect=AssertionError):
        assert CommitMetadata.from_json(commit.to_json(), "here") == commit
        assert decode_commit(encode_commit(commit), "here") == commit
