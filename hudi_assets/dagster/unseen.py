"""Looks that could not be made, because somebody was just changing what they read.

One of them means nothing: the next comes soon. Where all fail so, nobody sees the freshness, and the clock passes the
SLO. Then `freshness_within_slo` fails by what was seen last.
"""

from dataclasses import dataclass

from dagster import AssetCheckResult

from hudi_assets.dagster.checks import unseen_result
from hudi_assets.engine import Conflict


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the last look saw, and when; epoch ms."""

    freshness: int | None
    at_ms: int


# Path of a table → what was seen of it last.
_seen: dict[str, _Seen] = {}


def note_seen(path: str, freshness: int | None, now_ms: int) -> None:
    """A look could be made."""
    _seen[path] = _Seen(freshness, now_ms)


def beyond_slo_unseen(path: str, conflict: Conflict, slo_ms: int, now_ms: int) -> AssetCheckResult | None:
    """The check's result after a look that could not be made; None where what was seen last is good enough still.

    Where nothing was seen yet in this process, as after a restart, the time counts from the first look that failed.
    """
    last = _seen.setdefault(path, _Seen(now_ms, now_ms))
    if last.freshness is None or now_ms - last.freshness <= slo_ms:
        return None
    return unseen_result(last.freshness, last.at_ms, now_ms, slo_ms, conflict)
