"""What a reader shows of a table, in a word, beside the read-optimized and the snapshot view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds

from hudi_assets.engine import HudiTable
from scripts.hudi_rows import read_with_hudi_rs
from tests.interop.trino.server import Trino, TrinoError
from tests.interop.trino.table import REFUSED, RO, SEVERAL, SNAPSHOT

# What Trino says where it does not read a table or view at all. Any other error is a defect.
_REFUSALS = ("Cannot query Hudi table", "HIVE_VIEW_TRANSLATION_ERROR")
Row = Mapping[str, Any]
Said = list[tuple[str, int, str]]


@dataclass(frozen=True)
class Views:
    """Both views as the engine has them."""

    ro: Said
    snapshot: Said

    @classmethod
    def of(cls, table: HudiTable) -> Views:
        return cls(
            said(row for task in table.read_optimized_tasks() for batch in task.read() for row in batch.to_pylist()),
            said(row for task in table.snapshot_tasks() for batch in task.read() for row in batch.to_pylist()),
        )

    def word(self, rows: Callable[[], Iterable[Row]]) -> str:
        """Which of the two it is; `SEVERAL` for all of RO's rows and older versions of some keys beside them."""
        try:
            shown = said(rows())
        except TrinoError as error:
            return REFUSED if any(words in str(error) for words in _REFUSALS) else str(error)
        if shown in (self.ro, self.snapshot):
            return RO if shown == self.ro else SNAPSHOT
        keys = {key for key, *_ in shown}
        return SEVERAL if set(self.ro) < set(shown) and len(keys) < len(shown) else f"{shown}, and RO is {self.ro}"


def said(rows: Iterable[Row]) -> Said:
    return sorted((row["id"], row["ts"], row["text"]) for row in rows)


def by_trino(trino: Trino, name: str) -> dict[str, Callable[[], Iterable[Row]]]:
    """`name`: of the table in the schema `synced`, which Hive sync made, and in `default`, where own views are."""

    def of(place: str) -> Callable[[], Iterable[Row]]:
        return lambda: trino.rows(f"SELECT * FROM {place}")

    return {
        "Trino, Hudi connector, synced _ro": of(f'hudi.synced."{name}_ro"'),
        "Trino, Hudi connector, synced _rt": of(f'hudi.synced."{name}_rt"'),
        "Trino, Hive connector, synced _ro": of(f'plain.synced."{name}_ro"'),
        "Trino, Hive connector led to the Hudi connector, synced _ro": of(f'hive.synced."{name}_ro"'),
        "Trino, own view": of(f'plain.default."{name}_ro"'),
    }


def by_path(table: HudiTable, *, partitioned: bool) -> dict[str, Callable[[], Iterable[Row]]]:
    path = Path(table.path)
    glob = path / ("part=*/*.parquet" if partitioned else "*.parquet")
    return {
        "hudi-rs, read-optimized": lambda: read_with_hudi_rs(str(path), "read_optimized").to_pylist(),
        "hudi-rs, snapshot": lambda: read_with_hudi_rs(str(path), "snapshot").to_pylist(),
        "DuckDB, read_parquet of a pattern": lambda: _by_duckdb(repr(str(glob))),
        "DuckDB, read_parquet of the files of HudiTable.read_optimized_files": lambda: _by_duckdb(
            repr(table.read_optimized_files())
        ),
        "PyArrow, dataset of the folder": lambda: ds.dataset(str(path), format="parquet").to_table().to_pylist(),
    }


def _by_duckdb(files: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT * FROM read_parquet({files}, hive_partitioning = false)")
        found: list[dict[str, Any]] = rows.to_arrow_table().to_pylist()
        return found
