"""The commands that take the engine's work apart do theirs, at a small size; their numbers are not looked at."""

import subprocess
import sys

import pytest

from hudi_assets.home import project_root


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("module", ["load_stages", "incremental_stages"])
def test_each_stage_runs_to_its_end(module: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{module}", "--rows", "2000", "--runs", "1", "--warm-ups", "0"]
    done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("| stage | CPU | clock | what |")
