"""Names of timeline files of versions 8 and 9: Hudi's own, both ways, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.model import Action, State
from hudi_assets.engine.table.layout.v8 import LayoutV8

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(f.name for version in (8, 9) for f in (GOLDEN / f"hudi_1_2_v{version}").iterdir() if f.is_file())


@pytest.mark.parametrize("name", NAMES)
def test_hudis_names_both_ways(name: str) -> None:
    layout = LayoutV8()
    instant = layout.parse_instant(name)
    assert instant is not None
    assert instant.is_completed is ("_" in name)
    assert (instant.completion or "") == name[18:35] * ("_" in name)
    path = layout.instant_path(instant.timestamp, instant.action, instant.state, instant.completion)
    assert path == f".hoodie/timeline/{name}"


@pytest.mark.parametrize(
    ("action", "name"),
    [(Action.COMPACTION, "commit"), (Action.LOG_COMPACTION, "deltacommit"), (Action.CLUSTERING, "replacecommit")],
)
def test_a_service_completes_under_another_name(action: Action, name: str) -> None:
    path = LayoutV8().instant_path("20260101000000000", action, State.COMPLETED, "20260101000000001")
    assert path == f".hoodie/timeline/20260101000000000_20260101000000001.{name}"


@pytest.mark.parametrize(
    "name",
    [
        "_version_",
        "manifest_1",
        "20260101000000000",
        "20260101000000000.x",
        "20260101000000000_soon.commit",
        "20260101000000000_20260101000000001.commit.inflight",
        "20260101000000000.commit.done",
        ".20260101000000000.commit.crc",
    ],
)
def test_what_is_no_instant(name: str) -> None:
    assert LayoutV8().parse_instant(name) is None


def test_a_completed_instant_without_its_completion_time_is_refused() -> None:
    for name in ("20260101000000000.deltacommit", "20260101000000000_.commit"):
        with pytest.raises(UnsupportedTable, match="no completion time"):
            LayoutV8().parse_instant(name)
    with pytest.raises(ValueError, match="completion time"):
        LayoutV8().instant_path("20260101000000000", Action.COMMIT, State.COMPLETED)
