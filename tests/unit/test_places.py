"""What a partition's path says of its rows: the value that the writer had, or nothing. Never another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hudi_assets.engine import HudiTable
from hudi_assets.engine.queries.partition_filter import partition_values, places_of
from hudi_assets.engine.spark.partitions import Places
from hudi_assets.engine.table.record_keys import partition_paths
from hudi_assets.engine.table.settings.config import TableConfig
from hudi_assets.engine.table.settings.key_generators import COMPLEX, SIMPLE
from hudi_assets.engine.table.slices.reader import SliceTask

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string()), ("q", pa.int32())])
values = st.one_of(
    st.tuples(st.just(pa.string()), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"))),
    st.tuples(st.just(pa.string()), st.sampled_from([None, "p=a", "a%3Ab", "%2F", "default", "a:b", "q=1", " "])),
    st.tuples(st.just(pa.int32()), st.integers(-(1 << 31), (1 << 31) - 1)),
    st.tuples(st.just(pa.date32()), st.dates()),
    st.tuples(st.just(pa.bool_()), st.booleans()),
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> TableConfig:
    path = tmp_path_factory.mktemp("t") / "t"
    fields = ["p", "q"]
    return HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", partition_fields=fields).config


@settings(deadline=None)
@given(pair=values, hive=st.booleans(), encoded=st.booleans(), read_hive=st.booleans(), read_encoded=st.booleans())
def test_the_value_or_nothing(
    config: TableConfig,
    pair: tuple[pa.DataType, object],
    hive: bool,
    encoded: bool,
    read_hive: bool,
    read_encoded: bool,
) -> None:
    """Where the table states another style than its writers had, too, unless the value itself looks like that style."""
    kind, value = pair
    assume(value not in (".", ".."))  # refused by the writer
    column = pa.array([value], kind)
    (path,) = partition_paths([column], ["p"], hive_style=hive, url_encode=encoded).to_pylist()
    said = replace(config, hive_style=read_hive, url_encode=read_encoded)
    (found,) = partition_values(path, ["p"], [kind], said)
    (text,) = column.cast(pa.string()).to_pylist()
    looks_hive = read_hive and not hive and (text or "").startswith("p=")
    looks_encoded = read_encoded and not encoded and "%" in (text or "")
    assert found in (None, text) or looks_hive or looks_encoded
    ordinary = text not in (None, "", "default", "__HIVE_DEFAULT_PARTITION__") and not (text or "").startswith("p=")
    if (hive, encoded) == (read_hive, read_encoded) and ordinary and (encoded or "%" not in (text or "")):
        assert found == text


def test_several_columns(config: TableConfig) -> None:
    kinds = [pa.string(), pa.int32()]
    assert partition_values("p=a/q=7", ["p", "q"], kinds, config) == ("a", "7")
    assert partition_values("p=a/q=07", ["p", "q"], kinds, config) == ("a", None)
    assert partition_values("p=2024/01/02", ["p", "q"], kinds, config) == (None, None)
    assert partition_values("p=2024-1-2", ["p"], [pa.date32()], config) == (None,)
    assert partition_values("p=2024-01-02", ["p"], [pa.date32()], config) == (date(2024, 1, 2).isoformat(),)
    assert partition_values("p=1.5", ["p"], [pa.float64()], config) == (None,)


SLICES = [
    SliceTask("p=a/q=1/0.parquet", ("p=a/q=1/.0.log",), 5),
    SliceTask(None, ("p=b/q=2/.1.log",), 6),
    SliceTask("p=a/q=1/2.parquet", (), 7),
]


@pytest.mark.parametrize("generator", [SIMPLE, COMPLEX])
def test_slices_have_their_partition_s_number(config: TableConfig, generator: str) -> None:
    stated = replace(config, key_generator=generator)
    found = places_of(SLICES, stated, SCHEMA, by_partition=True)
    assert found == Places(("p", "q"), (("a", "1"), ("b", "2")), ((0, 5), (1, 6), (0, 7)))


def test_values_that_were_joined_as_they_are_have_lost_what_they_began_with(config: TableConfig) -> None:
    def joined(fields: tuple[str, ...], *, hive: bool, encoded: bool) -> bool:
        stated = replace(config, partition_fields=fields, hive_style=hive, url_encode=encoded, key_generator=COMPLEX)
        return places_of(SLICES, stated, SCHEMA, by_partition=True).joined

    assert joined(("p", "q"), hive=False, encoded=False)
    assert not joined(("p", "q"), hive=True, encoded=False)
    assert not joined(("p", "q"), hive=False, encoded=True)
    assert not joined(("p",), hive=False, encoded=False)  # a slash would be the path's first


def test_a_path_of_another_style_says_nothing(config: TableConfig) -> None:
    bare, encoded = replace(config, hive_style=False), replace(config, url_encode=True)
    kinds = [pa.string()]
    assert partition_values("a", ["p"], kinds, config) == partition_values("p=a", ["p"], kinds, bare) == (None,)
    assert partition_values("p=a%3Ab", ["p"], kinds, config) == (None,)
    assert partition_values("p=a%3Ab", ["p"], kinds, encoded) == ("a:b",)
    assert partition_values("p=a b", ["p"], kinds, encoded) == ("a b",)
    assert partition_values("p=a%20b", ["p"], kinds, encoded) == (None,)  # no escape of Hudi's
    assert partition_values("p=a+b", ["p"], kinds, encoded) == (None,)  # a space, in old tables
    assert partition_values("p=a+b", ["p"], kinds, config) == ("a+b",)


def test_a_field_inside_a_struct_says_nothing(config: TableConfig) -> None:
    nested = replace(config, partition_fields=("p", "place.name"))
    slices = [SliceTask("p=a/place.name=b/0.parquet", (), 5)]
    assert places_of(slices, nested, SCHEMA, by_partition=True).partitions == (("a", None),)


@pytest.mark.parametrize("generator", [None, "org.apache.hudi.keygen.CustomKeyGenerator", "TIMESTAMP"])
def test_paths_that_others_make_say_nothing(config: TableConfig, generator: str | None) -> None:
    stated = replace(config, key_generator=generator)
    assert places_of(SLICES, stated, SCHEMA, by_partition=True).columns == ()
    assert places_of(SLICES, config, SCHEMA, by_partition=False).columns == ()
