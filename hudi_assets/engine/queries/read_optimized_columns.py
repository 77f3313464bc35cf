"""Whether base files can be read by Spark as they are, or only through the engine: the table's types may be newer."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.avro.schema import META_COLUMNS, avro_to_arrow_schema
from hudi_assets.engine.model import BaseFile
from hudi_assets.engine.spark import session as spark
from hudi_assets.engine.table.schema_evolution import same_types
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.commit_metadata import SCHEMA
from hudi_assets.engine.timeline.instants import WRITES


def have_table_types(state: TableState) -> bool:
    """True where every current base file has the table's type in each column that it has.

    Spark's Parquet reader gives nulls for a missing column, but reads few types as wider ones (no long as a
    double), and not as Hudi does.
    """
    newest = state.data_schema
    known: dict[str, bool] = {}
    for base in state.view.base_files:
        if base.instant not in known:
            known[base.instant] = _like(_written_schema(state, base), newest)
        if not known[base.instant]:
            return False
    return True


def base_file_groups(state: TableState) -> list[tuple[list[str], dict[str, str]]]:
    """The current base files (absolute), those of one schema together, with what Spark SQL has to select from them.

    That is, per column of the table, an expression that gives the column in its newest type.
    """
    groups: dict[str, tuple[list[str], pa.Schema]] = {}
    for base in state.view.base_files:
        written = _written_schema(state, base)
        files, _ = groups.setdefault(str(written.remove_metadata()), ([], written))
        files.append(spark.spark_name(state.storage.uri(base.path)))
    return [(files, _columns(written, state.schema)) for files, written in groups.values()]


def _columns(written: pa.Schema, newest: pa.Schema) -> dict[str, str]:
    # A commit's schema is without meta columns; every base file has them.
    kinds = {field.name: field.type for field in (*newest, *written)}
    known = {*written.names, *META_COLUMNS}
    return {
        field.name: _expression(_quoted(field.name), kinds[field.name], field.type)
        if field.name in known
        else _null(field.type)
        for field in newest
    }


def _expression(value: str, written: pa.DataType, newest: pa.DataType, depth: int = 0) -> str:
    """Spark SQL that makes a value of one type one of a newer type."""
    if same_types(written, newest):
        return value
    if pa.types.is_struct(newest):
        fields = []
        for field in newest:
            index = written.get_field_index(field.name)
            part = f"{value}.{_quoted(field.name)}"
            made = _null(field.type) if index < 0 else _expression(part, written.field(index).type, field.type, depth)
            fields.append(f"'{field.name}', {made}")
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(fields)}))"
    inner = f"x{depth}"
    if pa.types.is_list(newest):
        made = _expression(inner, written.value_type, newest.value_type, depth + 1)
        return f"transform({value}, {inner} -> {made})"
    if pa.types.is_map(newest):
        made = _expression(inner, written.item_type, newest.item_type, depth + 1)
        return f"transform_values({value}, (k{depth}, {inner}) -> {made})"
    if pa.types.is_float32(written) and pa.types.is_float64(newest):
        value = f"CAST({value} AS STRING)"  # as the engine and Hudi's readers have it
    return f"CAST({value} AS {_type(newest)})"


def _null(kind: pa.DataType) -> str:
    return f"CAST(NULL AS {_type(kind)})"


def _type(kind: pa.DataType) -> str:
    text: str = spark.spark_schema(pa.schema([pa.field("c", kind)])).fields[0].dataType.simpleString()
    return text


def _quoted(name: str) -> str:
    return f"`{name}`"


def _like(written: pa.Schema, newest: pa.Schema) -> bool:
    return all(same_types(field.type, newest.field(field.name).type) for field in written if field.name in newest.names)


def _written_schema(state: TableState, base: BaseFile) -> pa.Schema:
    """The schema that a base file was written with: its commit's, or where that is archived, the file's."""
    for instant in state.timeline.completed(*WRITES):
        if instant.timestamp == base.instant:
            stated = state.commit(instant).extra.get(SCHEMA)
            if stated:
                return avro_to_arrow_schema(stated)
    try:
        with state.storage.open(base.path) as file:
            return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise CorruptTable(
            f"A base file's footer cannot be read: {error}.", where=f"{state.storage.base}: {base.path}"
        ) from error
