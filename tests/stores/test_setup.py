"""scripts/stores-setup never passes without a MinIO: else the tests that need one would be left out unseen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SETUP = Path(__file__).parents[2] / "scripts/stores-setup"


def test_what_cannot_be_built_fails(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    go.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("HUDI_ASSETS_MINIO", None)
    done = subprocess.run([SETUP], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no network" in done.stderr
    assert "was not built" in done.stderr
