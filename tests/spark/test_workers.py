"""What Spark's Python workers keep between two tasks."""

from __future__ import annotations

import gc
import os

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine.spark.session import run_tasks

pytestmark = pytest.mark.spark


def test_what_a_worker_has_imported_is_not_collected_after_each_task(spark: SparkSession) -> None:
    def frozen(task: int) -> tuple[int, int]:
        return os.getpid(), gc.get_freeze_count()

    first, second, third = (dict(run_tasks(spark, frozen, range(4))) for _ in range(3))
    stayed = first.keys() & second.keys() & third.keys()
    assert stayed
    for worker in stayed:
        # All that pyarrow, pandas and PySpark are made of; and once, not again with what each task leaves.
        assert 10_000 < third[worker] <= second[worker]
