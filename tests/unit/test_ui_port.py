"""`make ui` where its port is taken, or its directory cannot be made: words, and no traceback."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hudi_assets.demo import ui
from hudi_assets.engine.errors import InvalidInput


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind((ui.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert ui.main(str(port)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "Error: Dagster's UI cannot have its port: Address already in use.",
        f"Where: {ui.HOST}:{port}",
        "Hint: Choose another one: make ui PORT=3001.",
    ]
    assert ui.check_port(str(port)) == port


@pytest.mark.parametrize("port", ["", "http", "0", "65536", "-1", "²"])
def test_what_is_no_port(port: str) -> None:
    with pytest.raises(InvalidInput, match="is no port"):
        ui.check_port(port)


def test_a_directory_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path / "file"))
    with socket.socket() as free:
        free.bind((ui.HOST, 0))
        port = free.getsockname()[1]
    assert ui.main(str(port)) == 1
    said = capsys.readouterr().err
    assert "Not a directory" in said
    assert "Traceback" not in said
