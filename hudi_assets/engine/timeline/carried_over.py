"""`symlinkOperations` in a compaction commit's extra metadata: which log files are carried over, and from where.

As the RFC has it, and as in the plan: names without their folder; JSON, by partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from hudi_assets.engine.errors import CorruptTable
from hudi_assets.engine.format.paths import inside_folder, inside_table
from hudi_assets.engine.model import CarryOver

SYMLINK_OPERATIONS: Final = "symlinkOperations"


def encode_carried_over(carried: Iterable[CarryOver]) -> str:
    """The value of `symlinkOperations`."""
    partitions: dict[str, list[dict[str, str]]] = {}
    for one in carried:
        partition, _, link = one.link.rpartition("/")
        names = {"symlink": link, "target": one.target.rpartition("/")[2]}
        partitions.setdefault(partition, []).append(names)
    return json.dumps(partitions, separators=(",", ":"))


def decode_carried_over(text: str, where: str) -> Mapping[str, str]:
    """Link → target, table-relative. Raises `CorruptTable` for text that no commit of ours has."""
    found = {}
    try:
        for partition, listed in json.loads(text).items():
            folder = f"{inside_table(partition, 'commit', where)}/" if partition else ""
            for one in listed:
                link, target = (inside_folder(one[key], "commit", where) for key in ("symlink", "target"))
                found[folder + link] = folder + target
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTable(f"The commit's {SYMLINK_OPERATIONS} cannot be parsed: {error}.", where=where) from error
    return found
