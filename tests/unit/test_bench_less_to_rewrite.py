"""The benchmark of what is rewritten says what it has done, long before its grid is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import less_to_rewrite
from tests.tables.local_session import install


def test_each_case_is_told_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(less_to_rewrite, "KEYS", 500)
    monkeypatch.setattr(less_to_rewrite, "install", lambda: install(monkeypatch.setattr))
    less_to_rewrite.policy(tmp_path, "1h", commits=2)
    said = capfd.readouterr()
    lines = said.err.splitlines()
    assert [line.rpartition(":")[0] for line in lines[:2]] == [
        "version 9, one partition, 4 file groups, what is due",
        "version 9, one partition, 4 file groups, whole slices",
    ]
    assert len(lines) == 8
    assert "most behind, min" in said.out
