"""The owner's words for an SLO and its bounds, as options and blocks have them."""

from __future__ import annotations

import re

from hudi_assets.engine.errors import InvalidInput
from hudi_assets.engine.model.units import Latency, parse_latency
from hudi_assets.engine.slo.bounds import check_bounds
from hudi_assets.engine.slo.values import HOURS_HINT, SloTerms


def terms_of(
    slo: str,
    late_every: str | None = None,
    least_gap: str | None = None,
    bytes_per_hour: int | None = None,
    hours: str | None = None,
    *,
    data_latency: Latency = 0,
    look_every: Latency = 0,
) -> SloTerms:
    """An SLO and its bounds, of words.

    Args:
        slo: A duration, as `6h`.
        late_every: A duration. Default: a quarter of the SLO.
        least_gap: A duration. Default: none.
        bytes_per_hour: Read and written, on average. Default: no bound.
        hours: Of the day, UTC, as `22-6`. Default: all.
        data_latency: Where it is known beforehand. The bounds are held to it.
        look_every: After so long at most somebody asks again. The bounds are held to it.

    Raises:
        InvalidInput: One of them is no duration, no hours, or says nothing. Or the bounds allow no policy to keep the
            SLO. The bytes an hour are not judged: how many are needed is not known beforehand.
    """
    terms = SloTerms(
        slo_ms=parse_latency(slo),
        late_every_ms=None if late_every is None else parse_latency(late_every),
        least_gap_ms=0 if least_gap is None else parse_latency(least_gap),
        bytes_per_hour=bytes_per_hour,
        hours=None if hours is None else hours_of(hours),
    )
    check_bounds(terms, parse_latency(data_latency), parse_latency(look_every))
    return terms


def hours_of(text: str) -> tuple[int, int]:
    """Two hours of the day, from and to."""
    found = re.fullmatch(r"(\d{1,2})-(\d{1,2})", text.strip())
    if found is None:
        raise InvalidInput(f"{text!r} are no hours of the day.", hint=HOURS_HINT)
    return int(found[1]), int(found[2])
