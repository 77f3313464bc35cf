"""What makes a run of tests cheap on this machine. Imported first; nothing here changes what the tests find."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests import spark_classes

if TYPE_CHECKING:
    import pytest

# A JVM of a test lives for seconds: the second compiler's work would not come back. Never printed, unlike
# JAVA_TOOL_OPTIONS; for the JVM that Spark runs in, and the short one that finds out how to start it.
_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MEMORY: Final = Path("/dev/shm")
# Its tests share a Hive metastore and a Spark, which take longer to start than most of them to end.
_TOGETHER: Final = "tests/catalog"
# What all tests together keep there is far less; a container has 64 MB unless told otherwise.
_ENOUGH_BYTES: Final = 4 * 1024**3


def load() -> None:
    """Where the environment says otherwise, that holds."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _JVM + spark_classes.option())
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _JVM)
    if "TMPDIR" not in os.environ and (folder := _in_memory()):
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # pytest keeps what tests print in a temporary file: Python has chosen one by now


def scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile` a file goes to one worker, and the folder `_TOGETHER` as if it were one file."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped, unused-ignore]

    class Files(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return _TOGETHER if nodeid.startswith(f"{_TOGETHER}/") else str(super()._split_scope(nodeid))

    return Files(config, log) if config.getvalue("dist") == "loadfile" else None


def _in_memory() -> str | None:
    """A folder in memory, where there is room: a commit syncs its files, and a disk takes milliseconds for each."""
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _ENOUGH_BYTES:
        return None
    folder = _MEMORY / f"hudi-assets-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)
