"""What `hudi-assets compact` shows: each compaction of a series as it is planned and done, and what all came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hudi_assets.cli.output import (
    freshness_facts,
    print_facts,
    print_json,
    print_query_time,
    print_text,
    query_time_json,
    reach_of,
)
from hudi_assets.cli.publish import Published
from hudi_assets.engine import Bill, CompactionResult, CompactionSeries, Freshness, Plan, duration, iso
from hudi_assets.sizes import size_of


class ShownSeries:
    """For people a line with each step; for programs one JSON object at the end."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._plans: list[Plan] = []
        self._done: list[CompactionResult] = []

    def planned(self, plan: Plan) -> None:
        """A compaction begins."""
        self._plans.append(plan)
        if not self._as_json:
            groups = len(plan.operations)
            print_text(f"Compaction {plan.instant}: {reach_of(plan)}, {_counted(groups, 'file group')} …")
            if len(self._plans) == 1:  # the others say the same
                print_query_time(plan)

    def done(self, result: CompactionResult) -> None:
        """It is committed."""
        self._done.append(result)
        if not self._as_json:
            print_text(
                f"Compaction {result.instant} done in {result.seconds:.1f} s: {result.logs_compacted} log files "
                f"compacted into {len(result.operations)} base files with {result.rows:,} rows, "
                f"{result.logs_remaining} log files remain."
            )
            if result.bill is not None:
                print_text(_bill_in_words(result.bill))

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Where an error ends the series, programs are told what was done before it."""
        try:
            yield
        except Exception as error:
            if self._as_json and self._done:
                print_json(self._json() | {"reached": False, "in_the_way": str(error)})
            raise

    def end(
        self,
        promise: Freshness,
        series: CompactionSeries | None = None,
        *,
        more_due: int | None = None,
        published: Published | None = None,
    ) -> None:
        """What it came to. Without a series it was one compaction.

        `more_due`: file groups that wait for another; None where that is not known, of a plan made elsewhere.
        """
        in_the_way = series.in_the_way if series else None
        if self._as_json:
            numbers = {
                "freshness": iso(promise.freshness),
                "file_groups_due": more_due or 0,
                "asked_for": iso(series.threshold) if series else None,
                "reached": None if more_due is None else not (in_the_way or more_due),
                "in_the_way": in_the_way,
            }
            told = {"published": published.as_json()} if published else {}
            print_json(self._json() | numbers | told)
            return
        if in_the_way is not None:
            asked_for = iso(series.threshold) if series else None
            print_text(f"{asked_for} was asked for and is not reached: {in_the_way.rstrip('.')}.")
        elif more_due:
            are = "is" if more_due == 1 else "are"
            print_text(f"{_counted(more_due, 'more file group')} {are} due up to the same threshold: run it again.")
        elif series is not None and series.threshold is not None:
            many = _counted(len(series.compactions), "compaction")
            print_text(f"All event times up to {iso(series.threshold)} are compacted, by {many}.")
        print_facts(freshness_facts(promise))
        if published is not None:
            published.show()

    def _json(self) -> dict[str, Any]:
        """Of a series: instant and threshold of the last, all other numbers together."""
        last, first = self._done[-1], self._plans[0]
        remaining = {(op.partition, op.file_id): op.logs_remaining for one in self._done for op in one.operations}
        return {
            "instant": last.instant,
            "threshold": iso(last.threshold),
            "file_groups": len(remaining),
            "logs_compacted": sum(one.logs_compacted for one in self._done),
            "logs_remaining": sum(remaining.values()),
            "rows": sum(one.rows for one in self._done),
            "seconds": round(sum(one.seconds for one in self._done), 3),
            **_bill_json([one.bill for one in self._done]),
            **query_time_json(first),
            "compactions": _each(self._done),
        }


def _each(done: Sequence[CompactionResult]) -> list[dict[str, Any]]:
    return [
        {
            "instant": one.instant,
            "threshold": iso(one.threshold),
            "file_groups": len(one.operations),
            "logs_compacted": one.logs_compacted,
            "logs_remaining": one.logs_remaining,
            "rows": one.rows,
            "seconds": round(one.seconds, 3),
            **_bill_json([one.bill]),
        }
        for one in done
    ]


def _bill_json(bills: Sequence[Bill | None]) -> dict[str, Any]:
    """Null where it is not known of one of them."""
    known = [bill for bill in bills if bill is not None]
    read = [bill.bytes_read for bill in known if bill.bytes_read is not None]
    gained = [bill.gained_ms for bill in known if bill.gained_ms is not None]
    return {
        "bytes_read": sum(read) if len(read) == len(bills) else None,
        "bytes_written": sum(bill.bytes_written for bill in known) if len(known) == len(bills) else None,
        "freshness_gained_ms": sum(gained) if len(gained) == len(bills) else None,
    }


def _bill_in_words(bill: Bill) -> str:
    read = "" if bill.bytes_read is None else f"read {size_of(bill.bytes_read)} and "
    if bill.gained_ms is None:
        return f"It {read}wrote {size_of(bill.bytes_written)}."
    gained = f"moved on by {duration(bill.gained_ms)}" if bill.gained_ms else "did not move"
    return f"It {read}wrote {size_of(bill.bytes_written)}, and the freshness {gained}."


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
