"""PySpark, and the Java that Spark runs on: found, and new enough, before a session is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hudi_assets.engine.errors import EnvironmentProblem

_JAVA_VERSION = re.compile(r'version "((\d+)[^"]*)"')


def check_pyspark() -> None:
    """Raise `EnvironmentProblem` unless PySpark is installed."""
    if find_spec("pyspark") is None:
        hint = "Install it: pip install 'hudi-assets[spark]', or the PySpark of your cluster's version."
        raise EnvironmentProblem("This needs PySpark, which is not installed.", where=sys.prefix, hint=hint)


def check_java() -> None:
    """Raise `EnvironmentProblem` unless a Java runtime of version 17 or later is found."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise EnvironmentProblem("Spark needs Java 17 or later, and none was found.", where=where, hint=hint)
    try:
        out = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", check=False).stderr
    except OSError as error:
        raise EnvironmentProblem(f"Java cannot be run: {error.strerror}.", where=java, hint=hint) from error
    version = _JAVA_VERSION.search(out)
    if version is None or int(version[2]) < 17:
        this = version[1] if version else out.strip()
        raise EnvironmentProblem(f"Spark needs Java 17 or later; this is {this!r}.", where=java, hint=hint)
