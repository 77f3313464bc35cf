"""Which columns of a sample are event times, and which one to take. Pure.

A column is a candidate where each of its values, in one unit, lies between 1980 and its file's newest commit (with the
leeway of `model.column_unit`). Of several candidates one is chosen only where nobody would choose another: the one that
the table states, the ordering field, the only one that there is, or the only one whose name speaks of events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.column_unit import EARLIEST_MS, LEEWAY_MS, Counts, infer
from hudi_assets.engine.model.profile import Choice, Lateness, RuledOut, TimeColumn
from hudi_assets.engine.model.units import MICROS_OF, EventTimeUnit, iso, to_micros, unit_of
from hudi_assets.engine.profile.sample import COMMIT_TIME, SampledFile

_EVENT: Final = re.compile(r"event|occurr|happen|observed|measured", re.IGNORECASE)
_TIME: Final = re.compile(r"(^|_)(ts|at|on|when)$|time|date|epoch|day$", re.IGNORECASE)
_PROCESSING: Final = re.compile(
    r"updat|modif|ingest|load|process|insert|sync|extract|commit|arriv|received", re.IGNORECASE
)

CommittedMs = Callable[[str], int | None]
"""An instant as epoch ms; None where that is not known."""


@dataclass(frozen=True)
class Asked:
    """What the table says of its columns."""

    ordering: str | None
    partitions: Sequence[str]
    stated: str | None
    unit: str | None
    quantile: float


def choose(names: Iterable[str], files: Sequence[SampledFile], asked: Asked, committed_ms: CommittedMs) -> Choice:
    """The event-time column, or the question that a person has to answer."""
    found = [_column(name, files, asked, committed_ms) for name in names]
    ruled_out = tuple(one for one in found if isinstance(one, RuledOut))
    columns = sorted((one for one in found if isinstance(one, TimeColumn)), key=lambda c: _rank(c, asked))
    column = _evident(columns, asked)
    return Choice(column, None if column else _question(columns, ruled_out, asked), tuple(columns), ruled_out)


def _rank(column: TimeColumn, asked: Asked) -> tuple[object, ...]:
    kinds = (EventTimeUnit.TIMESTAMP, *MICROS_OF, EventTimeUnit.ISO, EventTimeUnit.DATE)
    name = _name_rank(column.name)
    return column.name != asked.stated, name > 0, not column.ordering, column.partition, name, kinds.index(column.unit)


def _name_rank(name: str) -> int:
    if _EVENT.search(name):
        return 0
    if _PROCESSING.search(name):
        return 2
    return 1 if _TIME.search(name) else 3


def _evident(columns: Sequence[TimeColumn], asked: Asked) -> TimeColumn | None:
    """The column that nobody would doubt."""
    if asked.stated is not None:
        return next((one for one in columns if one.name == asked.stated), None)
    if len(columns) == 1:
        return columns[0]
    events = [one for one in columns if _name_rank(one.name) == 0]
    ordering = next((one for one in columns if one.ordering), None)
    if len(events) == 1 and ordering in (None, events[0]):
        return events[0]
    return ordering if ordering in events or not events else None


def _question(columns: Sequence[TimeColumn], ruled_out: Sequence[RuledOut], asked: Asked) -> str:
    why = {one.name: one.why for one in ruled_out}
    if asked.stated is not None:
        doubt = why.get(asked.stated, "the sampled rows hold none in it")
        return f"The table takes event times from {asked.stated!r}: {doubt}."
    if columns:
        names = [f"{one.name}{' (orders records)' if one.ordering else ''}" for one in columns]
        return f"Several columns may be the event time: {', '.join(names)}."
    if asked.ordering in why:
        return (
            f"No column is an event time beyond doubt: {asked.ordering}, which orders records, {why[asked.ordering]}."
        )
    return "No column is an event time: none is a timestamp, a date, or has such values."


# -- one column -----------------------------------------------------------------------------------


def _column(
    name: str, files: Sequence[SampledFile], asked: Asked, committed_ms: CommittedMs
) -> TimeColumn | RuledOut | None:
    """The column as an event time; None for one that a name or a number makes obvious: no text that is a time."""
    parts = [(file, file.rows.column(name)) for file in files if name in file.rows.schema.names]
    values = [(file, column) for file, column in parts if column.null_count < len(column)]
    if not values:
        return None
    kind = values[0][1].type
    stated_unit = asked.unit if name == asked.stated else None
    try:
        unit = unit_of(kind, stated_unit, name)
    except InvalidInput as error:
        return RuledOut(name, error.what)
    inferred = unit is None
    evidence = None
    if unit is None:
        told = infer(name, [_counts(file, column, committed_ms) for file, column in values])
        if told.unit is None:
            return RuledOut(name, told.problem or "has no unit")
        unit, evidence = told.unit, told.evidence
    try:
        micros = [to_micros(column, unit) for _, column in values]
    except (InvalidInput, pa.ArrowInvalid):
        return RuledOut(name, "its text is no ISO-8601 time") if name == asked.ordering else None
    bounds = [pc.min_max(one).as_py() for one in micros]
    low, high = min(b["min"] for b in bounds) // 1000, -(-max(b["max"] for b in bounds) // 1000)
    if name != asked.stated and not _plausible(low, high, [file for file, _ in values], committed_ms):
        return RuledOut(name, f"its values, {iso(low)} to {iso(high)}, lie before 1980 or long after their commit")
    return TimeColumn(
        name=name,
        type=str(kind),
        unit=unit,
        low=low,
        high=high,
        rows=sum(len(column) for _, column in parts),
        nulls=sum(column.null_count for _, column in parts),
        ordering=name == asked.ordering,
        partition=name in asked.partitions,
        inferred=inferred,
        evidence=evidence,
        lateness=_lateness(values, micros, asked.quantile, committed_ms),
    )


def _counts(file: SampledFile, column: pa.ChunkedArray, committed_ms: CommittedMs) -> Counts:
    bounds = pc.min_max(column).as_py()
    return Counts(file.path, int(bounds["min"]), int(bounds["max"]), _newest(file, committed_ms))


def _newest(file: SampledFile, committed_ms: CommittedMs) -> int:
    """The newest commit of a file's rows, epoch ms; 0: unknown."""
    instants = pc.unique(file.rows.column(COMMIT_TIME)).to_pylist() if COMMIT_TIME in file.rows.schema.names else []
    return max((committed_ms(one) or 0 for one in instants if one), default=0)


def _plausible(low: int, high: int, files: Sequence[SampledFile], committed_ms: CommittedMs) -> bool:
    return low >= EARLIEST_MS and high <= max(_newest(file, committed_ms) for file in files) + LEEWAY_MS


def _lateness(
    values: Sequence[tuple[SampledFile, pa.ChunkedArray]],
    micros: Sequence[pa.ChunkedArray],
    quantile: float,
    committed_ms: CommittedMs,
) -> Lateness | None:
    """How long after its event each row was committed."""
    found: list[np.ndarray] = []
    for (file, _), times in zip(values, micros, strict=True):
        if COMMIT_TIME not in file.rows.schema.names:
            return None
        encoded = pc.dictionary_encode(file.rows.column(COMMIT_TIME)).combine_chunks()
        known = [committed_ms(one) if one else None for one in encoded.dictionary.to_pylist()]
        commits = pa.array(known, pa.int64()).take(encoded.indices)
        late = pc.subtract(commits, pc.floor(pc.divide(times.combine_chunks(), 1000)).cast(pa.int64())).drop_null()
        found.append(np.maximum(late.to_numpy(zero_copy_only=False), 0))
    late_ms = np.concatenate(found) if found else np.empty(0)
    if not len(late_ms):
        return None
    at = int(np.quantile(late_ms, quantile, method="inverted_cdf"))
    return Lateness(at, quantile, int(late_ms.max()), len(late_ms))
