"""Each program of Python that README, tutorial and how-to show is run: here, or where `ELSEWHERE` says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_assets.engine import CompactionSeries, Freshness, HudiTable
from hudi_assets.resources import Catalog
from tests.pages import FOR_USERS, ROOT, blocks, name_of

PYTHON, CATALOG = "docs/how-to/python.md", "docs/how-to/catalog.md"
ELSEWHERE = {
    "README.md": "tests/spark/test_readme.py",
    "docs/how-to/alerts.md": "tests/dagster/test_alerts.py",
    "docs/how-to/cluster.md": "tests/cluster/test_workers.py",
    "docs/how-to/dagster.md": "tests/wheel/test_installed.py",
    "docs/how-to/s3.md": "tests/stores/queries_by_spark.py",  # the same calls, on a real MinIO
    "docs/how-to/spark_connect.md": "tests/connect/test_connect.py",  # the same calls, on a real server
}


def run(page: str, number: int, names: dict[str, Any], **places: object) -> dict[str, Any]:
    """Run a page's program of that number, with other values for some of its words; the names that it leaves."""
    program = blocks(ROOT / page, "python")[number].text
    for word, place in places.items():
        path = "/" + word.replace("_", "/")
        assert path in program
        program = program.replace(path, str(place))
    exec(compile(program, page, "exec"), names)
    return names


@pytest.mark.spark
@pytest.mark.classic
def test_a_table_is_written(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*amounts: float) -> Any:
        paid = datetime(2024, 5, 1, tzinfo=UTC)
        values = [(str(n), "nl", paid, amount) for n, amount in enumerate(amounts)]
        return spark.createDataFrame(values, "id string, country string, paid_at timestamp, amount double")

    history, changes = rows(1.0, 2.0), rows(5.0)
    given = {"HudiTable": HudiTable, "spark": spark, "schema": history.schema, "history": history, "changes": changes}
    table = run(PYTHON, 0, given, data_payments=tmp_path / "payments")["table"]
    assert "|     nl|        7.0|" in capsys.readouterr().out
    assert table.config.event_time_field == "paid_at"


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.usefixtures("spark")
def test_a_table_is_compacted_and_asked(tmp_path: Path) -> None:
    names = run(PYTHON, 1, {}, tmp_payments=tmp_path / "payments")
    done, table = names["done"], names["table"]
    assert isinstance(done, CompactionSeries)
    assert isinstance(table.freshness(), Freshness)
    assert len(table.savepoints()) == 1


def test_a_catalog_is_a_resource() -> None:
    for number in range(2):
        names = run(CATALOG, number, {})
        assert isinstance(names["defs"].resources["lake"], Catalog)


def test_each_program_is_run() -> None:
    numbers = {name_of(page): len(blocks(page, "python")) for page in FOR_USERS}
    here = {page: number for page, number in numbers.items() if number and page not in ELSEWHERE}
    assert here == {PYTHON: 2, CATALOG: 2}
    for page, runner in ELSEWHERE.items():
        assert numbers[page], page
        assert (ROOT / runner).exists()


@pytest.mark.parametrize("page", FOR_USERS, ids=name_of)
def test_each_program_is_python(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block.text, name_of(page), "exec")
