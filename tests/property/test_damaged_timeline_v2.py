"""Damaged files of the timeline of versions 8 and 9: each is read, or refused by name."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.storage import LocalStorage
from hudi_assets.engine.timeline.archive.v8 import HISTORY, archived_instants, completion_times
from hudi_assets.engine.timeline.commit_avro import decode_commit
from tests.fuzz.mutations import damage

GOLDEN = Path(__file__).parents[1] / "golden" / "hudi_1_2_v9"
COMMITS = sorted(file for file in GOLDEN.iterdir() if file.name.endswith(("commit", "commit.inflight")))


@pytest.mark.parametrize("file", COMMITS, ids=lambda file: file.name.partition(".")[2])
def test_damaged_commits(file: Path) -> None:
    data = file.read_bytes()
    for seed in range(300):
        kind, damaged = damage(random.Random(seed), data)
        try:
            commit = decode_commit(damaged, "x")
        except CorruptTable:
            continue
        assert all(".." not in stat.path for stat in commit.stats), (seed, kind)


def test_damaged_history(tmp_path: Path) -> None:
    """Whatever is damaged in it, nothing but `CorruptTable` comes of it."""
    whole = sorted(file.name for file in (GOLDEN / "history").iterdir())
    refused = 0
    for seed in range(150):
        rng = random.Random(seed)
        base = tmp_path / str(seed)
        shutil.copytree(GOLDEN / "history", base / HISTORY)
        file = base / HISTORY / rng.choice(whole)
        file.write_bytes(damage(rng, file.read_bytes())[1])
        os.utime(file, (0, 0))  # nobody is still writing it
        storage = LocalStorage(str(base))
        with suppress(CorruptTable):
            list(archived_instants(storage))
        try:
            completion_times(storage)
        except CorruptTable:
            refused += 1
    assert refused > 20
