"""What `make test` runs, by a stand-in for the tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(folder: Path, *arguments: str, fails: str = "nothing") -> tuple[int, list[str]]:
    """The exit code, and every pytest that make ran in the environment. Commands with `fails` in them fail."""
    env, ran = folder / "env", folder / "ran"
    ran.write_text("")
    env.write_text(f'#!/bin/sh\necho "$@" >>{ran}\ncase "$*" in *"{fails}"*) exit 1 ;; esac\n')
    env.chmod(0o755)
    # What a make around these tests was told is not for this one.
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    command = ["make", f"ENV={env}", "SETUP=true", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=inherited, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in ran.read_text().splitlines() if " pytest " in line]


@pytest.mark.parametrize("fails", ["tests/machine", "tests/spark ", "--ignore", "pytest"])
def test_one_red_suite_does_not_hide_the_next(fails: str, tmp_path: Path) -> None:
    code, all_of_it = make(tmp_path, "test")
    assert code == 0
    assert len(all_of_it) == 3
    code, ran = make(tmp_path, "test", fails=fails)
    assert code != 0
    assert ran == all_of_it


def test_every_folder_of_tests_is_in_one_of_the_suites(tmp_path: Path) -> None:
    _, (together, sparks, alone) = make(tmp_path, "test")
    folders = [word for suite in (together, sparks) for word in suite.split() if word.startswith("tests/")]
    assert folders
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert [word for word in alone.split() if word.startswith("--ignore=")] == [f"--ignore={f}" for f in folders]


def test_what_ci_leaves_out_of_a_suite_has_a_step_of_its_own(tmp_path: Path) -> None:
    script = (ROOT / ".ci" / "run").read_text()
    kept = re.search(r'make test-together TOGETHER="([^"]*)"', script)
    assert kept is not None
    _, (together, *_) = make(tmp_path, "test")
    left_out = {word for word in together.split() if word.startswith("tests/")} - set(kept[1].split())
    steps = {"tests/machine": "test-lives", "tests/fuzz": "test-fuzz", "tests/stores": "test-stores"}
    assert left_out == steps.keys()
    for folder, target in steps.items():
        assert re.search(rf'^step ".*" make {target}\b', script, re.MULTILINE)
        command = ["make", "--dry-run", "ENV=", "SETUP=true", target]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert f" {folder} " in shown.replace("\n", " \n")


def test_the_slices_name_what_is_there_and_leave_out_the_same(tmp_path: Path) -> None:
    _, suites = make(tmp_path, "test")
    _, (quick,) = make(tmp_path, "test-quick")
    assert all((ROOT / word).exists() for word in quick.split() if word.startswith("tests/"))
    assert all("not thorough" in suite for suite in (*suites, quick))
    _, (thorough,) = make(tmp_path, "test-thorough")
    assert "-m thorough and not interop" in thorough
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))}
    assert folders <= {Path(word).name for word in thorough.split()}  # wherever they are


def test_random_examples_have_a_seed_that_can_be_given_again(tmp_path: Path) -> None:
    code, ran = make(tmp_path, "test-property", "SEED=7", "ROUNDS=3", fails="--hypothesis-seed 7")
    assert code != 0
    assert [line.split("--hypothesis-seed ")[1].split()[0] for line in ran] == ["7", "8", "9"]
    _, (chosen,) = make(tmp_path, "test-property")
    assert chosen.split("--hypothesis-seed ")[1].split()[0].isdigit()
