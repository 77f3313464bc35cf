"""The text of the read-optimized view: `SELECT … FROM parquet.` over the current base files, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_assets.catalog.spark_types import sql_type

_GLOB = re.compile(r"([\\{}\[\]*?])")
_SPECIAL = re.compile(r"[\\{}\[\]*?,:]")


def read_optimized_text(schema: pa.Schema, groups: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> str:
    """One SELECT for each group of files (`HudiTable.read_optimized_groups`), together."""
    selects = [read_optimized_query(schema, files, columns) for files, columns in groups]
    return " UNION ALL ".join(selects) or read_optimized_query(schema, [])


def read_optimized_query(schema: pa.Schema, files: Sequence[str], columns: Mapping[str, str] | None = None) -> str:
    """A query of exactly these Parquet files; without any, an empty relation with the schema's columns.

    `columns`: SQL for the columns that the files have in another type than the schema, or not.

    Files are named in one path with alternatives, `…/{a,b}`. Of several, Hadoop passes over those that are not there,
    without an error: a view has to be published anew before files of it go. Hadoop gets some characters wrong inside
    the braces, even escaped: such a file stands in a SELECT of its own. (One of `{}[]*?` in a table that also has a
    colon in a path it cannot read at all; the statement then fails.)
    """
    if not files:
        empty = (f"CAST(NULL AS {_declared(field.type)}) AS {_quoted(field.name)}" for field in schema)
        return f"SELECT {', '.join(empty)} WHERE false"
    paths = sorted(file.removeprefix("file://") for file in files)
    plain = [path for path in paths if not _is_special(path)]
    patterns = ([_alternatives(plain)] if plain else []) + [
        _GLOB.sub(r"\\\1", path) for path in paths if _is_special(path)
    ]
    select = "SELECT " + ", ".join(_selected(field.name, columns or {}) for field in schema)
    quoted = (pattern.replace("`", "``") for pattern in patterns)
    return " UNION ALL ".join(f"{select} FROM parquet.`{pattern}`" for pattern in quoted)


def _is_special(path: str) -> bool:
    return _SPECIAL.search(path.removeprefix("s3a://")) is not None


def escaped(text: str) -> str:
    """What stands between the quotes of a string of Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _selected(name: str, columns: Mapping[str, str]) -> str:
    made = columns.get(name, _quoted(name))
    return made if made == _quoted(name) else f"{made} AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _declared(kind: pa.DataType) -> str:
    """A type in a CAST: there the names of a struct's fields are quoted."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{_quoted(field.name)}:{_declared(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{_declared(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_declared(kind.key_type)},{_declared(kind.item_type)}>"
    return sql_type(kind)


def _alternatives(paths: Sequence[str]) -> str:
    start = _common_directory(paths)
    return start + "{" + ",".join(path[len(start) :] for path in paths) + "}" if len(paths) > 1 else paths[0]


def _common_directory(paths: Sequence[str]) -> str:
    first, last = min(paths), max(paths)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rindex("/", 0, same) + 1]
