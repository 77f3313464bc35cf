"""`hudi_assets.executor=hudi`: our published plan is executed by Apache Hudi's own bundle, on PySpark 3.5."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.timeline.commit_metadata import WRITER
from hudi_assets.engine.timeline.instants import Timeline
from scripts.hudi_client import Hudi, bundle, interop_python
from tests.interop.beside import STATED
from tests.interop.tables import MINUTE, START, hudi_options, rows
from tests.races.player import create

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]


def compact(path: Path, threshold: int, *, jar: str, **settings: str) -> dict[str, Any]:
    """Plan and execute in Hudi's environment."""
    packages = str(Path(pa.__file__).parent.parent)
    given = [f"{key}={value}" for key, value in {**STATED, **settings}.items()]
    script = str(Path(__file__).with_name("compact_with_hudi.py"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))}
    done = subprocess.run(
        [str(interop_python()), script, packages, jar, str(path), str(threshold), *given],
        env=environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def by_id(answer: pa.Table) -> dict[str, tuple[int, int]]:
    found = [(row["id"], (row["ts"], row["big"])) for row in answer.to_pylist()]
    assert len(found) == len(dict(found)), "a key comes twice"
    return dict(found)


@pytest.mark.parametrize("version", ["9", "8"])
def test_hudi_executes_our_plan(hudi_1_2: Hudi, path: Path, version: str) -> None:
    options = hudi_options(name="t") | {"hoodie.write.table.version": version}
    for mark, (numbers, start) in enumerate([(range(9), 0), ([0, 1, 2, 8], 30), ([3, 4, 5], 60), ([1, 8], 90)]):
        hudi_1_2.write(path, rows(numbers, partial(add, start), mark), options)
    before = by_id(hudi_1_2.read(path))
    threshold = START + 40 * MINUTE
    done = compact(path, threshold, jar=str(bundle("1.2.0")))
    assert str(done.get("spark")).startswith("3.5"), done
    assert sum(op["logs_compacted"] for op in done["operations"]) > 0
    assert sum(op["logs_remaining"] for op in done["operations"]) > 0, "nothing remained, so this tests too little"
    assert all((path / op["base_file"]).exists() for op in done["operations"])
    assert by_id(hudi_1_2.read(path)) == before
    table = HudiTable.open(str(path), settings=STATED)
    assert table.config.table_version == int(version)
    timeline: Timeline = table.state().timeline
    assert timeline.is_committed(done["instant"])
    assert not timeline.pending_compactions
    promise = table.freshness(data_latency="1h")
    assert promise.freshness is not None
    assert promise.freshness >= threshold
    shown = by_id(hudi_1_2.read(path, "read_optimized"))
    assert {key for key, row in before.items() if row[0] <= promise.freshness} <= shown.keys()
    assert all(shown[key][0] >= row[0] for key, row in before.items() if row[0] <= promise.freshness)


def test_the_dagster_assets_have_hudi_execute(hudi_1_2: Hudi, path: Path, tmp_path: Path) -> None:
    """`executor: hudi` in a table's YAML block: plan, Hudi's execution, checks and published view in one run."""
    on = {"hoodie.metadata.enable": "true"}
    options = hudi_options(name="t") | {"hoodie.write.table.version": "9", **on}
    for mark, (numbers, start) in enumerate([(range(9), 0), ([0, 1, 2, 8], 30), ([3, 4, 5], 60), ([1, 8], 90)]):
        hudi_1_2.write(path, rows(numbers, partial(add, start), mark), options)
    before = by_id(hudi_1_2.read(path, options=on))
    home, more = tmp_path / "home", tmp_path / "more"
    home.mkdir()
    more.mkdir()
    # Child processes too, the catalog's among them, find this project's packages behind those of PySpark 3.5.
    packages = str(Path(pa.__file__).parent.parent)
    (more / "sitecustomize.py").write_text(f"import sys\nsys.path.append({packages!r})\n")
    given = [f"{key}={value}" for key, value in STATED.items() if key != "hudi_assets.writers"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))}
    environment |= {"HUDI_BUNDLE": str(bundle("1.2.0")), "HUDI_ASSETS_HOME": str(home), "DAGSTER_HOME": str(home)}
    environment["PYTHONPATH"] = str(more)
    script = str(Path(__file__).with_name("dagster_with_hudi.py"))
    threshold = datetime.fromtimestamp((START + 40 * MINUTE) / 1000, UTC).isoformat()
    done = subprocess.run(
        [str(interop_python()), script, str(path), threshold, *given],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["success"], answer["errors"]
    assert answer["materialized"] == ["compaction_plan", "ro_snapshot", "freshness"]
    assert all(answer["checks"][name] for name in ("no_pre_threshold_logs", "files_match_timeline")), answer["checks"]
    table = HudiTable.open(str(path), settings=STATED)
    state = table.state()
    (compaction,) = state.timeline.completed(Action.COMMIT)
    assert WRITER not in state.commit(compaction).extra, "we executed it, not Hudi"
    assert int(answer["metadata"]["logs_compacted"]) > 0
    assert table.stats().remaining_log_files > 0, "nothing remained, so this tests too little"
    assert by_id(hudi_1_2.read(path, options=on)) == before
    assert table.validate() == ()


def test_a_session_without_hudi_is_refused_before_anything_is_done(hudi_1_2: Hudi, path: Path) -> None:
    options = hudi_options(name="t") | {"hoodie.write.table.version": "9"}
    for mark, start in enumerate((0, 30)):
        hudi_1_2.write(path, rows(range(3), partial(add, start), mark), options)
    done = compact(path, START + 40 * MINUTE, jar="none")
    assert "no Apache Hudi" in done["error"]
    assert "--hudi-bundle" in done["error"]
    table = HudiTable.open(str(path), settings=STATED)
    assert [i.state for i in table.state().timeline.pending_compactions] == ["requested"]


def test_a_plan_of_version_6_is_refused_by_name(path: Path) -> None:
    create(path)
    done = compact(path, 10_000, jar="none")
    assert "table version 6" in done["error"]
