"""The benchmark's rows: what the docs say of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.bare import Group, Piece, _rewrite
from benchmarks.data import HOUR_MS, flights, trips


def test_upserts_change_loaded_keys_each_once_an_hour_later(tmp_path: Path) -> None:
    work = trips(tmp_path, 5_000, upserts=3)
    load = pq.read_table(work.load)
    assert (len(load), load.num_columns) == (5_000, 11)
    keys = set(load["id"].to_pylist())
    assert len(keys) == 5_000
    for hour, path in enumerate(work.upserts, 1):
        rows = pq.read_table(path)
        assert rows.schema == load.schema
        changed = rows["id"].to_pylist()
        assert len(set(changed)) == len(changed) == 500
        assert keys.issuperset(changed)
        assert pc.min(rows["ts"]).as_py() >= hour * HOUR_MS
        assert pc.max(rows["ts"]).as_py() < (hour + 1) * HOUR_MS


def test_the_answer_is_what_sql_says(tmp_path: Path) -> None:
    work = trips(tmp_path, 100)
    rows = pq.read_table(work.load).to_pylist()
    fare, ts = (sum(row[name] for row in rows) for name in ("fare", "ts"))
    count, *sums, greatest = work.answer(pq.read_table(work.load))
    assert (count, greatest) == (100, max(row["note"] for row in rows))
    assert sums == [pytest.approx(fare), ts]
    assert work.expressions == ["count(1)", "sum(fare)", "sum(ts)", "max(note)"]


@pytest.mark.slow
def test_flights_load_the_newest_of_each_and_upsert_the_rest(tmp_path: Path) -> None:
    work = flights(tmp_path, 0)
    tables = [pq.read_table(path) for path in (work.load, *work.upserts)]
    for table in tables:
        keys = table.select(list(work.record_key))
        assert len(keys.group_by(list(work.record_key)).aggregate([])) == len(keys)
    assert len(pa.concat_tables(tables).group_by(list(work.record_key)).aggregate([])) > len(tables[0])


def test_the_bare_cost_reads_all_and_writes_as_many_rows_as_the_result_has(tmp_path: Path) -> None:
    base, log = pa.table({"id": [1, 2, 3]}), pa.table({"id": [3, 4]})
    pq.write_table(base, tmp_path / "base.parquet")
    pq.write_table(log, tmp_path / "block.parquet")
    content = (tmp_path / "block.parquet").read_bytes()
    (tmp_path / "log").write_bytes(b"header" + content + b"footer")
    piece = Piece(str(tmp_path / "log"), len(b"header"), len(content))
    for rows in (3, 4):
        out = str(tmp_path / f"{rows}.parquet")
        _rewrite(Group(str(tmp_path / "base.parquet"), (piece,), rows, "zstd"), out)
        footer = pq.read_metadata(out)
        assert (footer.num_rows, footer.row_group(0).column(0).compression) == (rows, "ZSTD")
