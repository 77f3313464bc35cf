"""A Dagster block (`defs.yaml`) for a table that exists, from what the table tells about itself.

PyYAML writes each field, so that quoting is right. The comments between say what a field rests on, and where a person
has to decide.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import yaml

from hudi_assets.engine import HudiAssetsError, TableProfile, TimeColumn, duration, iso, parse_latency

TYPE: Final = "hudi_assets.components.HudiTableComponent"
_WIDTH: Final = 118
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_STEPS: Final = tuple(
    chain(
        (n * 1000 for n in (1, 2, 3, 5, 7, 10, 15, 20, 30, 45)),
        (n * _MINUTE for n in (1, 2, 3, 5, 7, 10, 15, 20, 30, 45)),
        (n * _HOUR for n in (1, 1.5, 2, 3, 4, 6, 8, 12, 18)),
        (n * _DAY for n in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30)),
    )
)
_LEAST_EVERY: Final = 15 * _MINUTE
_COMMITS_EACH: Final = 5
"""Hudi's own default trigger asks for a compaction after so many commits."""
_SHARED_LOCK: Final = ".FileSystemBasedLockProvider"
_HISTORY: Final = 7 * _DAY
"""Rows that came later than this are history that was loaded, rather than live events."""


@dataclass(frozen=True)
class Wishes:
    """What the caller of `init` knows of the tables, and they do not tell."""

    event_time_field: str | None = None
    data_latency: str | None = None
    writers: str | None = None


@dataclass(frozen=True)
class Block:
    """The text of a `defs.yaml`, and what a person has to decide before the block compacts."""

    name: str
    text: str
    decide: tuple[str, ...]


def identifier(text: str) -> str:
    """A name for Dagster: letters, digits and underscores, no digit first."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text).strip("_") or "table"
    return f"t_{name}" if name[0].isdigit() else name


def block_of(name: str, table: TableProfile, wishes: Wishes = Wishes()) -> Block:
    """The block of a table that others write."""
    writing = _Block(table, wishes)
    body = textwrap.indent("".join([_field("name", name), *writing.fields()]), "  ")
    head = "".join(writing.head())
    return Block(name, f"{head}{_field('type', TYPE)}\nattributes:\n{body}", tuple(writing.decide))


def nice(ms: int) -> str:
    """A duration of at least so many ms, in a round number: `30s`, `15m`, `2h`, `3d`."""
    step = next((int(step) for step in _STEPS if step >= ms), -(-ms // _DAY) * _DAY)
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if step % size == 0:
            return f"{step // size}{unit}"
    return f"{step // 1000}s"


def _field(name: str, value: Any) -> str:
    text: str = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=10_000)
    return text


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, _WIDTH, break_long_words=False))


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class _Block:
    """The lines of one block, and the decisions that they leave open."""

    def __init__(self, table: TableProfile, wishes: Wishes) -> None:
        self.table, self.wishes = table, wishes
        self.decide: list[str] = []
        wished = next((one for one in table.choice.candidates if one.name == wishes.event_time_field), None)
        self.column = wished if wishes.event_time_field else table.choice.column
        self.latency = self._latency()

    def _latency(self) -> str | None:
        """What is written as data latency; None: the table states its own."""
        if self.wishes.data_latency or self.table.stated_latency:
            return self.wishes.data_latency
        late = self.column.lateness if self.column else None
        return nice(max(late.latency_ms, 1000)) if late else "auto"

    def _to_decide(self, text: str) -> str:
        self.decide.append(text)
        return _comment(f"Decide: {text}")

    # -- what the table is, above all fields ----------------------------------------------------------

    def head(self) -> Iterator[str]:
        table = self.table
        files = f"{_plural(table.file_groups, 'file group')}, {_plural(table.remaining_log_files, 'log file')} remain"
        metadata = "on" if table.metadata_table else "off"
        yield _comment(f"Table version {table.table_version}; {files}. Hudi's metadata table: {metadata}.")
        seen = "; ".join(f"{_plural(one.commits, 'commit')} by {one.name}, last {one.last}" for one in table.writers)
        yield _comment(f"Writers on the active timeline: {seen or 'none'}.")
        for service in table.services:
            text = f"Others ran {_plural(service.times, service.name)}, last {service.last}."
            cure = " Switch it off in every writer (hoodie.compact.inline, hoodie.datasource.compaction.async.enable)."
            yield _comment(text) if service.name == "clustering" else self._to_decide(text + cure)
        if table.zone_problem:
            yield self._to_decide(f"{table.zone_problem} State hudi_assets.timeline.zone under settings.")

    # -- the fields ------------------------------------------------------------------------------------

    def fields(self) -> Iterator[str]:
        yield _field("path", self.table.path)
        yield _field("external", True)
        yield from self._event_time()
        yield from self._data_latency()
        yield from self._pace()
        yield from self._writers()
        yield from self._settings()

    def _event_time(self) -> Iterator[str]:
        choice, column = self.table.choice, self.column
        wished = self.wishes.event_time_field
        if column is None and wished:
            yield _comment("As given. The sampled rows show no event times in it.")
            yield _field("event_time_field", wished)
            return
        others = [one for one in choice.candidates if one is not column]
        if column is None:
            yield self._to_decide(f"{choice.question} Name the event-time column.")
            for one in others or ():
                yield _comment(_evidence(one))
                yield _comment(_field("event_time_field", one.name).strip())
            if not others:
                yield _comment("event_time_field: …")
            return
        yield _comment(_evidence(column))
        if column.nulls:
            yield _comment(f"{column.nulls:,} of these have none: the data latency bounds them by their commit.")
        if self.table.stated_field == column.name:
            yield _comment(f"The table itself names {column.name}.")
        else:
            yield _field("event_time_field", column.name)
        if column.inferred and self.table.stated_unit is None:
            yield _comment(f"Told by the values: {column.evidence}.")
            yield _field("event_time_unit", str(column.unit))
        if others:
            yield _comment(f"Also event times: {', '.join(one.name for one in others)}.")

    def _data_latency(self) -> Iterator[str]:
        late = self.column.lateness if self.column else None
        if self.latency is None:
            yield _comment(f"The table itself states a data latency of {self.table.stated_latency}.")
            return
        if self.wishes.data_latency:
            yield _comment("As given: the longest time from an event to its commit.")
        elif late is None:
            yield _comment("Nothing to learn it from yet. State the longest time from an event to its commit, as 2h.")
        else:
            yield _comment(
                f"{late.quantile:.0%} of {_plural(late.rows, 'sampled row')} were committed within "
                f"{duration(late.latency_ms)} of their event, all within {duration(late.max_ms)}. "
                "auto learns it from the log files that remain."
            )
            if late.latency_ms > _HISTORY:
                yield self._to_decide(
                    f"The rows were committed up to {duration(late.latency_ms)} after their event: old events were "
                    "loaded. State the data latency of live ones."
                )
        yield _field("data_latency", self.latency)

    def _pace(self) -> Iterator[str]:
        pace = self.table.pace_ms
        every = nice(max(_LEAST_EVERY, _COMMITS_EACH * (pace or 0)))
        if pace is None:
            yield _comment("By how much event time moves on before a compaction. One commit tells no pace.")
        else:
            yield _comment(
                f"By how much event time moves on before a compaction: about {_COMMITS_EACH} commits, which come "
                f"{duration(round(pace, -3) or pace)} apart, and no less than 15 min."
            )
        yield _field("compact_every", every)
        learned = self.latency or self.table.stated_latency or "auto"
        latency = _known_ms(learned)
        if latency is None:
            yield _comment(
                "A check fails when the freshness is older. It has to be more than latency and compact_every."
            )
            yield _comment("freshness_slo: 6h")
        else:
            yield _comment("A check fails when the freshness is older: twice the data latency and compact_every.")
            yield _field("freshness_slo", nice(2 * (latency + parse_latency(every))))

    def _writers(self) -> Iterator[str]:
        table = self.table
        if self.wishes.writers:
            yield _comment("As given: what is known of the table's other writers.")
            yield _field("writers", self.wishes.writers)
        elif table.lock and table.lock.endswith(_SHARED_LOCK):
            yield _comment(f"The table names a lock: {table.lock}.")
            yield _field("writers", "locked")
        elif table.needs_stated_writers:
            yield self._to_decide(
                "Version 6: nothing in the table says whether its writers take a lock. State `writers: locked` if each "
                "has hoodie.write.lock.provider=…FileSystemBasedLockProvider, or one in ZooKeeper that settings name, "
                "or `writers: stopped` if none runs (docs/explanation/concurrency.md). Until then nothing is compacted."
            )
            yield _comment("writers: locked")
        else:
            yield _comment("Versions 8 and 9 need no lock: plans lie at a past instant, beside running writers.")

    def _settings(self) -> Iterator[str]:
        seen = self.table.cleaner
        if seen is None:
            yield _comment(
                "No clean was seen. Under settings: hoodie.cleaner.commits.retained, as the writers are told (Hudi's "
                "default is 10)."
            )
        elif seen.commits_retained is None or seen.policy != "KEEP_LATEST_COMMITS":
            yield _comment(
                f"The clean {seen.instant} ({seen.policy or 'its policy is not stated'}) does not tell how much it "
                "keeps: state the writers' hoodie.cleaner.… under settings."
            )
        else:
            yield _comment(f"The clean {seen.instant} kept {_plural(seen.commits_retained, 'commit')}.")
            yield _field("settings", {"hoodie.cleaner.commits.retained": str(seen.commits_retained)})


def _known_ms(latency: str) -> int | None:
    try:
        return parse_latency(latency)
    except HudiAssetsError:
        return None


def _evidence(column: TimeColumn) -> str:
    role = "ordering field, " if column.ordering else ""
    role += "partition field, " if column.partition else ""
    rows = f"{_plural(column.rows, 'sampled row')}"
    return f"{column.name}: {role}{column.type}, {iso(column.low)} to {iso(column.high)} in {rows}."
