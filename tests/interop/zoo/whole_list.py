"""All configurations."""

from __future__ import annotations

from tests.interop.zoo import of_files, of_indexes, of_layouts, of_merging

ZOO = {
    "Versions and indexes": of_indexes.LISTED,
    "Merging, deletes and operations": of_merging.LISTED,
    "Keys, partitions and the timeline": of_layouts.LISTED,
    "Files, columns and services": of_files.LISTED,
}
