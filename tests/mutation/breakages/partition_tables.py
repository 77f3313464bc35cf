"""The freshness of each partition as a table in a catalog."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

PARTITION_TABLE = ("tests/catalog/test_partition_table.py",)
ROWS = ("tests/unit/test_partition_rows.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "the rows that a reader began to read are deleted under it",
        "hudi_assets/catalog/partition_table.py",
        "        begun = following.rpartition(",
        "        begun = old.rpartition(",
        PARTITION_TABLE,
    ),
    Breakage(
        "a table with the freshness of the partitions stays where it is not wanted any more",
        "hudi_assets/catalog/publishing.py",
        "            metastore.drop(names.database, name)\n",
        "            pass\n",
        PARTITION_TABLE,
    ),
    Breakage(
        "nobody notices that the freshness of the partitions is of another publication",
        "hudi_assets/catalog/places.py",
        "            beside.append(partitions)\n",
        "            pass\n",
        PARTITION_TABLE,
    ),
    Breakage(
        "a freshness that no timestamp reaches stops the publication",
        "hudi_assets/catalog/partition_table.py",
        "    return ms * 1000 if ms is not None and _FIRST_MS <= ms <= _LAST_MS else None\n",
        "    return ms * 1000 if ms is not None else None\n",
        ROWS,
    ),
)
