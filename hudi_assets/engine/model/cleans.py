"""What a cleaner deletes, and by which policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hudi_assets.engine.model import Instant


class CleaningPolicy(StrEnum):
    """HoodieCleaningPolicy."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """The files to delete, by partition. `earliest_retained` is None with KEEP_LATEST_FILE_VERSIONS.

    `links`: symbolic links that stay and lead to one of the files.
    """

    policy: CleaningPolicy
    earliest_retained: Instant | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    links: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for partition in sorted(self.files) for path in self.files[partition])
