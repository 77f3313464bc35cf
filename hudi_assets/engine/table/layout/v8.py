"""Table versions 8 and 9: a timeline with completion times, and slices that are cut by them.

Names from InstantFileNameGeneratorV2, slices from HoodieFileGroup (Hudi 1.x). A log file carries its delta
commit's instant and belongs to the slice of the greatest base instant at or below that commit's completion.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_assets.engine.errors import UnsupportedTable
from hudi_assets.engine.format.hfile.trailer import Flavour
from hudi_assets.engine.model import LOG_ORDER, Action, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.storage import Capabilities
from hudi_assets.engine.table.layout.interface import (
    ITS_FILE,
    LAYOUT_VERSION,
    VERSION,
    CompletionOf,
    OriginalOf,
    Placement,
)
from hudi_assets.engine.table.layout.names import FileNames
from hudi_assets.engine.table.layout.placement import past_instant
from hudi_assets.engine.timeline.archive.kind import Archive
from hudi_assets.engine.timeline.archive.layers import ArchivedLayers
from hudi_assets.engine.timeline.commit_avro import decode_commit, encode_commit
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import Timeline, is_instant

_ACTIONS = {a.value: a for a in Action}
_COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


@dataclass(frozen=True, slots=True)
class LayoutV8(FileNames):
    """The layout of versions 8 and 9."""

    version: int = 8
    states_payload_class: bool = True
    states_merge_mode: bool = True
    timeline_folder: str = ".hoodie/timeline"
    log_marker: str = "CREATE"  # 1.2.0 refuses to roll back by any other (tried)
    names_completion_times: bool = True
    commits_under_lock: bool = True
    ranges_by_completion: bool = True
    cuts_by_completion: bool = True
    log_name_tells_beginning: bool = False
    makes_links: bool = False
    plan_tells_what_remains: bool = False
    residue_logs_stay: bool = False
    orphans_may_hold_rows: bool = False
    back_dates_plans: bool = True
    plans_beside_writes: bool = True
    needs_stated_writers: bool = False
    appends_to_planned_slice: bool = False
    loses_late_log_files: bool = False
    withdraws_plan_first: bool = False
    hudi_executes_plans: bool = True
    metadata_table_versions: tuple[int, ...] = (8, 9)
    metadata_flavour: Flavour = Flavour.NATIVE
    metadata_has_other_writers: bool = True
    metadata_ends_at_unfinished: bool = False

    @property
    def table_properties(self) -> Mapping[str, str]:
        return {
            VERSION: str(self.version),
            "hoodie.table.initial.version": str(self.version),
            LAYOUT_VERSION: "2",
            "hoodie.archivelog.folder": "history",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.table.format": "native",
            "hoodie.table.multiple.base.file.formats.enable": "false",
        }

    # -- timeline ---------------------------------------------------------------------------------

    def parse_instant(self, file_name: str) -> Instant | None:
        parts = file_name.split(".")
        timestamp, _, completion = parts[0].partition("_")
        if not is_instant(timestamp) or not 2 <= len(parts) <= 3:
            return None
        if completion:
            action = _ACTIONS.get(parts[1])
            if len(parts) != 2 or not is_instant(completion) or action is None:
                return None
            return Instant(timestamp, action, State.COMPLETED, file_name, completion)
        if parts[1:] == [State.INFLIGHT.value]:
            return Instant(timestamp, Action.COMMIT, State.INFLIGHT, file_name)
        action = _ACTIONS.get(parts[1])
        if action is not None and len(parts) == 2:
            # Hudi takes it for completed when it was last written; passed over, its rows would be missing.
            raise UnsupportedTable(
                f"The completed {action} {timestamp} has no completion time in its name.",
                where=f"{self.timeline_folder}/{file_name}",
                hint="Let Hudi upgrade the table: it names the instants anew.",
            )
        if action is None or len(parts) != 3 or parts[2] not in (State.REQUESTED, State.INFLIGHT):
            return None
        return Instant(timestamp, action, State(parts[2]), file_name)

    def instant_path(self, timestamp: str, action: Action, state: State, completion: str | None = None) -> str:
        if state is State.COMPLETED:
            if completion is None:
                raise ValueError(f"{timestamp}: a completed instant is named by its completion time too")
            return f"{self.timeline_folder}/{timestamp}_{completion}.{_COMPLETES_AS.get(action, action)}"
        if action is Action.COMMIT and state is State.INFLIGHT:
            return f"{self.timeline_folder}/{timestamp}.{state}"
        return f"{self.timeline_folder}/{timestamp}.{action}.{state}"

    def encode_commit(self, metadata: CommitMetadata) -> bytes:
        return encode_commit(metadata)

    def decode_commit(self, data: bytes, where: str) -> CommitMetadata:
        return decode_commit(data, where)

    def archive(self, properties: Mapping[str, str]) -> Archive:
        del properties  # elsewhere it is refused
        return ArchivedLayers()

    # -- files ------------------------------------------------------------------------------------

    def delta_commit_of(self, log: LogFile) -> str | None:
        return log.base_instant

    def late_requests_harm(self, store: Capabilities) -> bool:
        del store
        return False

    def occurs_once(self, path: str) -> bool:
        """Each name has the instant of its commit."""
        del path
        return True

    def new_log(self, slice_: FileSlice, delta_instant: str) -> tuple[str, int]:
        """Log files are of their own delta commit: the first version is free."""
        del slice_
        return delta_instant, 1

    # -- slices -----------------------------------------------------------------------------------

    def cut(
        self, bases: Sequence[str], logs: Sequence[LogFile], completion_of: CompletionOf
    ) -> Mapping[str, list[LogFile]]:
        """By completion time. A log before every base opens a slice of its own instant.

        One whose commit is unfinished or unknown goes to the newest slice: its blocks count for nothing yet.
        """
        starts = sorted(bases)
        slices: dict[str, list[LogFile]] = {}
        unfinished = []
        for log in sorted(logs, key=LOG_ORDER):
            completion = completion_of(log.base_instant)
            if completion is None:
                unfinished.append(log)
                continue
            place = bisect_right(starts, completion)
            if place == 0:
                starts.insert(0, log.base_instant)
                place = 1
            slices.setdefault(starts[place - 1], []).append(log)
        for log in unfinished:
            slices.setdefault(starts[-1] if starts else log.base_instant, []).append(log)
        return slices

    def carry_over(
        self, slice_: FileSlice, remaining: tuple[LogFile, ...], instant: str, original_of: OriginalOf = ITS_FILE
    ) -> tuple[CarryOver, ...]:
        """None: what was requested after the plan's instant is in the new slice by itself."""
        del slice_, remaining, instant, original_of
        return ()

    # -- plans ------------------------------------------------------------------------------------

    def placement(self, new_instant: str, timeline: Timeline, completion_of: CompletionOf) -> Placement:
        del new_instant
        return past_instant(timeline, completion_of)

    # -- the metadata table -----------------------------------------------------------------------

    def metadata_at_once(self, instant: str) -> str:
        return instant

    def metadata_compaction(self, last_delta: str, new_instant: Callable[[], str]) -> str:
        del last_delta
        return new_instant()

    def metadata_compacts_beside(self, deltas: Collection[str], pending: Collection[str]) -> bool:
        """Cut by completion times: only what is folded itself must not be taken back any more."""
        return not any(instant in pending for instant in deltas)
