"""The options of a freshness SLO, and what the policy proposes for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from hudi_assets.cli.output import print_facts, print_json
from hudi_assets.cli.table import NOTHING_TO_DO
from hudi_assets.engine import AUTO, HudiTable, SloTerms, StartNow, WaitUntil, iso, terms_of
from hudi_assets.sizes import size_of

SloOption = Annotated[
    str | None,
    typer.Option(
        "--slo",
        metavar="DURATION",
        help="The freshness may lag so far, as 6h: the threshold that keeps this with the fewest bytes, or none yet.",
    ),
]


@dataclass(frozen=True)
class Bounds:
    """The owner's bounds, an option each."""

    late_every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="With --slo: rows that come when it is broken already are compacted at once, but so long after the "
            "last compaction. Default: a quarter of the SLO.",
        ),
    ] = None
    least_gap: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --slo: between two compactions' starts.")
    ] = None
    bytes_per_hour: Annotated[
        int | None, typer.Option(min=1, metavar="BYTES", help="With --slo: read and written, on average.")
    ] = None
    hours: Annotated[
        str | None, typer.Option(metavar="FROM-TO", help="With --slo: hours of the day (UTC) to start in, as 22-6.")
    ] = None

    def terms(self, slo: str, data_latency: str | None = None) -> SloTerms:
        """`data_latency`: as the option has it; one that is learned, or the table's own, is not known yet."""
        known = 0 if data_latency in (None, AUTO) else data_latency
        return terms_of(slo, self.late_every, self.least_gap, self.bytes_per_hour, self.hours, data_latency=known or 0)


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
