"""A dg project in a folder of its own, loaded in this process: what a block's YAML makes, by Dagster's own loader."""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from dagster import AssetKey, DagsterInstance, Definitions, ResourceDefinition, load_from_defs_folder

from tests.dagster.conftest import FileCatalog, InProcess

_PYPROJECT = """[project]
name = "{name}"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{name}"
"""


@dataclass(frozen=True)
class DefsProject:
    """`defs` is the folder that blocks go into."""

    root: Path
    name: str = field(default_factory=lambda: f"project_{uuid.uuid4().hex[:8]}")

    @property
    def defs(self) -> Path:
        return self.root / self.name / "defs"

    def made(self) -> DefsProject:
        self.defs.mkdir(parents=True)
        (self.root / "pyproject.toml").write_text(_PYPROJECT.format(name=self.name))
        (self.root / self.name / "__init__.py").touch()
        (self.defs / "__init__.py").touch()
        return self

    def load(self) -> Definitions:
        """All that the blocks define. Raises what Dagster raises for a wrong one."""
        sys.path.insert(0, str(self.root))
        try:
            loaded = load_from_defs_folder(path_within_project=self.root)
            Definitions.validate_loadable(loaded)
            return loaded
        finally:
            sys.path.remove(str(self.root))
            for module in [one for one in sys.modules if one.split(".")[0] == self.name]:
                del sys.modules[module]


def compacted(definitions: Definitions, instance: DagsterInstance, name: str, home: Path) -> bool:
    """Plan, execute and publish in this process."""
    (home / "home").mkdir(exist_ok=True)
    quick = {
        "hudi_spark": ResourceDefinition.hardcoded_resource(type("S", (), {"spark_session": InProcess()})()),
        "hudi_catalog": FileCatalog(file=str(home / "catalog.json")),
    }
    replaced = Definitions(
        assets=definitions.assets,
        asset_checks=definitions.asset_checks,
        resources={**(definitions.resources or {}), **quick},
    )
    keys = [AssetKey([name, asset]) for asset in ("compaction_plan", "ro_snapshot", "freshness")]
    job = replaced.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(instance=instance, asset_selection=keys, raise_on_error=False)
    assert done.success, [event.event_specific_data for event in done.all_events if event.is_step_failure]
    return [key.path[-1] for e in done.get_asset_materialization_events() if (key := e.asset_key)] == [
        "compaction_plan",
        "ro_snapshot",
        "freshness",
    ]
