"""Table version 6: how instants are named, slices are cut and logs are carried over.

Names from HoodieInstant (0.15). A log file's name carries the base instant of its slice, so a remaining log
enters the new slice under a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_assets.engine.format.hfile.trailer import Flavour
from hudi_assets.engine.model import Action, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.storage import Capabilities
from hudi_assets.engine.table.layout.interface import (
    ITS_FILE,
    LAYOUT_VERSION,
    VERSION,
    CompletionOf,
    OriginalOf,
    Placement,
)
from hudi_assets.engine.table.layout.names import FileNames, is_token_of_once
from hudi_assets.engine.table.layout.placement import NewInstant
from hudi_assets.engine.timeline.archive.kind import Archive
from hudi_assets.engine.timeline.archive.v6 import ArchivedLogs
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import Timeline, is_instant

_SUFFIXES = {a.value: a for a in Action if a is not Action.CLUSTERING}
# HoodieTableMetadataUtil.OperationSuffix: of a compaction, and of a delta commit that no instant of the data table has.
_COMPACTED: Final = "001"
_AT_ONCE: Final = "004"


@dataclass(frozen=True, slots=True)
class LayoutV6(FileNames):
    """The layout of version 6."""

    version: int = 6
    states_merge_mode: bool = False
    timeline_folder: str = ".hoodie"
    log_marker: str = "APPEND"
    states_payload_class: bool = True
    names_completion_times: bool = False
    commits_under_lock: bool = False
    ranges_by_completion: bool = False
    cuts_by_completion: bool = False
    log_name_tells_beginning: bool = True
    makes_links: bool = True
    plan_tells_what_remains: bool = True
    residue_logs_stay: bool = True
    orphans_may_hold_rows: bool = True
    back_dates_plans: bool = False
    plans_beside_writes: bool = False
    needs_stated_writers: bool = True
    appends_to_planned_slice: bool = True
    loses_late_log_files: bool = True
    withdraws_plan_first: bool = True
    hudi_executes_plans: bool = False
    metadata_table_versions: tuple[int, ...] = (6,)
    metadata_flavour: Flavour = Flavour.HBASE
    metadata_has_other_writers: bool = False
    metadata_ends_at_unfinished: bool = True

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

    def archive(self, properties: Mapping[str, str]) -> Archive:
        return ArchivedLogs.of(properties)

    # -- files ------------------------------------------------------------------------------------

    def delta_commit_of(self, log: LogFile) -> str | None:
        """None: the instant in its name is its slice's, and several delta commits may be in it."""
        del log
        return None

    def late_requests_harm(self, store: Capabilities) -> bool:
        return store.late_requests

    def occurs_once(self, path: str) -> bool:
        """The next log file of a slice has the version of one that is gone: its write token tells them apart."""
        name = path.rpartition("/")[2]
        return ".log." not in name or is_token_of_once(name.rpartition("_")[2])

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

    # -- plans ------------------------------------------------------------------------------------

    def placement(self, new_instant: str, timeline: Timeline, completion_of: CompletionOf) -> Placement:
        del timeline, completion_of
        return NewInstant(new_instant)

    # -- the metadata table -----------------------------------------------------------------------

    def metadata_at_once(self, instant: str) -> str:
        return f"{instant}{_AT_ONCE}"

    def metadata_compaction(self, last_delta: str, new_instant: Callable[[], str]) -> str:
        del new_instant
        return f"{last_delta}{_COMPACTED}"

    def metadata_compacts_beside(self, deltas: Collection[str], pending: Collection[str]) -> bool:
        """Named after the last delta commit, a compaction would stand before what is pending and completes later."""
        latest = max(deltas)
        return all(instant > latest for instant in pending)
