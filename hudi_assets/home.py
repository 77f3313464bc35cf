"""Where this project keeps what it writes: one directory, `.hudi-assets` beside pyproject.toml.

HUDI_ASSETS_HOME moves it. Installed without its source tree, the directory is made where the program runs.
"""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def project_root() -> Path:
    """The source tree, or the working directory when the package was installed without one."""
    return _ROOT if (_ROOT / "pyproject.toml").exists() else Path.cwd()


def home() -> Path:
    """The directory of everything that is written: warehouse, catalog, Dagster's instance."""
    moved = os.environ.get("HUDI_ASSETS_HOME")
    return Path(moved).expanduser().absolute() if moved else project_root() / ".hudi-assets"


def warehouse() -> str:
    """Where the demo's table is: a folder, in the home directory where it is relative, or a bucket's.

    HUDI_ASSETS_WAREHOUSE moves it.
    """
    named = os.environ.get("HUDI_ASSETS_WAREHOUSE", "warehouse").rstrip("/")
    return named if "://" in named else str(home() / named)


def dagster_home() -> Path:
    return home() / "dagster"
