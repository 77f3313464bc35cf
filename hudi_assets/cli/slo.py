"""The options of a freshness SLO, and what the policy proposes for it."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from hudi_assets.cli.output import print_facts, print_json
from hudi_assets.cli.table import NOTHING_TO_DO
from hudi_assets.engine import HudiTable, InvalidInput, SloTerms, StartNow, WaitUntil, iso, parse_latency
from hudi_assets.sizes import size_of

SloOption = Annotated[
    str | None,
    typer.Option(
        "--slo",
        metavar="DURATION",
        help="The freshness may lag so far, as 6h: the threshold that keeps this with the fewest bytes, or none yet.",
    ),
]
LateEvery = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="With --slo: rows that come when it is broken already are compacted at once, but so long after the last "
        "compaction. Default: a quarter of the SLO.",
    ),
]
LeastGap = Annotated[str | None, typer.Option(metavar="DURATION", help="With --slo: between two compactions' starts.")]
BytesPerHour = Annotated[
    int | None, typer.Option(min=1, metavar="BYTES", help="With --slo: read and written, on average.")
]
Hours = Annotated[
    str | None, typer.Option(metavar="FROM-TO", help="With --slo: hours of the day (UTC) to start in, as 22-6.")
]


def terms_of(
    slo: str,
    late_every: str | None = None,
    least_gap: str | None = None,
    bytes_per_hour: int | None = None,
    hours: str | None = None,
) -> SloTerms:
    """The owner's words."""
    given = None
    if hours is not None:
        found = re.fullmatch(r"(\d{1,2})-(\d{1,2})", hours.strip())
        if found is None:
            raise InvalidInput(f"--hours {hours} are no hours.", hint="Give two of 0 to 24, as 22-6.")
        given = int(found[1]), int(found[2])
    return SloTerms(
        slo_ms=parse_latency(slo),
        late_every_ms=None if late_every is None else parse_latency(late_every),
        least_gap_ms=0 if least_gap is None else parse_latency(least_gap),
        bytes_per_hour=bytes_per_hour,
        hours=given,
    )


def proposal_for(table: HudiTable, terms: SloTerms, data_latency: str | None, as_json: bool, *, shown: bool) -> int:
    """The threshold that is proposed, epoch ms; where none is, the command ends with the reason."""
    found = table.propose_compaction(terms, data_latency=data_latency)
    if shown or isinstance(found, WaitUntil):
        show_proposal(found, as_json)
    if isinstance(found, WaitUntil):
        raise typer.Exit(NOTHING_TO_DO)
    return found.threshold


def show_proposal(found: StartNow | WaitUntil, as_json: bool) -> None:
    """In words, or as one JSON object."""
    if as_json:
        print_json(proposal_json(found))
    elif isinstance(found, WaitUntil):
        print_facts(
            {"proposal": f"wait until {iso(found.until_ms)}", "why": found.why, "cost now": size_of(found.size)}
        )
    else:
        print_facts({"proposal": f"compact up to {iso(found.threshold)}", "why": found.why})


def proposal_json(found: StartNow | WaitUntil) -> dict[str, object]:
    """Times ISO-8601. `compact` says which of the two it is."""
    fields = asdict(found)
    times = {name.removesuffix("_ms"): iso(fields.pop(name)) for name in ("until_ms", "next_ms") if name in fields}
    if isinstance(found, StartNow):
        times["threshold"] = iso(found.threshold)
    return {"compact": isinstance(found, StartNow)} | fields | times
