"""One file group larger than the worker's memory budget: the same rows, in passes, and within a stated peak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.merging import passes
from hudi_assets.engine.queries.query import read_task
from hudi_assets.engine.table.settings.compaction import COMPACTION_MEMORY, LEAST_MEMORY
from tests.tables.local_session import LocalSession
from tests.tables.steps import at, compact, created, with_properties

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("text", pa.string())])
ROWS = 12_000
THRESHOLD = 500_000


def rows(step: int) -> pa.Table:
    """Every third row from `step` on, with an event time that later steps may be below."""
    numbers = np.arange(step, ROWS, 3)
    times = (numbers * 7919 + step * 104_729) % 1_000_000
    columns = {
        "id": [f"a-key-of-some-length-{number:010d}" for number in numbers],
        "ts": times,
        "v": numbers * 10 + step,
        "text": [f"{number * 2654435761:032x}" for number in numbers.tolist()],
    }
    return pa.table(columns, schema=SCHEMA)


def make(path: Path, session: LocalSession, version: int, *, split: bool, block_format: str) -> HudiTable:
    empty = created(path, SCHEMA, buckets=1, clock="commit", data_latency="0s", table_version=version)
    if split:
        with_properties(empty, {"hudi_assets.table.services": "ours", "hudi_assets.exact.split": "true"})
    table = HudiTable.open(str(path), settings={"hoodie.logfile.data.block.format": block_format})
    for step in range(4):
        table.upsert(session, session.frame(rows(step)), clock_time=at(2_000_000))
        if step == 0 and not split:
            compact(table, session, 2_000_000)
    gone = rows(1).select(["id"]).append_column("ts", pa.array([999_999] * len(rows(1)))).slice(0, 900)
    table.delete(session, session.frame(gone), clock_time=at(2_000_000))
    return table


def shown(table: HudiTable) -> list[dict[str, object]]:
    """The snapshot, without the names of files: they differ from table to table."""
    found = pa.Table.from_batches([batch for task in table.snapshot_tasks() for batch in read_task(task)])
    return found.select(SCHEMA.names).sort_by("id").to_pylist()


def newest_base_file(path: Path) -> pa.Table:
    newest = max(path.glob("*.parquet"), key=lambda file: file.name.rsplit("_", 1)[-1])
    return pq.ParquetFile(newest).read(use_threads=False).select(SCHEMA.names)


@pytest.mark.slow
@pytest.mark.parametrize("block_format", ["parquet", "avro"])
@pytest.mark.parametrize(("version", "split"), [(6, False), (9, False), (6, True)], ids=["6", "9", "exact split"])
def test_a_small_budget_changes_no_row(
    session: LocalSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    split: bool,
    block_format: str,
) -> None:
    parts: list[int] = []
    decide = passes.SliceMerge.__post_init__

    def noting(merge: passes.SliceMerge) -> None:
        decide(merge)
        parts.append(merge.parts)

    monkeypatch.setattr(passes.SliceMerge, "__post_init__", noting)
    base_files, snapshots = [], []
    for budget in (str(1 << 30), "1"):
        path = tmp_path / budget
        make(path, session, version, split=split, block_format=block_format)
        table = HudiTable.open(str(path), settings={COMPACTION_MEMORY: budget})
        before = shown(table)
        parts.clear()
        compact(table, session, THRESHOLD if split else 2_000_000)
        assert (parts == [1]) == (budget != "1"), "a budget of 1 MiB asks for several passes"
        assert shown(table) == before
        base_files.append(newest_base_file(path))
        snapshots.append(before)
    assert base_files[0].equals(base_files[1])
    assert snapshots[0] == snapshots[1]


def test_the_least_budget(session: LocalSession, tmp_path: Path) -> None:
    table = make(tmp_path / "t", session, 6, split=False, block_format="parquet")
    assert table.config.compaction.memory == 1 << 30
    settings = HudiTable.open(str(tmp_path / "t"), settings={COMPACTION_MEMORY: "1"}).config.compaction
    assert settings.memory == LEAST_MEMORY


# What a worker does, without Spark: one operation of a plan, and then how much memory the process took at most.
WORKER = """
import resource, sys
from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema, avro_to_arrow_schema
from hudi_assets.engine.actions.compaction.tasks import CompactionSpec, execute_operation
from hudi_assets.engine.table.layout.v6 import LayoutV6
from hudi_assets.engine.table.log_files.reader import CommittedInstants
from hudi_assets.engine.model import Operation
from hudi_assets.engine.table.slices.reader import SliceReader
from hudi_assets.engine.storage import LocalStorage

folder, memory, logs, avro = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), open(sys.argv[1] + "/schema").read()
reader = SliceReader(LocalStorage(folder), avro_to_arrow_schema(avro), ("ts",), CommittedInstants(frozenset(), "9"))
spec = CompactionSpec(reader, LayoutV6(), "2" + sys.argv[3], avro, memory=memory)
names = tuple(f"{n}.log" for n in range(logs))
base = "base.parquet" if logs else None
done = execute_operation(spec, Operation("", "00000000-0", "1", base, names, (), {}))
print(done.result.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
LOGS = 12
LOG_ROWS = 25_000


def worker(folder: Path, memory: int, logs: int = LOGS) -> tuple[int, int]:
    """Rows written, and the process's peak in MiB."""
    command = [sys.executable, "-c", WORKER, str(folder), str(memory), str(logs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, peak = done.stdout.split()
    return int(count), int(peak)


def texts(seed: int) -> list[str]:
    """Such as do not compress: few bytes of Parquet are not believed to hold many rows."""
    digits = np.random.default_rng(seed).bytes(30 * LOG_ROWS).hex()
    return [digits[start : start + 60] for start in range(0, len(digits), 60)]


def file_group(folder: Path) -> int:
    """A base file of LOGS * LOG_ROWS rows, and log files that replace all of them; its size in Arrow in MiB."""
    from hudi_assets.engine.actions.writing.log_files import encode_data_block
    from hudi_assets.engine.format.avro.schema import arrow_to_avro_schema, with_meta_columns
    from hudi_assets.engine.format.log_file.block_times import BlockTimes
    from hudi_assets.engine.storage import LocalStorage
    from hudi_assets.engine.table.base_file_writer import write_base_file

    folder.mkdir()
    plain = pa.schema([("id", pa.string()), ("ts", pa.int64()), *((f"x{n}", pa.string()) for n in range(6))])
    schema = with_meta_columns(plain)
    avro = arrow_to_avro_schema(schema, "t_record", "hoodie.t")
    (folder / "schema").write_text(avro)

    def some(start: int, step: int) -> pa.Table:
        keys = [f"key-{number:012d}" for number in range(start, start + LOG_ROWS)]
        columns = {field.name: pa.array([f"{step}"] * LOG_ROWS) for field in schema}
        columns |= {"_hoodie_record_key": pa.array(keys), "id": pa.array(keys), "ts": pa.array([step] * LOG_ROWS)}
        columns |= {f"x{n}": pa.array(texts(step * LOGS * LOG_ROWS + start + n)) for n in range(6)}
        return pa.table(columns).select(schema.names).cast(schema)

    base = pa.concat_tables([some(n * LOG_ROWS, 0) for n in range(LOGS)])
    write_base_file(LocalStorage(str(folder)), "base.parquet", base, avro, None)
    for number in range(LOGS):
        block = encode_data_block(some(number * LOG_ROWS, 1), avro, "1", BlockTimes("ts:ms", 0, 1), "parquet")
        (folder / f"{number}.log").write_bytes(block)
    return int(2 * base.nbytes) >> 20


@pytest.mark.slow
def test_the_peak_is_held(tmp_path: Path) -> None:
    """The process itself, the budget, and a few times the largest log block.

    `docs/explanation/compaction.md` states it so.
    """
    size = file_group(tmp_path / "group")
    block = size // (2 * LOGS) + 1
    _, floor = worker(tmp_path / "group", 1 << 30, logs=0)
    written, peak = worker(tmp_path / "group", 16 << 20)
    assert written == LOGS * LOG_ROWS
    assert size > 250, "the file group is far larger than the budget"
    assert peak - floor < 16 + 8 * block, f"floor {floor} MiB, peak {peak} MiB, group {size} MiB"
