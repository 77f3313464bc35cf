"""Looking a table through: what is not as the timeline says, where, and what to do. Reads, never writes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from hudi_assets.engine.errors import HudiAssetsError
from hudi_assets.engine.model import Action, Instant, Plan, State
from hudi_assets.engine.storage import FileInfo
from hudi_assets.engine.table.files.cleaned import read_cleans, read_pending_cleans, read_savepoints
from hudi_assets.engine.table.files.hidden import Hidden, about_to_be_hidden, hidden_files
from hudi_assets.engine.table.files.metadata_check import differences
from hudi_assets.engine.table.files.missing import RESTORE_HINT, broken_words, missing_files
from hudi_assets.engine.table.files.orphans import Orphans, same_bytes
from hudi_assets.engine.table.files.strays import Strays
from hudi_assets.engine.table.layout.names import holds_changes
from hudi_assets.engine.table.metadata.own_timeline import ROOT
from hudi_assets.engine.table.settings.config import WRITERS
from hudi_assets.engine.table.settings.written_again import WRITTEN_AGAIN
from hudi_assets.engine.table.slices.listing import PARTITION_FILE
from hudi_assets.engine.table.slices.parts import instant_of
from hudi_assets.engine.table.state import TableState
from hudi_assets.engine.timeline.attempts import FOLDER as STAGED
from hudi_assets.engine.timeline.attempts import staged_instants
from hudi_assets.engine.timeline.commit_metadata import GUARDED
from hudi_assets.engine.timeline.instants import WRITES, is_instant
from hudi_assets.engine.timeline.markers import TEMP
from hudi_assets.engine.timeline.rollback_metadata import decode_restore_plan, decode_rollback_plan
from hudi_assets.engine.transaction import flink_job
from hudi_assets.engine.transaction.heartbeat import Heartbeats
from hudi_assets.engine.transaction.rollback_plan import is_ours

_RECOVER = "Run recover."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be. `path` is table-relative; `hint` says what to do."""

    kind: str
    path: str
    what: str
    hint: str


@dataclass(frozen=True)
class Validator:
    """Looks at one reading of a table. `now_ms` is the true clock, for heartbeats."""

    state: TableState
    now_ms: Callable[[], int]

    def findings(self) -> tuple[Finding, ...]:
        """Everything found; what rests on an unreadable timeline file is left out."""
        unreadable = tuple(self._timeline_files())
        if unreadable:
            return (*unreadable, *self._zone(), *self._unfinished(), *self._markers(), *self._staged())
        return (
            *self._zone(),
            *self._unfinished(),
            *self._plans(),
            *self._hidden(),
            *self._orphans(),
            *self._passed(),
            *self._strays(),
            *self._missing(),
            *self._metadata_table(),
            *self._unknown_files(),
            *self._markers(),
            *self._staged(),
        )

    @cached_property
    def _infos(self) -> dict[str, FileInfo]:
        return {file.path: file for files in self.state.listing.values() for file in files}

    def _path(self, instant: Instant) -> str:
        return f"{self.state.layout.timeline_folder}/{instant.file_name}"

    def _metadata_table(self) -> Iterator[Finding]:
        hint = "Delete the metadata table with Hudi (hoodie.metadata.enable=false) and let it make a new one."
        try:
            for path, what in differences(self.state):
                yield Finding("metadata_table", path, what, hint)
        except HudiAssetsError as error:
            yield Finding("metadata_table", ROOT, error.what, error.hint or hint)

    # -- timeline ---------------------------------------------------------------------------------

    def _zone(self) -> Iterator[Finding]:
        state, folder = self.state, self.state.layout.timeline_folder
        if state.zone_problem is not None:
            yield Finding("time_zone", folder, state.zone_problem.what, state.zone_problem.hint or "")
        for ahead in state.ahead_of_time:
            way_out = ahead.way_out(appends_to_planned_slice=state.layout.appends_to_planned_slice)
            yield Finding("instant_ahead", self._path(ahead.instant), str(ahead), way_out)

    def _timeline_files(self) -> Iterator[Finding]:
        state = self.state
        for name in state.timeline_sizes:
            if is_instant(name.split(".")[0].split("_")[0]) and state.layout.parse_instant(name) is None:
                yield Finding(
                    "unknown_file",
                    f"{state.layout.timeline_folder}/{name}",
                    "No action of Hudi has this name.",
                    "Move it out of the timeline.",
                )
        yield from self._two_completions()
        for instant in state.timeline.instants:
            yield from self._unreadable(self._path(instant), functools.partial(self._read, instant))
        readers: tuple[Callable[[TableState], object], ...] = (read_cleans, read_pending_cleans, read_savepoints)
        for read in readers:
            yield from self._unreadable(state.layout.timeline_folder, functools.partial(read, state))

    def _two_completions(self) -> Iterator[Finding]:
        """Where names have completion times, two processes without a lock may have completed one instant."""
        shown = {i.file_name for i in self.state.timeline.instants}
        known = {(i.timestamp, i.action) for i in self.state.timeline.instants if i.is_completed}
        for name in self.state.timeline_sizes:
            other = self.state.layout.parse_instant(name)
            if other and other.is_completed and name not in shown and (other.timestamp, other.action) in known:
                what = f"{other.action} {other.timestamp} is completed twice."
                path = f"{self.state.layout.timeline_folder}/{name}"
                yield Finding(
                    "two_completions", path, what, "Keep the file whose write stats name files that are there."
                )

    def _read(self, instant: Instant) -> None:
        """Read what an instant's files say; raises where they cannot be."""
        state = self.state
        if instant.action in (Action.COMPACTION, Action.COMMIT):
            state.plan(instant.timestamp)
        if instant.action in WRITES and instant.is_completed:
            state.commit(instant)
        for action, decode in ((Action.ROLLBACK, decode_rollback_plan), (Action.RESTORE, decode_restore_plan)):
            if instant.action is action and not instant.is_completed:
                path = state.layout.instant_path(instant.timestamp, action, State.REQUESTED)
                decode(state.storage.read(path), path)

    @staticmethod
    def _unreadable(path: str, read: Callable[[], object]) -> Iterator[Finding]:
        try:
            read()
        except FileNotFoundError as error:
            yield Finding("unreadable", path, f"A file of this instant is missing: {error.filename}.", RESTORE_HINT)
        except HudiAssetsError as error:
            yield Finding("unreadable", path, error.what, error.hint or RESTORE_HINT)

    def _unfinished(self) -> Iterator[Finding]:
        timeline = self.state.timeline
        for instant in timeline.pending(Action.ROLLBACK, Action.RESTORE, Action.CLEAN):
            what = f"This {instant.action} is unfinished."
            yield Finding("unfinished", self._path(instant), what, f"{_RECOVER} Another engine's: let it finish.")
        beats = Heartbeats.of(self.state.storage, self.state.config, self.now_ms)
        for write in timeline.inflight_writes:
            if not beats.is_alive(write.timestamp) and not flink_job.goes_on_with(self.state, write):
                ours = is_ours(self.state, write)
                hint = _RECOVER if ours else f"If its writer is dead, roll {write.timestamp} back."
                yield Finding("unfinished", self._path(write), f"{write.action} {write.timestamp} is unfinished.", hint)

    def _staged(self) -> Iterator[Finding]:
        unfinished = {i.timestamp for i in self.state.timeline.instants if not i.is_completed}
        for instant in staged_instants(self.state.storage):
            if instant not in unfinished:
                what = f"Lost task attempts wrote it, too late for {instant}. No query reads it."
                yield Finding("staged", f"{STAGED}/{instant}", what, _RECOVER)

    def _markers(self) -> Iterator[Finding]:
        known = {i.timestamp: i for i in self.state.timeline.instants}
        for folder in self.state.storage.list_directories(TEMP):
            instant = known.get(folder.rsplit("/", 1)[-1])
            if instant is None:
                yield Finding("markers", folder, "Markers of an instant that is not on the timeline.", _RECOVER)
            elif instant.is_completed:
                yield Finding("markers", folder, "Markers of an instant that is completed.", _RECOVER)

    # -- plans ------------------------------------------------------------------------------------

    def _plans(self) -> Iterator[Finding]:
        for plan in self.state.pending_plans:
            path = self.state.layout.instant_path(plan.instant, Action.COMPACTION, State.REQUESTED)
            guarded = plan.extra_metadata.get(GUARDED)
            if guarded is not None:
                yield Finding("guard", path, f"This only guards the links of {guarded}.", _RECOVER)
            yield from self._plan_files(plan)

    def _plan_files(self, plan: Plan) -> Iterator[Finding]:
        where = f"compaction {plan.instant}"
        for op in plan.operations:
            for path in (op.base_file, *op.log_files):
                if path and (path not in self._infos or self._infos[path].broken):
                    yield Finding("missing_file", path, f"Pending {where} reads it, and it is gone.", RESTORE_HINT)
            for carried in op.carried_over:
                link, source = self._infos.get(carried.link), self._infos.get(carried.made_from)
                again = f"Link it to {carried.made_from} again, or unschedule {plan.instant}."
                if link is None or link.broken:
                    yield Finding("missing_link", carried.link, f"Pending {where} carries it over.", again)
                elif source is not None and not self._same(link, source):
                    what = f"It is not what {where} carries over: {carried.made_from} has other bytes."
                    yield Finding("link_differs", carried.link, what, again)

    def _same(self, link: FileInfo, target: FileInfo) -> bool:
        if link.link_target == target.path or (link.inode is not None and link.inode == target.inode):
            return True
        return same_bytes(self.state.storage, link, target)

    # -- rows behind a base file ------------------------------------------------------------------

    def _hidden(self) -> Iterator[Finding]:
        for (commit, behind, why), files in _by_commit(hidden_files(self.state)).items():
            what = f"{_files(files)} in no view: {why}."
            if gone := sum(file.gone for file in files):
                what += f" {gone} of them {'was' if gone == 1 else 'were'} cleaned."
            path = self._path(commit) if commit.file_name else files[0].path
            yield Finding("hidden_rows", path, what, self._brings_back(commit, behind, files))
        for plan in self.state.pending_plans:
            hint = f"Unschedule {plan.instant} before it is executed, and plan again."
            if not plan.is_ours:
                hint += f" It is another engine's: stop that and state {WRITERS}=stopped first."
            for (commit, *_), logs in _by_commit(about_to_be_hidden(self.state, plan)).items():
                what = f"{_files(logs)} in no view once compaction {plan.instant} is executed, which leaves them out."
                yield Finding("rows_to_be_hidden", self._path(commit), what, hint)

    def _brings_back(self, commit: Instant, behind: Instant, files: list[Hidden]) -> str:
        """What brings the rows back into view."""
        hint = "Stop the writers' cleaner."
        wanted = f"rite those rows of {commit.timestamp} once more that nobody has written or deleted since"
        again = f"{wanted}. Then state {WRITTEN_AGAIN}={commit.timestamp} wherever the table is opened."
        if taken_by := next((file.taken_by for file in files if file.taken_by is not None), None):
            return f"{hint} Compaction {taken_by} takes them: execute it before a clean."
        if files[0].is_base or any(file.gone for file in files) or not self._may_be_rolled_back(behind):
            return f"{hint} W{again}"
        return f"{hint} Roll {behind.timestamp} back and compact again. Where that is refused, w{again}"

    def _may_be_rolled_back(self, compaction: Instant) -> bool:
        """As far as a look tells: it is the newest of its kind, and what it read is there."""
        plan = self.state.plan(compaction.timestamp) if compaction.action is Action.COMMIT else None
        newest = self.state.timeline.completed(Action.COMMIT, Action.REPLACE_COMMIT)[-1:]
        if plan is None or newest != (compaction,):
            return False
        read = (path for op in plan.operations for path in (op.base_file, *op.log_files))
        return all(path in self.state.sizes for path in read if path)

    # -- files ------------------------------------------------------------------------------------

    def _orphans(self) -> Iterator[Finding]:
        orphans = Orphans(self.state)
        removable = {log.path for log in orphans.removable}
        for file in orphans.files:
            hint = _RECOVER if file.path in removable else "Look what wrote it; nothing reads it, so it can be deleted."
            yield Finding("orphan", file.path, f"Its instant {instant_of(file)} is not on the timeline.", hint)
        for slice_ in orphans.phantoms:
            for log in slice_:
                what = f"The slice {log.base_instant} was never committed, and hides the one below it."
                hint = _RECOVER if log.path in removable else "It was appended to since: restore a savepoint."
                yield Finding("phantom_slice", log.path, what, hint)

    def _passed(self) -> Iterator[Finding]:
        try:
            passed = Orphans(self.state).passed
        except HudiAssetsError as error:
            path = (error.where or "").removeprefix(f"{self.state.storage.base}: ")
            yield Finding("unreadable", path, error.what, error.hint or RESTORE_HINT)
            return
        for file in passed:
            what = f"It counts as committed, and its instant {instant_of(file)} is not in the archived timeline."
            yield Finding("phantom_file", file.path, what, "Look what wrote it: rows of a dead write are shown.")

    def _strays(self) -> Iterator[Finding]:
        strays = Strays(self.state)
        unlisted = {base.path for base in strays.base_files}
        for log in strays.log_files:
            what = "A lost task attempt's: its delta commit does not list it, and its rows are in the files it lists."
            yield Finding("stray", log.path, what, _RECOVER)
        several = {base.path for base in strays.second_base_files}
        for path in sorted(unlisted - several):
            yield Finding("stray", path, "A lost task attempt's: the commit of its instant does not list it.", _RECOVER)
        for path in sorted(several):
            what = "Its slice has another base file, which its commit names."
            hint = _RECOVER if path in unlisted else "Its commit is archived: it is the younger one. Delete it."
            yield Finding("two_base_files", path, what, hint)

    def _missing(self) -> Iterator[Finding]:
        missing = tuple(missing_files(self.state))
        for one in missing:
            yield Finding("missing_file" if one.found is None else "short_file", one.path, one.what, RESTORE_HINT)
        named = {one.path for one in missing}
        for link in self.state.broken_links:
            if link.path not in named:
                hint = "No query of now reads it. Put its target back, or delete it."
                yield Finding("broken_link", link.path, broken_words(link), hint)

    def _unknown_files(self) -> Iterator[Finding]:
        for file in self._infos.values():
            name = file.name
            if (
                name.endswith(".crc")
                or name.removesuffix(".parquet") == PARTITION_FILE
                or file.path in self.state.sizes
                or holds_changes(name)
                or file.broken
            ):
                continue
            yield Finding("unknown_file", file.path, "Neither a base nor a log file of Hudi.", "No query reads it.")


def _by_commit(files: Iterable[Hidden]) -> dict[tuple[Instant, Instant, str], list[Hidden]]:
    """By delta commit, by the base file that they lie behind, and by why they do."""
    found: dict[tuple[Instant, Instant, str], list[Hidden]] = {}
    for file in files:
        found.setdefault((file.delta_commit, file.behind, _why(file)), []).append(file)
    return found


def _files(files: list[Hidden]) -> str:
    groups = len({file.group for file in files})
    kind = "base file" if files[0].is_base else "log file"
    counted = f"1 {kind}" if len(files) == 1 else f"{len(files)} {kind}s"
    where = "1 file group" if groups == 1 else f"{groups} file groups"
    return f"{counted} in {where} ({files[0].path}) {'is' if len(files) == 1 else 'are'}"


def _why(file: Hidden) -> str:
    """Why it is in no view."""
    behind = file.behind
    if file.holds_behind:
        return f"made of what {behind.timestamp} wrote, and that instant is later than {file.delta_commit.timestamp}"
    if file.is_base:
        return f"{behind.action} {behind.timestamp} is later, and made its own of an older one"
    below = f"{behind.action} {behind.timestamp}, whose base files do not hold them"
    if behind.action is Action.COMMIT:
        below = f"compaction {behind.timestamp}, whose plan does not list them"
    return f"completed at {file.completion}, below {below}"


def validate(state: TableState, now_ms: Callable[[], int]) -> tuple[Finding, ...]:
    """What is not as it should be in one reading of a table; empty where all is well."""
    return Validator(state, now_ms).findings()
