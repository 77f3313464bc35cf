"""Table version 6: how instants are named, slices are cut and logs are carried over.

Names from HoodieInstant (0.15). A log file's name carries the base instant of its slice, so a remaining log
enters the new slice under a new name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_assets.engine.model import Action, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.table.layout.names import FileNames
from hudi_assets.engine.table.layout.seam import ITS_FILE, CompletionOf, OriginalOf
from hudi_assets.engine.table.settings.versions import LAYOUT_VERSION, VERSION
from hudi_assets.engine.timeline.archive.kind import Archive
from hudi_assets.engine.timeline.archive.v6 import ArchivedLogs
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import is_instant

_SUFFIXES = {a.value: a for a in Action if a is not Action.CLUSTERING}


@dataclass(frozen=True, slots=True)
class LayoutV6(FileNames):
    """The table-version seam, as version 6 answers it."""

    version: int = 6
    metadata_table_versions: tuple[int, ...] = (6,)
    timeline_folder: str = ".hoodie"
    carries_logs_over: bool = True
    has_completion_times: bool = False
    log_marker: str = "APPEND"
    states_payload_class: bool = True

    @property
    def table_properties(self) -> Mapping[str, str]:
        return {VERSION: "6", LAYOUT_VERSION: "1", "hoodie.archivelog.folder": "archived"}

    # -- timeline ---------------------------------------------------------------------------------

    def parse_instant(self, file_name: str) -> Instant | None:
        parts = file_name.split(".")
        if not is_instant(parts[0]) or not 2 <= len(parts) <= 3:
            return None
        timestamp, *rest = parts
        if rest == ["inflight"]:
            return Instant(timestamp, Action.COMMIT, State.INFLIGHT, file_name)
        action = _SUFFIXES.get(rest[0])
        if action is None:
            return None
        if len(rest) == 1:
            return Instant(timestamp, action, State.COMPLETED, file_name)
        if rest[1] not in (State.REQUESTED, State.INFLIGHT):
            return None
        return Instant(timestamp, action, State(rest[1]), file_name)

    def instant_path(self, timestamp: str, action: Action, state: State, completion: str | None = None) -> str:
        del completion
        if state is State.COMPLETED:
            name = Action.COMMIT if action is Action.COMPACTION else action
            return f"{self.timeline_folder}/{timestamp}.{name}"
        return f"{self.timeline_folder}/{timestamp}.{action}.{state}"

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        return metadata.to_json()

    def decode_commit(self, data: bytes, where: str) -> CommitMetadata:
        return CommitMetadata.from_json(data, where)

    @property
    def archive(self) -> Archive:
        return ArchivedLogs()

    # -- files ------------------------------------------------------------------------------------

    def new_log(self, slice_: FileSlice, delta_instant: str) -> tuple[str, int]:
        del delta_instant
        return slice_.base_instant, slice_.next_log_version

    # -- slices -----------------------------------------------------------------------------------

    def cut(
        self, bases: Sequence[str], logs: Sequence[LogFile], completion_of: CompletionOf
    ) -> Mapping[str, list[LogFile]]:
        """By the base instant in their names."""
        del bases, completion_of
        slices: dict[str, list[LogFile]] = {}
        for log in logs:
            slices.setdefault(log.base_instant, []).append(log)
        return slices

    def carry_over(
        self, slice_: FileSlice, remaining: tuple[LogFile, ...], instant: str, original_of: OriginalOf = ITS_FILE
    ) -> tuple[CarryOver, ...]:
        """Names under which the remaining logs show in the slice at `instant`, in log order.

        A chain of links stays flat: what is itself carried over states its first original. Versions go on
        from the old slice's: until the plan is published Hudi 1.2.0 takes these links for the newest logs of that
        slice, and appends there with the version that follows.
        """
        # A name but for its version and its write token, which come last.
        head = self.log_file_name(slice_.file_id, instant, 0, "").removesuffix("0_")
        if slice_.partition:
            head = f"{slice_.partition}/{head}"
        return tuple(
            [
                CarryOver(
                    f"{head}{version}_{log.write_token}",
                    (original := original_of(log)),
                    log.path if log.path != original else None,
                )
                for version, log in enumerate(remaining, start=slice_.next_log_version)
            ]
        )
