"""The components `HudiTableComponent` (one table) and `HudiTablesComponent` (many), for Dagster projects.

`dg` imports this module in every environment that has this package. An import that fails would stop `dg` itself, so
without the extra `dagster` nothing is here.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

_NEEDS = ("dagster_pyspark", "matplotlib", "PIL")

if all(map(find_spec, _NEEDS)):
    from hudi_assets.components.hudi_table import HudiTableComponent as HudiTableComponent
    from hudi_assets.components.hudi_table import SensorModel as SensorModel
    from hudi_assets.components.hudi_table import SourceModel as SourceModel
    from hudi_assets.components.hudi_tables import HudiTablesComponent as HudiTablesComponent


def __getattr__(name: str) -> Any:
    if name in ("HudiTableComponent", "HudiTablesComponent"):
        raise ImportError(f"{name} needs Dagster: pip install 'hudi-assets[dagster]'")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
