"""One process that runs cases of one target and says what went wrong: `python -m tests.fuzz.child TARGET N SEED`.

A process of its own, so that a hang, an abort in compiled code or memory out of bounds shows as what it is. On
stdout, a line of JSON before each case and one for each fault.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import random
import resource
import sys
import tempfile
import traceback
from pathlib import Path

from hudi_assets.engine.timeline import whole_files as settled
from tests.fuzz.table import build
from tests.fuzz.targets import OF_VERSION_9, TARGETS
from tests.tables.local_session import install

HANG_S = 60
MEMORY = 6 << 30  # address space: a guard for the machine
GROWTH_MB = 256  # resident: what a case on files of some kilobytes may cost


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(target: str, examples: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        version = 9 if target in OF_VERSION_9 else 6
        fuzzed = build(Path(folder, "table"), install(), with_map=seed % 2 == 1, version=version)
        case = TARGETS[target]
        settled._YOUNG_MS = 0  # what was damaged here stays so: no writer is about to finish it
        for number in range(examples):
            name = f"{target}:{seed}:{number}"
            print(json.dumps({"case": name}), flush=True)
            before = _peak_mb()
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            fault = ""
            try:
                case(random.Random(name), fuzzed)
            except Exception:
                fault = traceback.format_exc()
            faulthandler.cancel_dump_traceback_later()
            if _peak_mb() - before > GROWTH_MB:
                fault += f"memory grew from {before} to {_peak_mb()} MB"
            if fault:
                print(json.dumps({"case": name, "fault": fault}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
