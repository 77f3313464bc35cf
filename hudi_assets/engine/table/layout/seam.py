"""The table-version seam: everything that depends on a table's version is asked of this object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol

from hudi_assets.engine.model import Action, BaseFile, CarryOver, FileSlice, Instant, LogFile, State
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.timeline.archive.kind import Archive
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata

CompletionOf = Callable[[str], str | None]
"""A delta commit's instant → when it was completed; None while it is not, or where nothing is known of it."""

OriginalOf = Callable[[LogFile], str]
"""A log file → the path under which its bytes first were written."""

ITS_FILE: Final[OriginalOf] = attrgetter("original")
"""As far as the file alone tells."""


class Layout(Protocol):
    """How a version names files and instants, cuts slices, and writes what is on the timeline."""

    def __hash__(self) -> int: ...

    @property
    def version(self) -> int: ...

    @property
    def metadata_table_versions(self) -> tuple[int, ...]:
        """The versions of a metadata table that has this layout too: its files and its timeline are kept alike."""
        ...

    @property
    def table_properties(self) -> Mapping[str, str]:
        """What hoodie.properties of a new table state of its version (HoodieTableConfig of 0.15.0 and 1.2.0)."""
        ...

    @property
    def states_payload_class(self) -> bool:
        """False where the merge mode says it all, and a payload class is kept only as one of before."""
        ...

    @property
    def timeline_folder(self) -> str: ...

    @property
    def carries_logs_over(self) -> bool:
        """True where a log file names its slice: a remaining one enters the new slice under another name.

        Else slices are cut by completion times: a compaction is planned at a past instant, and what was
        requested after it is in the new slice by itself.
        """
        ...

    # -- timeline ---------------------------------------------------------------------------------

    def parse_instant(self, file_name: str) -> Instant | None:
        """A timeline file's name as an instant; None for any other file in the folder."""
        ...

    def instant_path(self, timestamp: str, action: Action, state: State, completion: str | None = None) -> str:
        """Where an instant's state is written. A compaction completes as a commit.

        `completion` is asked for of a completed one where `has_completion_times`.
        """
        ...

    @property
    def has_completion_times(self) -> bool: ...

    def encode_commit(self, metadata: CommitMetadata) -> bytes: ...

    def decode_commit(self, data: bytes, where: str) -> CommitMetadata: ...

    @property
    def archive(self) -> Archive:
        """The archived timeline, of the kind that this version has."""
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

    @property
    def log_marker(self) -> str:
        """The kind of a delta commit's markers on its log files (org.apache.hudi.common.model.IOType)."""
        ...

    def new_log(self, slice_: FileSlice, delta_instant: str) -> tuple[str, int]:
        """The instant in the name, and the least version, of a log file that a delta commit adds to a slice."""
        ...

    # -- slices -----------------------------------------------------------------------------------

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
