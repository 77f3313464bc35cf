"""The components for Dagster projects: a block of YAML becomes a table's assets, checks, job and sensor.

- `hudi_table.HudiTableComponent`: one table. Begin here; its fields are those of a block.
- `fields`: those of them that have fields of their own, as `sensor` and `bounds`.
- `hudi_tables.HudiTablesComponent`: many tables in one block, with what they share said once.
- `refused.Refused`: a table whose block is wrong, where the others are to go on without it.
- `scaffolding.TableScaffolder`: the block that `dg scaffold defs` writes.

Dagster makes them by `load_from_defs_folder`. They put together what `hudi_assets.dagster` defines.

`dg` imports this module in every environment that has this package. An import that fails would stop `dg` itself, so
without the extra `dagster` nothing is here.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

_NEEDS = ("dagster_pyspark", "matplotlib", "PIL")

if all(map(find_spec, _NEEDS)):
    from hudi_assets.components.fields import SensorModel as SensorModel
    from hudi_assets.components.fields import SourceModel as SourceModel
    from hudi_assets.components.hudi_table import HudiTableComponent as HudiTableComponent
    from hudi_assets.components.hudi_tables import HudiTablesComponent as HudiTablesComponent


def __getattr__(name: str) -> Any:
    if name in ("HudiTableComponent", "HudiTablesComponent"):
        raise ImportError(f"{name} needs Dagster: pip install 'hudi-assets[dagster]'")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
