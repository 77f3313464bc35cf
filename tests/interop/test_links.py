"""Symbolic links and the trace of carried-over log files, as unmodified Apache Hudi takes them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.model import CarryOver
from hudi_assets.engine.timeline.carried_over import SYMLINK_OPERATIONS, encode_carried_over
from scripts.hudi_client import Hudi
from tests.crash.tables import carried_by
from tests.tables.life import Life
from tests.tables.local_session import LocalSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
RELEASES = pytest.mark.parametrize("release", ["0.15.0", pytest.param("1.2.0", marks=pytest.mark.slow)])


@pytest.fixture
def hudi(release: str, request: pytest.FixtureRequest) -> Hudi:
    found: Hudi = request.getfixturevalue("hudi_0_15" if release == "0.15.0" else "hudi_1_2")
    return found


@pytest.fixture
def life(path: Path, session: LocalSession) -> Life:
    """Four rows in base files; two more in log files that symbolic links show in the new slices."""
    life = Life(path, session, 6, **carried_by("symlink"))
    life.upsert()
    life.upsert(ids=[10, 11], later=100_000)
    life.compact()
    return life


def rows(hudi: Hudi, path: Path, query: str) -> int:
    fields = {"begin": "000", "end": "29990101000000000"} if query == "incremental" else {}
    return hudi.read(path, query, **fields).num_rows


@pytest.mark.slow
@RELEASES
def test_a_commit_that_names_many_links(hudi: Hudi, life: Life) -> None:
    """10,000 carried-over log files: 1.8 MB of text in one value of the commit's extra metadata."""
    queries = ("snapshot", "read_optimized", "incremental")
    before = {query: rows(hudi, life.path, query) for query in queries}
    commit = max((life.path / ".hoodie").glob("*.commit"))
    body = json.loads(commit.read_text())
    assert json.loads(body["extraMetadata"][SYMLINK_OPERATIONS])
    groups = [f"p=a/.{n:08d}-5949-550e-9edb-b4e125d9b82a-0" for n in range(10_000)]
    many = [CarryOver(f"{g}_{commit.stem}.log.3_0-10-20", f"{g}_20251122095114031.log.2_0-10-2") for g in groups]
    body["extraMetadata"][SYMLINK_OPERATIONS] = encode_carried_over(many)
    commit.write_text(json.dumps(body))
    assert commit.stat().st_size > 1_500_000
    assert {query: rows(hudi, life.path, query) for query in queries} == before
    assert hudi.timeline(life.path)[-1][:2] == (commit.stem, "commit")


@RELEASES
def test_hudi_passes_over_a_link_that_leads_to_nothing(hudi: Hudi, life: Life) -> None:
    """Why symbolic links are refused where its cleaner may run."""
    assert rows(hudi, life.path, "snapshot") == len(life.snapshot()) == 6
    for link in life.path.glob("p=*/.*.log.*"):
        if link.is_symlink():
            (link.parent / os.readlink(link)).unlink()
    assert rows(hudi, life.path, "snapshot") == 4
    with pytest.raises(CorruptTable, match="symbolic link"):
        life.snapshot()
