"""Cuts the deliveries of the flight updates into batches: one batch, one delta commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa

from hudi_assets.demo.flights.source import FIRST_DAY, LAST_DAY, UPDATE_SCHEMA, deliveries, delivery_times

_SECOND_MS = 1000
_DAY_MS = 24 * 3600 * _SECOND_MS
# Flights of the last day are still in the air at midnight UTC, and an update takes up to two days.
_END_OF_DELIVERIES = LAST_DAY + timedelta(days=4)


@dataclass(frozen=True)
class Batch:
    """One window [start_ms, end_ms) of delivery time, epoch milliseconds UTC.

    `id` is its start ("2013-01-01T03:00:00Z"): the same window has the same id in every stream. `end_ms` is
    the logical clock once the batch is committed.
    """

    index: int
    id: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class FlightStream:
    """What was delivered in `days` days from `start` (midnight UTC) about the flights dated `start` or later.

    Updates delivered at or after the end belong to no batch. So a longer stream begins with exactly the
    batches of a shorter one, as long as `start` and `batch_hours` are the same. Windows without a delivery
    are batches too, with no rows. Raises ValueError on a window that is no whole number of seconds, and on
    days of which the source knows nothing.
    """

    days: int
    start: date = FIRST_DAY
    batch_hours: float = 3

    def __post_init__(self) -> None:
        if not FIRST_DAY <= self.start <= LAST_DAY:
            raise ValueError(f"start {self.start} is outside of the source, {FIRST_DAY} to {LAST_DAY}")
        most = (_END_OF_DELIVERIES - self.start).days
        if not 1 <= self.days <= most:
            raise ValueError(f"days must be 1 to {most} from {self.start}, not {self.days}")
        window = self.batch_hours * 3600
        # Not `%` or `!=` alone: 0.35 h is 1259.9999999999998 s in floating point.
        if not (1 <= window < float("inf") and abs(window - round(window)) < 1e-6):
            raise ValueError(f"batch_hours must give whole seconds, not {self.batch_hours} h = {window} s")

    @property
    def schema(self) -> pa.Schema:
        """The columns of `rows`: keys, values, and event_time as timestamp[us, UTC]."""
        return UPDATE_SCHEMA

    @property
    def start_ms(self) -> int:
        return int(datetime(self.start.year, self.start.month, self.start.day, tzinfo=UTC).timestamp()) * 1000

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.days * _DAY_MS

    @cached_property
    def batches(self) -> list[Batch]:
        """The windows in order; together they hold every update delivered before `end_ms`.

        Batch 0 also takes what was delivered before `start`. The last one is shorter where `batch_hours`
        does not divide the stream.
        """
        step = round(self.batch_hours * 3600) * _SECOND_MS
        starts = range(self.start_ms, self.end_ms, step)
        return [Batch(i, _iso(ms), ms, min(ms + step, self.end_ms)) for i, ms in enumerate(starts)]

    def batch(self, batch_id: str) -> Batch:
        """The batch with that id; KeyError if the stream has none."""
        for batch in self.batches:
            if batch.id == batch_id:
                return batch
        raise KeyError(f"no batch {batch_id} in {self}")

    def rows(self, batch: Batch) -> pa.Table:
        """The updates delivered in that window, in order of delivery; several may be about one flight."""
        if not (0 <= batch.index < len(self.batches) and self.batches[batch.index] == batch):
            raise ValueError(f"{batch} is no batch of {self}")
        first = 0 if batch.index == 0 else self._count_before(batch.start_ms)
        table = self._deliveries.slice(first, self._count_before(batch.end_ms) - first)
        return table.drop_columns("delivered_at")

    def delivered(self, until_ms: int) -> pa.Table:
        """All updates of the stream delivered before that epoch millisecond, with `delivered_at`."""
        return self._deliveries.slice(0, self._count_before(min(until_ms, self.end_ms)))

    @property
    def _deliveries(self) -> pa.Table:
        return deliveries(self.start, self._last)

    @property
    def _last(self) -> date:
        # A flight is announced at most nine hours ahead, so those dated `end` are the last that can matter.
        return min(self.start + timedelta(days=self.days), LAST_DAY)

    def _count_before(self, until_ms: int) -> int:
        return int(np.searchsorted(delivery_times(self.start, self._last), until_ms, side="left"))


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
