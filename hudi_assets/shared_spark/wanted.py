"""Which server a run can use: one with the same settings, versions, and what tells its workers where stores are."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from hudi_assets.engine import InvalidInput, parse_latency

SHARED: Final = "HUDI_ASSETS_SHARED_SPARK"
IDLE: Final = "HUDI_ASSETS_SHARED_SPARK_IDLE"
DEFAULT_IDLE: Final = "30m"
_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
# What Java and workers take from their environment, which is the server's: stores, credentials, programs, and the zone.
_PASSED_ON: Final = (
    *("AWS_", "AZURE_", "GOOGLE_", "GCS_", "CLOUDSDK_", "HADOOP_", "HDFS_", "ARROW_", "KRB5"),
    *("PYTHONPATH", "TZ", "SSL_CERT_"),
)
_PASSED_ON_TOO: Final = frozenset(
    [
        *("HUDI_BUNDLE", "HUDI_ASSETS_METASTORE", "PYSPARK_SUBMIT_ARGS"),
        *("HOME", "CLASSPATH", "LD_LIBRARY_PATH", "JAVA_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"),
    ]
)
_PYTHON: Final = f"{sys.version.partition(' ')[0]} {sys.executable}"
_A_PROXY: Final = "_PROXY"  # some programs go by small letters


@dataclass(frozen=True)
class Versions:
    """The programs of a server, which have to be those of its clients."""

    package: str
    code: str
    python: str
    pyspark: str
    pyarrow: str

    @classmethod
    def here(cls) -> Versions:
        """Of this process: what it began with, and goes on with after an upgrade."""
        return _HERE

    @classmethod
    def installed(cls) -> Versions:
        """What a process that starts now would have."""
        return cls(_version("hudi-assets"), _code(), _PYTHON, _version("pyspark"), _version("pyarrow"))


@dataclass(frozen=True)
class Wanted:
    """What a run wants of a server. `environment` is kept as a digest: there are secrets in it."""

    settings: Mapping[str, str]
    versions: Versions
    environment: str

    @classmethod
    def here(cls, settings: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Wanted:
        """For Spark's settings, in this process."""
        passed_on = {name: text for name, text in environment.items() if _is_passed_on(name)}
        return cls(
            {key: str(value) for key, value in settings.items()}, Versions.here(), _digest([os.getuid(), passed_on])
        )

    @property
    def key(self) -> str:
        """The same for all who can share a server."""
        return _digest(asdict(self))[:16]


def is_shared(asked: bool | None = None) -> bool:
    """Whether a run shares the machine's Spark: as it asks, else as HUDI_ASSETS_SHARED_SPARK says."""
    if asked is not None:
        return asked
    said = os.environ.get(SHARED, "").strip().lower()
    if said not in _YES + _NO:
        raise InvalidInput(f"{SHARED}={said} is neither yes nor no.", hint="Set it to 1, or leave it out.")
    return said in _YES


def idle_ms(said: str | None = None) -> int:
    """After how long without a session a server ends, in ms: as said, else HUDI_ASSETS_SHARED_SPARK_IDLE."""
    return parse_latency(said or os.environ.get(IDLE) or DEFAULT_IDLE)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _is_passed_on(name: str) -> bool:
    return name.startswith(_PASSED_ON) or name in _PASSED_ON_TOO or name.upper().endswith(_A_PROXY)


def _code() -> str:
    """Tells two states of the package's files apart: workers that have imported one of them keep it."""
    root = Path(__file__).resolve().parents[1]
    seen = {str(file): file.stat() for file in sorted(root.rglob("*.py"))}
    return f"{root} {_digest([(file, stat.st_mtime_ns, stat.st_size) for file, stat in seen.items()])[:16]}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_HERE: Final = Versions.installed()
