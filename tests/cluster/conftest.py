"""An environment that is packed as docs/how-to/cluster.md says, for all tests that send it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.driver import PROJECT
from tests.pages import ROOT, blocks_of

PAGE = ROOT / "docs/how-to/cluster.md"


@pytest.fixture(scope="session")
def packed() -> Iterator[Path]:
    """The project's wheel in an environment that is made and packed by the page's lines. On a disk, and not kept."""
    section = PAGE.read_text("utf-8").partition("## Send an environment with the job")[2]
    lines = blocks_of(section, "sh")[0].text.replace("python3.11 -m venv", f"{sys.executable} -m venv")
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPARK_LOCAL_DIRS")) as name:
        folder = Path(name)
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*build, "-w", name, PROJECT], check=True)
        (wheel,) = folder.glob("*.whl")
        lock = (ROOT / "requirements.lock").read_text("utf-8")
        pins = re.findall(r"^([A-Za-z0-9_.-]+==[^\s;\\]+(?: ; [^\\\n]+)?)", lock, re.MULTILINE)
        (folder / "constraints.txt").write_text("\n".join(pins) + "\n", "utf-8")
        lines = lines.replace("install hudi-assets venv-pack", f"install -q -c constraints.txt {wheel} venv-pack")
        subprocess.run(["sh", "-e", "-c", lines.replace("venv-pack -p", "venv-pack -q -p")], cwd=folder, check=True)
        yield folder / "environment.tar.gz"
