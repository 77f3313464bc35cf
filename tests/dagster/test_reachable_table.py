"""Whether a table is there, as the sensor and the assets ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine import UnsupportedTable
from hudi_assets.resources.table import TableResource


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_table_is_there_by_its_path_and_by_its_uri(tmp_path: Path, form: str) -> None:
    table = TableResource(name="t", path=form.format(tmp_path / "t"))
    assert not table.exists()
    (tmp_path / "t" / ".hoodie").mkdir(parents=True)
    assert table.exists()


def test_a_store_that_is_not_supported_is_no_table_that_is_missing() -> None:
    with pytest.raises(UnsupportedTable, match="ftp"):
        TableResource(name="t", path="ftp://name/t").exists()
