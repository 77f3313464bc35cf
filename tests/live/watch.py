"""The writer's process, and what its table must show at any moment."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hudi_assets.engine import HudiTable
from hudi_assets.engine.model import Action
from hudi_assets.engine.queries.query import ReadTask, read_task
from scripts.hudi_client import bundle, interop_python
from tests.live.events import Event, Stream, winners

_SINK = "_hudi_streaming_sink_checkpoint"
ROOT = Path(__file__).resolve().parent.parent.parent
Row = tuple[int, int]
# A guard against a writer that hangs, and no measure: on a busy machine a commit took more than a minute to end.
_HANGS_S = 900


class Writer(Protocol):
    """A writer that commits batches of `stream`'s events, one after the other."""

    @property
    def path(self) -> Path: ...
    def check_alive(self) -> None: ...
    def stop(self) -> str: ...
    def stream(self) -> Stream: ...
    def events_until(self, batch: int) -> int: ...
    def last_batch(self, table: HudiTable) -> int: ...


class StreamingWriter:
    """Apache Hudi's streaming sink in a process of its own; `folder` gets table, checkpoint and log."""

    def __init__(
        self, release: str, folder: Path, options: Mapping[str, str], *, per_second: int = 20, every_s: int = 2
    ) -> None:
        self.folder = folder
        self.per_second = per_second
        self._log = (folder / "writer.log").open("wb")
        script = str(ROOT / "tests/live/streaming_writer.py")
        arguments = [str(bundle(release)), str(folder), str(per_second), str(every_s)]
        settings = [f"{key}={value}" for key, value in options.items()]
        self._process = subprocess.Popen(
            [str(interop_python()), script, *arguments, *settings],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )

    @property
    def path(self) -> Path:
        return self.folder / "table"

    def check_alive(self) -> None:
        assert self._process.poll() is None, (self.folder / "writer.log").read_text(errors="replace")[-3000:]

    def stop(self) -> str:
        """Let it end, in the middle of a commit it may be; the error that ended the stream, if one did."""
        (self.folder / "stop").touch()
        ended, began = self.folder / "ended", time.monotonic()
        while not ended.exists() and self._process.poll() is None and time.monotonic() < began + _HANGS_S:
            time.sleep(0.2)
        code, waited = self._process.poll(), time.monotonic() - began
        # Threads of Hudi's keep its Java process alive for minutes after the session has ended.
        self._process.kill()
        self._process.wait()
        self._log.close()
        if ended.exists():
            return ended.read_text()
        how = f"it did not end within {waited:.0f} s" if code is None else f"it ended with exit code {code}"
        last = (self.folder / "writer.log").read_text(errors="replace")[-3000:]
        return f"Hudi's writer: {how}, and left no word. Its log ends with:\n{last}"

    def stream(self) -> Stream:
        """The events so far; the rate source keeps its start in the checkpoint."""
        start = (self.folder / "checkpoint/sources/0/0").read_text().splitlines()[-1]
        return Stream(int(start), self.per_second)

    def events_until(self, batch: int) -> int:
        """How many events the batches up to one hold: the source's offsets are seconds since its start."""
        if batch < 0:
            return 0
        return int((self.folder / f"checkpoint/offsets/{batch}").read_text().splitlines()[-1]) * self.per_second

    def last_batch(self, table: HudiTable) -> int:
        """The last batch that the sink has committed; -1 before the first."""
        state = table.state()
        for instant in reversed(state.timeline.completed(Action.DELTA_COMMIT)):
            noted = json.loads(state.commit(instant).extra.get(_SINK, "{}"))
            if noted:
                return max(int(batch) for batch in noted.values())
        return -1


def rows_of(tasks: list[ReadTask]) -> dict[str, Row]:
    """key → (event time, number). Raises AssertionError where a key comes twice."""
    found: dict[str, Row] = {}
    for task in tasks:
        for batch in read_task(task):
            for row in batch.to_pylist():
                assert row["id"] not in found, f"{row['id']} comes twice"
                found[row["id"]] = (row["ts"], row["v"])
    return found


@dataclass
class Counts:
    """What a run has seen; times of the freshness in epoch ms."""

    snapshots: int = 0
    promises: int = 0
    long_reads: int = 0
    commits: int = 0
    events: int = 0
    compactions: int = 0
    logs_compacted: int = 0
    skipped: int = 0
    lost_races: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    freshness: list[int] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        moved = self.freshness[-1] - self.freshness[0] if self.freshness else 0
        told = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "freshness"}
        return {
            **told,
            "lost_races": len(self.lost_races),
            "late": len(self.late),
            "freshness_moved_by_s": moved / 1000,
        }


@dataclass(frozen=True)
class LongRead:
    """A query that listed its files at one moment and reads them much later."""

    tasks: list[ReadTask]
    before: int
    after: int
    due: float


@dataclass
class Watch:
    """Looks at a table that the writer goes on writing, and compares it with the oracle."""

    writer: Writer
    table: HudiTable
    counts: Counts = field(default_factory=Counts)
    _long: LongRead | None = None

    def snapshot(self) -> None:
        """The snapshot is that of some moment between the looks before and after it."""
        before = self.writer.last_batch(self.table)
        found = rows_of(self.table.snapshot_tasks())
        self._is_of(found, before, self.writer.last_batch(self.table))
        self.counts.snapshots += 1

    def _is_of(self, found: Mapping[str, Row], before: int, after: int) -> None:
        stream = self.writer.stream()
        wanted: dict[str, Row] = {}
        for batch in range(before, after + 1):
            wanted = stream.rows(self.writer.events_until(batch))
            if found == wanted:
                return
        wrong = {
            key: (found.get(key), wanted.get(key)) for key in found.keys() | wanted if found.get(key) != wanted.get(key)
        }
        raise AssertionError(f"not the table of batches {before} to {after}: {dict(list(wrong.items())[:5])}")

    def promise(self) -> None:
        """The read-optimized view holds, of every key, what was ingested up to the freshness, or something later."""
        batch = self.writer.last_batch(self.table)
        freshness = self.table.freshness().freshness
        if freshness is None:
            return
        shown = rows_of(self.table.read_optimized_tasks())
        now = self._written(self.writer.last_batch(self.table))
        known = {(one.key, one.ts, one.number) for one in now}
        strange = {key: row for key, row in shown.items() if (key, *row) not in known}
        assert not strange, f"nobody wrote {strange}"
        deleted = {one.key: one.ts for one in now if one.deleted}
        for key, winner in winners(one for one in self._written(batch) if one.ts <= freshness).items():
            if key in shown:
                assert shown[key][0] >= winner.ts, f"{key}: {shown[key]} is older than {winner}; freshness {freshness}"
            else:
                assert deleted.get(key, 0) >= winner.ts, f"{winner} is missing; freshness {freshness}"
        self.counts.freshness.append(freshness)
        self.counts.promises += 1

    def _written(self, batch: int) -> list[Event]:
        ends = [self.writer.events_until(number) for number in range(batch + 1)]
        return list(self.writer.stream().written(ends))

    def long_read(self, seconds: float) -> None:
        """Read what was listed `seconds` ago; list anew."""
        if self._long is not None and time.monotonic() < self._long.due:
            return
        if self._long is not None:
            self._is_of(rows_of(self._long.tasks), self._long.before, self._long.after)
            self.counts.long_reads += 1
        before = self.writer.last_batch(self.table)
        tasks = self.table.snapshot_tasks()
        self._long = LongRead(tasks, before, self.writer.last_batch(self.table), time.monotonic() + seconds)
