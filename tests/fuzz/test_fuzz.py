"""Damaged and hostile files: the engine's own errors or the documented skip, whatever the bytes.

FUZZ_EXAMPLES: cases of each target (default 10). FUZZ_SEED: where to start; a failure names its case as
target:seed:number, which `python -m tests.fuzz.child` with that seed repeats.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.targets import TARGETS

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "10"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.timeout(max(300, EXAMPLES * 2))
@pytest.mark.parametrize("target", TARGETS)
def test_damage_is_a_typed_error_or_a_documented_skip(target: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz.child", target, str(EXAMPLES), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1]["case"] if lines else "the table"
    assert done.returncode == 0, f"the process died ({done.returncode}) at {last}:\n{done.stderr[-3000:]}"
    faults = [line for line in lines if "fault" in line]
    shown = "\n\n".join(f"{line['case']}\n{line['fault'][-2500:]}" for line in faults[:5])
    assert not faults, f"{len(faults)} of {EXAMPLES} cases:\n{shown}"
    assert len({line["case"] for line in lines}) == EXAMPLES
