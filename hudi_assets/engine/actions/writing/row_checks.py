"""What is wrong with rows before they are written: missing keys, values that are paths. Pure Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.format.avro.project import project
from hudi_assets.engine.table.metadata.decimal_limits import ROOM, Columns, without_room
from hudi_assets.engine.table.record_keys import escape_path_name
from hudi_assets.engine.table.settings.config import TableConfig

_LONGEST_NAME = 255  # bytes: what Linux's and HDFS's file systems take


@dataclass(slots=True)
class RowCount:
    """How many rows there are, how many have each fault (fault in words → rows), and their file groups."""

    rows: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    groups: frozenset[tuple[str, int]] = frozenset()  # partition path, bucket

    def __add__(self, other: RowCount) -> RowCount:
        return RowCount(self.rows + other.rows, self.faults + other.faults, self.groups | other.groups)


def count_rows(
    batches: Iterable[pa.RecordBatch], config: TableConfig, not_null: Iterable[str], tight: Columns | None = None
) -> RowCount:
    """Count rows and their faults. A row has a fault where it has no … (see `_faults`).

    `tight`: columns whose values the metadata table's statistics have to have room for.
    """
    count = RowCount()
    names = list(not_null)
    for batch in batches:
        count.rows += len(batch)
        for fault, test in _faults(batch, config, names, tight or {}):
            found = pc.sum(test).as_py() or 0
            if found:
                count.faults[fault] += found
    return count


def fitting(batches: Iterable[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches as they are, each once its values in `target`'s columns are known to fit; else `InvalidInput`."""
    for batch in batches:
        if target.names:
            project(pa.Table.from_batches([batch]).select(target.names), target)
        yield batch


def _faults(
    batch: pa.RecordBatch, config: TableConfig, not_null: list[str], tight: Columns
) -> Iterator[tuple[str, pa.Array]]:
    """Each thing a row must have, in words, and where it has not."""
    for name in not_null:
        yield f"{name} (null)", pc.is_null(batch.column(name))
    for path, kind in tight.items():
        if path.split(".")[0] in batch.schema.names:
            fault = f"{path} that the metadata table's column statistics have room for ({ROOM})"
            yield fault, without_room(batch, path, kind)
    texts = [pc.fill_null(_text(batch, name), "") for name in config.record_key]
    empty = [pc.equal(text, "") for text in texts]
    if config.complex_keys:
        all_empty = empty[0]
        for one in empty[1:]:
            all_empty = pc.and_(all_empty, one)
        yield "record key (all fields are null or empty)", all_empty
    else:
        yield f"record key (null or empty {config.record_key[0]})", empty[0]
    for name in config.partition_fields:
        value = pc.fill_null(_text(batch, name), "").dictionary_encode()
        prefix = f"{name}=" if config.hive_style else ""
        odd = [not _names_a_folder(text, prefix, config.url_encode) for text in value.dictionary.to_pylist()]
        path = pa.array(odd, pa.bool_()).take(value.indices)
        yield f"partition value in {name} that is one folder's name", path
    # Hudi splits a key's text to find its bucket, and its versions split such keys differently.
    mark = "," if config.complex_keys else ":"
    for name, text in zip(config.record_key, texts, strict=True):
        yield f"{name} that the bucket index can place (it holds {mark!r})", pc.match_substring(text, mark)


def _names_a_folder(value: str, prefix: str, url_encode: bool) -> bool:
    """True where a partition value is one folder's name, to Java as well: a colon there ends a URI's scheme."""
    text = escape_path_name(value) if url_encode else value
    short = len((prefix + text).encode()) <= _LONGEST_NAME
    return short and text not in (".", "..", ".hoodie") and not set(text) & set("/:\0")


def _text(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(name)
    return column if pa.types.is_string(column.type) else column.cast(pa.string())
