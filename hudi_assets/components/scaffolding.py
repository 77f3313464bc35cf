"""What `dg scaffold defs` writes for a table: a block to fill in, which loads as it is."""

from __future__ import annotations

from dagster import Scaffolder, ScaffoldRequest, scaffold_component

_BLOCK = """type: {type}

attributes:
  name: {name} # letters, digits and underscores
  path: /data/{name} # the table's base path
  external: true # others write it; or source.type: a class of yours that gives rows

  # event_time_field: updated_at # where the table names none
  data_latency: 2h # from event to commit; or auto
  compact_every: 1h # by how much event time moves on before a compaction
  freshness_slo: 6h # a check fails when the freshness is older
  # writers: locked # or stopped: what you know of the table's other writers
"""


class TableScaffolder(Scaffolder):
    """Writes a `defs.yaml` with the fields that most tables need."""

    def scaffold(self, request: ScaffoldRequest) -> None:
        if request.scaffold_format != "yaml" or request.append:
            scaffold_component(request, {"name": "my_table", "path": "/data/my_table", "external": True})
            return
        folder = request.target_path.name
        name = folder if folder.isidentifier() else "my_table"
        block = _BLOCK.format(type=request.type_name, name=name)
        (request.target_path / "defs.yaml").write_text(block, "utf-8")
