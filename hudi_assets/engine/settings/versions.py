"""What hoodie.properties states by table version: the layout of the timeline, and the kinds of merge settings. Pure.

From org.apache.hudi.common.table.HoodieTableConfig and HoodieTableVersion (0.15.0 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERSION: Final = "hoodie.table.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"

_LAYOUT_1: Final = {LAYOUT_VERSION: "1", "hoodie.archivelog.folder": "archived"}
_LAYOUT_2: Final = {
    LAYOUT_VERSION: "2",
    "hoodie.archivelog.folder": "history",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.table.format": "native",
    "hoodie.table.multiple.base.file.formats.enable": "false",
}


def version_properties(version: int) -> dict[str, str]:
    """What a new table of a version states of its layout."""
    if version < 8:
        return {VERSION: str(version), **_LAYOUT_1}
    return {VERSION: str(version), "hoodie.table.initial.version": str(version), **_LAYOUT_2}


def states_merge_mode(properties: Mapping[str, str]) -> bool:
    """True where hoodie.record.merge.mode decides how records merge; else the payload class does."""
    return properties.get(LAYOUT_VERSION) == "2"


def needs_payload_class(version: int) -> bool:
    """Version 9 states none: the merge mode says it all (a payload class of before is kept as a legacy one)."""
    return version < 9
