"""Five made-up feeds: rows that come steadily, in bursts, from a late partner, with a backfill, after an outage.

A commit every ten minutes, a partition per day of event time, keys dealt to file groups by hash, a part of the rows
updates. Each row of the sample stands for many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import DAY_MS, HOUR_MS, MINUTE_MS
from hudi_assets.engine.slo.simulation.feed import Commit, Feed, NewLog, Place
from hudi_assets.engine.slo.values import Cut

Numbers = NDArray[np.int64]
START_MS: Final = 1_780_272_000_000  # a midnight, UTC
_EVERY: Final = 10 * MINUTE_MS
_LATENCY: Final = 30 * MINUTE_MS
_PAST_DAYS: Final = 31


@dataclass(frozen=True, slots=True)
class Scale:
    """How much comes, and how it lies. `day_bytes`: of one day's base files. `sample`: rows that stand for a commit's.

    `groups`: file groups in a partition, which holds `partition_ms` of event time. `late_apart`: rows later than the
    data latency have log files of their own, as this project's writer makes them.
    """

    days: int = 4
    groups: int = 16
    day_bytes: float = 4e9
    log_share: float = 1.3
    updates: float = 0.2
    sample: int = 1500
    partition_ms: int = DAY_MS
    late_apart: bool = False


@dataclass(frozen=True, slots=True)
class _Rows:
    """When rows arrived and when they had happened, epoch ms."""

    arrived: Numbers
    happened: Numbers


def feed_of(name: str, scale: Scale | None = None, *, seed: int = 1, cut: Cut = Cut.COMMITS) -> Feed:
    """One of the five made-up feeds. The same arguments give the same feed.

    Args:
        name: Of the distribution, one of `DISTRIBUTIONS`.
        scale: How many rows come, of how many bytes, for how many days. Default: 4 GB a day, for four days.
        seed: Of what is random.
        cut: What a plan may take of a slice. Default: a prefix, as on versions 8 and 9.

    Raises:
        InvalidInput: There is no such distribution.
    """
    if name not in DISTRIBUTIONS:
        raise InvalidInput(f"There is no distribution {name!r}.", hint=f"Give one of {', '.join(DISTRIBUTIONS)}.")
    scale = scale or Scale()
    random = np.random.default_rng(seed)
    rows = DISTRIBUTIONS[name](scale, random)
    return Feed(
        name=name,
        commits=_commits(rows, scale, random),
        bases=_bases(scale),
        latency_ms=_LATENCY,
        until_ms=START_MS + scale.days * DAY_MS,
        cut=cut,
    )


def _steady(scale: Scale, random: np.random.Generator) -> _Rows:
    count = scale.sample * scale.days * DAY_MS // _EVERY
    arrived = random.integers(0, scale.days * DAY_MS, count)
    late = np.minimum(random.exponential(3 * MINUTE_MS, count), 18 * MINUTE_MS)
    return _Rows(arrived, arrived - late.astype(np.int64))


def _bursts(scale: Scale, random: np.random.Generator) -> _Rows:
    """More by day than by night, and ten times as much in bursts; what comes in a burst comes later."""
    minutes = scale.days * 24 * 60
    weight = 1 + 0.8 * np.sin((np.arange(minutes) / 720 - 0.5) * np.pi)
    for begun in random.integers(0, minutes, 3 * scale.days):
        weight[begun : begun + int(random.integers(10, 40))] *= 10
    count = scale.sample * minutes // 10
    at = random.choice(minutes, count, p=weight / weight.sum())
    arrived = at * MINUTE_MS + random.integers(0, MINUTE_MS, count)
    mean = np.where(weight[at] > 3, 8.0, 2.0) * MINUTE_MS
    late = np.minimum(random.exponential(mean), 18 * MINUTE_MS)
    return _Rows(arrived, arrived - late.astype(np.int64))


def _late_partner(scale: Scale, random: np.random.Generator) -> _Rows:
    """One row of twenty is of a partner who sends once an hour what happened two to four hours ago."""
    rows = _steady(scale, random)
    his = random.random(len(rows.arrived)) < 0.05
    hours = rows.arrived // HOUR_MS * HOUR_MS + 20 * MINUTE_MS
    late = random.integers(2 * HOUR_MS, 4 * HOUR_MS, len(hours))
    return _Rows(np.where(his, hours, rows.arrived), np.where(his, hours - late, rows.happened))


def _backfill(scale: Scale, random: np.random.Generator) -> _Rows:
    """At noon of the second day, within two hours, one row of a hundred of thirty past days comes, day by day."""
    rows = _steady(scale, random)
    count = scale.sample * DAY_MS // _EVERY * 30 // 100
    day = np.sort(random.integers(-30, 0, count))
    happened = day * DAY_MS + random.integers(0, DAY_MS, count)
    arrived = DAY_MS + 12 * HOUR_MS + np.sort(random.integers(0, 2 * HOUR_MS, count))
    return _Rows(np.concatenate([rows.arrived, arrived]), np.concatenate([rows.happened, happened]))


def _outage(scale: Scale, random: np.random.Generator) -> _Rows:
    """On the second day nothing is ingested from 08:00 to 12:00; then it comes within half an hour, in its order."""
    rows = _steady(scale, random)
    begun, ended = DAY_MS + 8 * HOUR_MS, DAY_MS + 12 * HOUR_MS
    held = (rows.arrived >= begun) & (rows.arrived < ended)
    caught_up = ended + (rows.arrived - begun) // 8
    return _Rows(np.where(held, caught_up, rows.arrived), rows.happened)


DISTRIBUTIONS: Final[dict[str, Callable[[Scale, np.random.Generator], _Rows]]] = {
    "steady": _steady,
    "bursts": _bursts,
    "late-partner": _late_partner,
    "backfill": _backfill,
    "outage": _outage,
}


def _commits(rows: _Rows, scale: Scale, random: np.random.Generator) -> tuple[Commit, ...]:
    """Each ten minutes' rows, one log file for each file group of a day that they are of."""
    number, part = rows.arrived // _EVERY, rows.happened // scale.partition_ms
    apart = scale.late_apart * ((number + 1) * _EVERY - rows.happened > _LATENCY)
    group = random.integers(0, scale.groups, len(number))
    insert = random.random(len(number)) >= scale.updates
    order = np.lexsort((apart, group, part, number))
    keys = np.stack([number, part, group, apart])[:, order]
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    happened = rows.happened[order]
    low, high = np.minimum.reduceat(happened, starts), np.maximum.reduceat(happened, starts)
    counts = np.diff(np.r_[starts, len(order)])
    inserts = np.add.reduceat(insert[order].astype(np.int64), starts)
    row_bytes = scale.day_bytes / (scale.sample * DAY_MS // _EVERY)
    found: dict[int, list[NewLog]] = {}
    for n, at in enumerate(starts):
        found.setdefault(int(keys[0, at]), []).append(
            NewLog(
                place=_place(int(keys[1, at]), int(keys[2, at])),
                low=START_MS + int(low[n]),
                high=START_MS + int(high[n]),
                size=round(int(counts[n]) * row_bytes * scale.log_share),
                growth=round(int(inserts[n]) * row_bytes),
            )
        )
    return tuple(Commit(START_MS + (n + 1) * _EVERY, tuple(logs)) for n, logs in sorted(found.items()))


def _bases(scale: Scale) -> dict[Place, int]:
    """Past days are whole."""
    one = round(scale.day_bytes * scale.partition_ms / DAY_MS / scale.groups)
    past = range(-_PAST_DAYS * DAY_MS // scale.partition_ms, 0)
    return {_place(part, group): one for part in past for group in range(scale.groups)}


def _place(part: int, group: int) -> Place:
    return f"part={part:+03d}", f"{group:04d}"
