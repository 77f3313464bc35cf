"""On a real YARN containers are sent hudi-assets, as docs/how-to/cluster.md says (`make test-yarn`)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.cluster import yarn
from tests.cluster.tables import DONE, a_table, steps
from tests.tables.local_session import LocalSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("TEST_YARN"), reason="a suite of its own: make test-yarn"),
]


def test_containers_are_sent_a_packed_environment(packed: Path, session: LocalSession) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPARK_LOCAL_DIRS")) as name:
        folder = Path(name)
        with yarn.running_yarn(folder) as settings:
            found = steps(
                "yarn",
                a_table(folder / "t", session),
                folder,
                f"spark.archives={packed}#environment",
                f"spark.yarn.jars=local:{yarn.SPARKS_JARS}/*",
                f"spark.yarn.stagingDir={folder}/staging",
                "spark.executor.instances=2",
                python="./environment/bin/python",
                more={"HADOOP_CONF_DIR": str(settings)},
            )
    assert found == DONE
