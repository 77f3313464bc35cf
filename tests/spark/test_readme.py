"""The README's quick start does what the README says."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hudi_assets.cli import app
from hudi_assets.home import project_root
from tests.pages import blocks_of

pytestmark = pytest.mark.spark


@pytest.mark.classic
@pytest.mark.usefixtures("spark")
def test_the_quick_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = (project_root() / "README.md").read_text()
    start = readme.partition("## Quick start")[2].partition("\n## ")[0]
    program, shown, _, said = (block.text for block in blocks_of(start))
    exec(compile(program.replace("/tmp/payments", str(tmp_path / "payments")), "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == shown.strip()
    told = CliRunner().invoke(app, ["freshness", str(tmp_path / "payments")]).output.splitlines()
    steady = ("freshness", "watermark", "oldest")
    expected = [line for line in said.splitlines() if line.startswith(steady)]
    assert len(expected) == len(steady)
    assert [line.rstrip() for line in told if line.startswith(steady)] == expected
