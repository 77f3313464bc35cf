"""What outlives archiving is written piece by piece, to the same byte as whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine.storage import open_storage
from hudi_assets.engine.timeline import archived_facts
from hudi_assets.engine.timeline.archived_facts import EventTimeMemory, HiddenMemory, LogMemory, Memory
from hudi_assets.engine.timeline.checked_json import seal


@pytest.mark.parametrize("logs", [0, 1, 3, 7])
@pytest.mark.parametrize("columns", [0, 1, 2])
def test_pieces_make_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: int, columns: int) -> None:
    monkeypatch.setattr(archived_facts, "_LOGS_AT_ONCE", 3)
    storage = open_storage(str(tmp_path))
    known = {f'p=ü"/\n{n}': LogMemory("2026", n, 1, 2, 0) for n in range(logs)}
    hidden = {"x": HiddenMemory("1", "2", 3, "4", "commit")} if logs else {}
    by_tag = {f'"{n}:ms': EventTimeMemory(("1", 5) if n else None, known) for n in range(columns)}
    memory = Memory(by_tag, {"b": "1"}, {"1": {"a": "b"}}, hidden)
    archived_facts.write_memory(storage, memory, "made")
    whole = {
        "columns": {
            tag: {"threshold": list(one.threshold) if one.threshold else None, "logs": dict(one.logs)}
            for tag, one in by_tag.items()
        },
        "batches": dict(memory.batches),
        "origins": dict(memory.origins),
        "hidden": hidden,
    }
    assert storage.read(archived_facts.MEMORY).partition(b"\n")[2] == seal(whole)
    assert archived_facts.read_memory(storage).memory == memory
