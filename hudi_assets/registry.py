"""What `dg list components` reads. Empty without the extra `dagster`: an import that fails would stop `dg` itself."""

from __future__ import annotations

from importlib.util import find_spec

__all__: list[str] = []

if find_spec("dagster_pyspark") and find_spec("matplotlib") and find_spec("PIL"):
    from hudi_assets.components import HudiTableComponent as HudiTableComponent

    __all__ += ["HudiTableComponent"]
