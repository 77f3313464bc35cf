"""What Apache Hudi's own compactions cost, as its commits and its timeline's files tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from scripts.hudi_client import Hudi
from tests.interop.tables import hudi_options, rows
from tests.interop.test_hudi_tables import SETTINGS, written_by

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def log_files(path: Path) -> dict[str, int]:
    return {
        one.name: one.stat().st_size
        for one in path.rglob(".*.log.*")
        if one.suffix != ".crc" and ".hoodie" not in one.parts
    }


def base_files(path: Path) -> dict[str, int]:
    return {one.name: one.stat().st_size for one in path.rglob("*.parquet") if ".hoodie" not in one.parts}


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_hudis_own_compaction_is_told_with_what_it_read_and_wrote(
    release: str, path: Path, request: pytest.FixtureRequest
) -> None:
    hudi: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    options = hudi_options(name="t")
    table = written_by(hudi, path, options)
    logs = log_files(path)
    hudi.compaction(path, "run")
    (first,) = table.past_compactions()
    assert first.threshold is None
    assert first.log_files == len(logs)
    assert first.log_bytes == sum(logs.values())
    assert first.duration_ms is not None
    assert 0 < first.duration_ms < 600_000
    assert abs(first.completed_ms - table.metrics().read_at_ms) < 600_000
    written = {name: size for name, size in base_files(path).items() if first.instant in name}
    assert first.file_groups == len(written)
    assert first.bytes_written == sum(written.values())
    assert first.base_bytes is not None

    hudi.write(path, rows([0, 1, 2], lambda n: 200 + n, 7), options)
    more = {name: size for name, size in log_files(path).items() if name not in logs}
    before = base_files(path)
    hudi.compaction(path, "run")
    last = HudiTable.open(str(path), settings=SETTINGS).metrics().last_compaction
    assert last is not None
    assert last.instant > first.instant
    assert (last.log_files, last.log_bytes) == (len(more), sum(more.values()))
    groups = {name.split("_")[0] for name in base_files(path) if last.instant in name}
    assert last.base_bytes == sum(
        size for name, size in before.items() if first.instant in name and name.split("_")[0] in groups
    )
