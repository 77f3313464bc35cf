"""Configurations by version and index, with and without Hudi's metadata table."""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.zoo.configuration import INDEX, Configuration, Refused

NOT_BY_HUDI = Refused("does not execute this project's plans on table version 6")
_RECORD = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
_STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
_MOVES = {
    "hoodie.bloom.index.update.partition.path": "true",
    "hoodie.simple.index.update.partition.path": "true",
    "hoodie.record.index.update.partition.path": "true",
}
_CONSISTENT = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "4",
    # It writes by bulk insert alone what no clustering has yet to move.
    "hoodie.clustering.inline": "false",
}


def _indexed(
    index: str, release: str = "1.2.0", version: int = 9, more: Mapping[str, str] | None = None
) -> Configuration:
    """A table of an index that is looked up, with Hudi's metadata table."""
    by_hudi = NOT_BY_HUDI if version == 6 else None
    return Configuration(
        f"{index} index", release, version, options={INDEX: index, **(more or {})}, metadata=True, by_hudi=by_hudi
    )


LISTED = (
    Configuration("plain", "0.15.0", 6, by_hudi=NOT_BY_HUDI),
    Configuration("plain", version=6, by_hudi=NOT_BY_HUDI),
    Configuration("plain", version=8),
    Configuration("plain", quick=True),
    Configuration("plain, metadata table", "0.15.0", 6, metadata=True, by_hudi=NOT_BY_HUDI),
    Configuration("plain, metadata table", version=6, metadata=True, by_hudi=NOT_BY_HUDI),
    Configuration("plain, metadata table", version=8, metadata=True),
    Configuration("plain, metadata table", metadata=True),
    Configuration("column statistics", "0.15.0", 6, options=_STATISTICS, metadata=True, by_hudi=NOT_BY_HUDI),
    _indexed("BLOOM"),
    _indexed("BLOOM", "0.15.0", 6),
    _indexed("BLOOM", version=8),
    Configuration(
        "BLOOM index by the metadata table",
        options={INDEX: "BLOOM", "hoodie.bloom.index.use.metadata": "true", **_STATISTICS},
        metadata=True,
    ),
    _indexed("SIMPLE"),
    Configuration("SIMPLE index", "0.15.0", 6, options={INDEX: "SIMPLE"}, by_hudi=NOT_BY_HUDI),
    Configuration("GLOBAL_BLOOM index, keys move", options={INDEX: "GLOBAL_BLOOM", **_MOVES}, moves=True),
    Configuration(
        "GLOBAL_BLOOM index, keys move",
        "0.15.0",
        6,
        options={INDEX: "GLOBAL_BLOOM", **_MOVES},
        moves=True,
        by_hudi=NOT_BY_HUDI,
    ),
    Configuration("GLOBAL_SIMPLE index, keys move", version=8, options={INDEX: "GLOBAL_SIMPLE", **_MOVES}, moves=True),
    _indexed("RECORD_INDEX", "0.15.0", 6, _RECORD),
    _indexed("GLOBAL_RECORD_LEVEL_INDEX", more=_RECORD),
    Configuration(
        "GLOBAL_RECORD_LEVEL_INDEX, keys move",
        options={INDEX: "GLOBAL_RECORD_LEVEL_INDEX", **_RECORD, **_MOVES},
        metadata=True,
        moves=True,
    ),
    _indexed("RECORD_LEVEL_INDEX", more={"hoodie.metadata.record.level.index.enable": "true"}),
    Configuration("BUCKET index, consistent hashing", options={**_CONSISTENT}),
)
