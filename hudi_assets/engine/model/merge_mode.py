"""The merge mode of a table: which of a key's records wins."""

from __future__ import annotations

from enum import StrEnum


class MergeMode(StrEnum):
    """Which of a key's records wins; what a table has follows from its payload class (`docs/explanation/merge.md`).

    The first two are org.apache.hudi.common.config.RecordMergeMode's; the others are what Hudi 0.x does with
    OverwriteWithLatestAvroPayload and an ordering field, and with DefaultHoodieRecordPayload.
    """

    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    OVERWRITE_WITH_LATEST = "OVERWRITE_WITH_LATEST"
    EVENT_TIME_ORDERING_0X = "EVENT_TIME_ORDERING_0X"

    @property
    def compares_base_rows(self) -> bool:
        """True where a base row with a greater ordering value stays."""
        return self in (MergeMode.EVENT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING_0X)

    @property
    def merges_partial_updates(self) -> bool:
        """True where log records may have some of a row's columns: Hudi 0.x writes and reads none."""
        return self in (MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING)
