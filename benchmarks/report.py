"""From seconds to ratios: the rows of a benchmark, their goals, and how they are written down.

    python -m benchmarks.report [--write docs/reference/benchmarks.md]

prints the table of the last run, or puts it into a Markdown page between the page's marks.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.data import WORKS
from hudi_assets.home import home

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_COMMAND = "- command: "  # a result begins with it


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row's ratio should be: at most (for a limit), else at least."""

    name: str
    ratio: float

    @property
    def is_limit(self) -> bool:
        """True where the peer is the bare cost: the ratio is our time / its, and lower is better."""
        return self.name.endswith("_limit")

    def met(self, ratio: float) -> bool:
        return ratio <= self.ratio if self.is_limit else ratio >= self.ratio

    def __str__(self) -> str:
        return f"{'≤' if self.is_limit else '≥'} {self.ratio:g}"


GOALS = tuple(
    Goal(name, ratio)
    for name, ratio in (
        ("compact_avro_vs_hudi", 4),
        ("compact_parquet_vs_hudi", 6),
        ("compact_parquet_limit", 1.6),
        ("upsert_vs_hudi", 2.5),
        ("load_vs_hudi", 3),
        ("snapshot_avro_vs_best", 1.7),
        ("snapshot_parquet_vs_best", 2.5),
        ("read_optimized_limit", 1.05),
        ("incremental_vs_hudi", 3),
        ("plan_100k_limit", 2),
    )
)
# Of benchmarks.on_minio.
STORE_GOALS = tuple(
    Goal(name, ratio)
    for name, ratio in (
        ("store_upsert_vs_hudi", 4),
        ("store_snapshot_vs_hudi", 2.5),
        ("store_compact_vs_hudi", 4),
        ("store_read_optimized_limit", 1.1),
    )
)
_GOAL = {goal.name: goal for goal in (*GOALS, *STORE_GOALS)}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result. Seconds are medians; `spread` is the least and the greatest ratio of a run."""

    name: str
    work: str
    against: str
    ours_s: float
    peer_s: float
    ratio: float
    spread: tuple[float, float]
    runs: int

    @property
    def met(self) -> bool:
        return _GOAL[self.name].met(self.ratio)


def make_row(name: str, work: str, ours: Sequence[float], peers: Mapping[str, Sequence[float]]) -> Row:
    """A row from the seconds of each run, of us and of every peer; the peer with the least median counts.

    The n-th time of each is of the same run. Raises ValueError unless all have as many runs, and at least one.
    """
    counts = {len(ours), *map(len, peers.values())}
    if not peers or len(counts) != 1 or not ours:
        raise ValueError(f"{name}: runs do not match: ours {len(ours)}, { {k: len(v) for k, v in peers.items()} }")
    best = min(peers, key=lambda peer: statistics.median(peers[peer]))
    pairs = zip(ours, peers[best], strict=True)
    ratios = [mine / theirs if _GOAL[name].is_limit else theirs / mine for mine, theirs in pairs]
    return Row(
        name=name,
        work=work,
        against=best,
        ours_s=statistics.median(ours),
        peer_s=statistics.median(peers[best]),
        ratio=statistics.median(ratios),
        spread=(min(ratios), max(ratios)),
        runs=len(ratios),
    )


def to_json(rows: Sequence[Row], **about: Any) -> str:
    """`{"rows": [...]}` as bench.json has it; `about` says of what machine and size it is."""
    return json.dumps({**about, "rows": [_rounded(row) for row in rows]}, indent=1) + "\n"


def _rounded(row: Row) -> dict[str, Any]:
    fields = asdict(row)
    for name in ("ours_s", "peer_s", "ratio"):
        fields[name] = round(fields[name], 3)
    fields["spread"] = [round(ratio, 3) for ratio in row.spread]
    return fields


def from_json(text: str) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a bench.json, and what it says of the machine."""
    body: dict[str, Any] = json.loads(text)
    rows = [Row(**{**row, "spread": (row["spread"][0], row["spread"][1])}) for row in body.pop("rows")]
    return rows, body


def bench_json(work: str = "trips") -> Path:
    """Where the result of a work is: the trips' is bench.json."""
    return home() / ("bench.json" if work == "trips" else f"bench-{work}.json")


# ------------------------------------------------------------------------------------------------ showing

_COLUMNS = ("name", "against", "ours", "peer", "ratio", "spread", "runs", "goal")


def _cells(row: Row) -> tuple[str, ...]:
    spread = f"{row.spread[0]:.2f} to {row.spread[1]:.2f}"
    seconds = (f"{row.ours_s:.2f} s", f"{row.peer_s:.2f} s")
    return (row.name, row.against, *seconds, f"{row.ratio:.2f}", spread, str(row.runs), str(_GOAL[row.name]))


def show(rows: Sequence[Row]) -> None:
    """The table on a terminal: green where the goal is met, red where not."""
    for work in dict.fromkeys(row.work for row in rows):
        grid = Table(*_COLUMNS, title=work, title_justify="left")
        for row in rows:
            if row.work == work:
                grid.add_row(*_cells(row), style="green" if row.met else "red")
        Console(width=140).print(grid)


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """The same as a Markdown table, with what the run was of."""
    lines = [f"- {key}: `{value}`" for key, value in about.items()]
    for work in dict.fromkeys(row.work for row in rows):
        lines += ["", f"Work: {work}.", "", f"| {' | '.join(_COLUMNS)} | met |", "|---" * (len(_COLUMNS) + 1) + "|"]
        for row in rows:
            if row.work == work:
                name, *cells = _cells(row)
                lines.append(f"| `{name}` | {' | '.join(cells)} | {'yes' if row.met else '**no**'} |")
    return "\n".join(lines).strip() + "\n"


def put_into(page: str, text: str, first: str = BEGIN, last: str = END) -> str:
    """A page with what is between two marks replaced. Raises ValueError for a page without them."""
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page lacks {first} and {last}")
    return f"{before}{first}\n{text}{last}{after}"


def with_results(page: str, results: Sequence[str]) -> str:
    """A page with results in place of those of the same work; those of other works stay."""
    shown = page.partition(BEGIN)[2].partition(END)[0]
    older = [f"{_COMMAND}{rest}" for rest in shown.split(_COMMAND)[1:]]
    blocks = {work: block.strip() for block in (*older, *results) for work in WORKS if f"--work {work} " in block}
    return put_into(page, "\n\n".join(blocks[work] for work in WORKS if work in blocks) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a Markdown page with the marks in it")
    parser.add_argument("--json", type=Path, nargs="+", help="the results, those of every work by default")
    asked = parser.parse_args()
    files = asked.json or [file for file in map(bench_json, WORKS) if file.exists()]
    results = [from_json(file.read_text()) for file in files]
    if not results:
        parser.error(f"there is no {bench_json()}: run make bench first")
    for rows, _ in results:
        show(rows)
    if asked.write:
        asked.write.write_text(with_results(asked.write.read_text(), [markdown(*result) for result in results]))


if __name__ == "__main__":
    main()
