"""What the engine asks of a table's version: everything that depends on it is asked of this object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol

from hudi_assets.engine.format.hfile.trailer import Flavour
from hudi_assets.engine.model import Action, BaseFile, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.storage import Capabilities, FileInfo
from hudi_assets.engine.timeline.archive.kind import Archive
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata
from hudi_assets.engine.timeline.instants import Timeline

CompletionOf = Callable[[str], str | None]
"""A delta commit's instant → when it was completed; None while it is not, or where nothing is known of it."""

Span = tuple[str, str]
"""Two instants: a plan has to lie above the one and below the other."""

OriginalOf = Callable[[LogFile], str]
"""A log file → the path under which its bytes first were written."""

VERSION: Final = "hoodie.table.version"
LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"

ITS_FILE: Final[OriginalOf] = attrgetter("original")
"""As far as the file alone tells."""


class Placement(Protocol):
    """Where a plan may stand on the timeline."""

    def considered(self, slice_: FileSlice) -> FileSlice:
        """The slice with the log files that a selection is made from."""
        ...

    def settle(self, slice_: FileSlice, chosen: Sequence[LogFile]) -> tuple[LogFile, ...]:
        """What of a slice a plan takes so that all of `chosen` is in it; less where a write in progress forbids."""
        ...

    def span(self, slice_: FileSlice, settled: tuple[LogFile, ...]) -> Span:
        """Where on the timeline a plan may lie that takes this selection."""
        ...

    def place(self, spans: Sequence[Span]) -> tuple[str, frozenset[int]]:
        """The plan's instant, and which of the selections with these spans (by position, at least one) it can have."""
        ...


class Layout(Protocol):
    """How a version names files and instants, cuts slices, and writes what is on the timeline."""

    def __hash__(self) -> int: ...

    @property
    def version(self) -> int: ...

    @property
    def table_properties(self) -> Mapping[str, str]:
        """What hoodie.properties of a new table state of its version (HoodieTableConfig of 0.15.0 and 1.2.0)."""
        ...

    @property
    def states_merge_mode(self) -> bool:
        """True where hoodie.record.merge.mode decides how records merge; else the payload class does."""
        ...

    @property
    def states_payload_class(self) -> bool:
        """False where the merge mode says it all, and a payload class is kept only as one of before."""
        ...

    @property
    def timeline_folder(self) -> str: ...

    # -- timeline ---------------------------------------------------------------------------------

    def parse_instant(self, file_name: str) -> Instant | None:
        """A timeline file's name as an instant; None for any other file in the folder."""
        ...

    def instant_path(self, timestamp: str, action: Action, state: State, completion: str | None = None) -> str:
        """Where an instant's state is written. A compaction completes as a commit.

        `completion` is asked for of a completed one where `names_completion_times`.
        """
        ...

    @property
    def names_completion_times(self) -> bool:
        """True where the name of a completed instant states when it was completed (InstantFileNameGeneratorV2).

        Then no exclusive create tells who completed it first: two processes would give it two names.
        """
        ...

    @property
    def commits_under_lock(self) -> bool:
        """True where each commit is made under the table's write lock: its completion time is later than all others.

        Else the timeline's exclusive create decides, and a commit takes the lock only for another reason.
        """
        ...

    @property
    def ranges_by_completion(self) -> bool:
        """True where an incremental query's range is one of completion times (Hudi 1.x); else one of instants."""
        ...

    def encode_commit(self, metadata: CommitMetadata) -> bytes: ...

    def decode_commit(self, data: bytes, where: str) -> CommitMetadata: ...

    def archive(self, properties: Mapping[str, str]) -> Archive:
        """The archived timeline, of the kind that this version has, where the table's settings put it."""
        ...

    # -- files ------------------------------------------------------------------------------------

    def parse_file(self, file: FileInfo, partition: str) -> LogFile | BaseFile | None:
        """What a file is by its name; None for neither a log nor a base file."""
        ...

    def parse_files(self, files: Iterable[FileInfo], partition: str) -> list[LogFile | BaseFile]:
        """The log and base files among a partition's files, in their order; others are left out."""
        ...

    def parse_base_file(self, file: FileInfo, partition: str) -> BaseFile | None: ...

    def parse_log_file(self, file: FileInfo, partition: str) -> LogFile | None: ...

    def base_file_name(self, file_id: str, token: str, instant: str) -> str: ...

    def log_file_name(self, file_id: str, instant: str, version: int, token: str) -> str: ...

    def late_requests_harm(self, store: Capabilities) -> bool:
        """True where a request that a store does after its sender has lost the lock may lose rows (decision 18).

        Nothing is carried over there: plans take whole slices. And no plan comes or goes by a single request, because
        writers append to the slice that it opens: without the plan their rows would be lost.
        """
        ...

    def occurs_once(self, path: str) -> bool:
        """False for a data file whose name another write may be given, once this one is gone."""
        ...

    @property
    def log_marker(self) -> str:
        """The kind of a delta commit's markers on its log files (org.apache.hudi.common.model.IOType)."""
        ...

    def delta_commit_of(self, log: LogFile) -> str | None:
        """The delta commit that a log file's name tells; None where only the headers of its blocks do."""
        ...

    def new_log(self, slice_: FileSlice, delta_instant: str) -> tuple[str, int]:
        """The instant in the name, and the least version, of a log file that a delta commit adds to a slice."""
        ...

    # -- slices -----------------------------------------------------------------------------------

    @property
    def cuts_by_completion(self) -> bool:
        """True where a log file belongs to a slice by when its commit was completed (HoodieFileGroup of 1.x).

        Then one that was requested before a slice's base instant may be in that slice: queries as of an instant
        between the two, and a savepoint there, look for it in a later slice. Else its name says its slice for good.
        """
        ...

    @property
    def log_name_tells_beginning(self) -> bool:
        """True where a log file that is named by its slice, with rows of that instant, shows that its group began so.

        Else each log file is named by its own commit, whether the group was there before or not.
        """
        ...

    def cut(
        self, bases: Sequence[str], logs: Sequence[LogFile], completion_of: CompletionOf
    ) -> Mapping[str, list[LogFile]]:
        """A file group's log files by the base instant of their slice.

        `bases`: instants of its committed base files and of the compaction that is pending for it, ascending.
        """
        ...

    def carry_over(
        self, slice_: FileSlice, remaining: tuple[LogFile, ...], instant: str, original_of: OriginalOf = ITS_FILE
    ) -> tuple[CarryOver, ...]:
        """Names under which the remaining logs show in the slice at `instant`; none where they need no name.

        `original_of`: where a log file's bytes first were written.
        """
        ...

    @property
    def makes_links(self) -> bool:
        """True where `carry_over` names files: log files then show a second time, which has three consequences.

        What a link shows was first written elsewhere; a link may be a symbolic one, whose target Hudi's cleaner
        deletes; and a guard stands on the timeline while links are made and their plan is not published.
        """
        ...

    @property
    def plan_tells_what_remains(self) -> bool:
        """True where the new slice has exactly the log files that its plan carried over.

        Else what was written meanwhile is in the new slice as well, and is counted there.
        """
        ...

    @property
    def residue_logs_stay(self) -> bool:
        """True where a log file that a compaction writes itself stays in the slice that it was made for.

        Else a later compaction at a past instant would take it along, and as of the instants between the two its
        records were lost (tried with 1.2.0).
        """
        ...

    @property
    def orphans_may_hold_rows(self) -> bool:
        """True where writers may have appended to a file that is on no timeline (a link of a plan that is gone).

        Then only what shows again what another file holds may go. Else an orphan was never committed, and goes.
        """
        ...

    # -- plans ------------------------------------------------------------------------------------

    def placement(self, new_instant: str, timeline: Timeline, completion_of: CompletionOf) -> Placement:
        """Where a compaction plan stands: at `new_instant`, or at a past one that the timeline allows."""
        ...

    @property
    def back_dates_plans(self) -> bool:
        """True where `placement` is a past instant.

        Then one plan may not reach its threshold; the archiver may pass its instant while it is made; a write
        that was requested below it must not turn up; and Hudi's cleaner judges by it how old the replaced files are.
        """
        ...

    @property
    def plans_beside_writes(self) -> bool:
        """True where a plan may be made while a write is unfinished.

        On version 6 one that has not seen the plan would write into the slice that the plan closes.
        """
        ...

    @property
    def needs_stated_writers(self) -> bool:
        """True where it depends on how other engines write whether a plan may be made: they have to be stated.

        On version 6 a writer without the table's lock may append to the old slice while the plan is published.
        """
        ...

    @property
    def appends_to_planned_slice(self) -> bool:
        """True where a delta commit after a plan writes into the slice that the plan opens.

        Then the plan, or its compaction, cannot be taken back without that commit's rows. Else log files
        are of their own commits, and are in the old slice again.
        """
        ...

    @property
    def loses_late_log_files(self) -> bool:
        """True where a log file that landed in the old slice after a plan was made is in no slice once it is executed.

        A Java writer of 0.15.0 that read the timeline before the plan was published does so (tried).
        """
        ...

    @property
    def withdraws_plan_first(self) -> bool:
        """True where a withdrawn plan goes before the log files of its slice: without them, it would lose rows.

        Else what is left of an attempt goes first: the plan's instant is a past one, so its base files would
        count as committed before long.
        """
        ...

    @property
    def hudi_executes_plans(self) -> bool:
        """True where Apache Hudi may execute our plans.

        Its commit lists no carried-over log file: incremental queries over it miss their rows (0.15.0, 1.2.0, tried).
        """
        ...

    # -- the metadata table -----------------------------------------------------------------------

    @property
    def metadata_table_versions(self) -> tuple[int, ...]:
        """The versions of a metadata table that has this layout too: its files and its timeline are kept alike."""
        ...

    @property
    def metadata_flavour(self) -> Flavour:
        """Whose HFiles it has: HBase's writer's up to Hudi 0.15, Hudi's own from 1.x on."""
        ...

    @property
    def metadata_has_other_writers(self) -> bool:
        """True where another engine may be at work on it beside us, and compacts its own delta commits.

        On version 6 the common lock keeps it to one: then we compact what others wrote as well.
        """
        ...

    @property
    def metadata_ends_at_unfinished(self) -> bool:
        """True where its readers stop at a log block whose instant is later than the last completed one.

        Then nothing is written behind what another engine left unfinished: it would not count (0.15.0).
        """
        ...

    def metadata_at_once(self, instant: str) -> str:
        """The instant of a delta commit that counts as soon as it is completed there, made of a data table's.

        Version 6 asks for the instant in the data table too, unless one of HoodieTableMetadataUtil.OperationSuffix
        comes behind it.
        """
        ...

    def metadata_compaction(self, last_delta: str, new_instant: Callable[[], str]) -> str:
        """The instant of its next compaction: `new_instant`'s, or one named after its last delta commit."""
        ...

    def metadata_compacts_beside(self, deltas: Collection[str], pending: Collection[str]) -> bool:
        """True where these delta commits (one at least) may be folded while these data-table instants are pending."""
        ...
