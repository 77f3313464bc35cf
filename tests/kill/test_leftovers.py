"""What a killed process leaves outside the data: it goes when it is surely dead, and stays while it may not be."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.races.player import SCHEMA, create
from tests.tables.local_session import LocalSession


def test_unfinished_files_go_after_a_day(session: LocalSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    table.upsert(session, session.rows([{"id": "a", "ts": 1, "v": 1}], SCHEMA))
    folder = tmp_path / "t/.hoodie/.aux/hudi_assets/tmp"
    assert list(folder.iterdir()) == []
    for name, hours in (("old", 25), ("young", 23)):
        (folder / name).write_bytes(b"half")
        then = time.time() - hours * 3600
        os.utime(folder / name, (then, then))
    assert any("unfinished file" in sentence for sentence in table.recover())
    assert [file.name for file in folder.iterdir()] == ["young"]
