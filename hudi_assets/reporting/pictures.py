"""Pictures of event times and costs: matplotlib's figures, as PNG for Dagster and as SVG for a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.dates as mdates
import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from hudi_assets.engine import duration, iso

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hudi_assets.engine import CostPoint, LogBar, PastCompaction, PastFreshness

_COMPACTED, _REMAINING, _THRESHOLD = "#2f7ebc", "#f2a33a", "#b3202a"
_MAX_BARS = 600
_DAY_MS = 86_400_000


def cost_picture(curve: Sequence[CostPoint]) -> bytes:
    """As PNG."""
    return png(cost_figure(curve))


def cost_figure(curve: Sequence[CostPoint]) -> Figure:
    """Bytes to rewrite over the threshold as steps, and the freshness that each step reaches."""
    figure = Figure(figsize=(9.5, 3.2), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    days = [_days(point.threshold) for point in curve]
    megabytes = [point.bytes_to_rewrite / 1e6 for point in curve]
    axes.step(days, megabytes, where="post", color=_COMPACTED, linewidth=1.6, label="threshold")
    fresh = [(_days(p.freshness), p.bytes_to_rewrite / 1e6) for p in curve if p.freshness is not None]
    axes.plot([x for x, _ in fresh], [y for _, y in fresh], "o", color=_REMAINING, markersize=4, label="freshness then")
    axes.set_ylabel("MB to rewrite")
    axes.set_ylim(bottom=0)
    _time_axis(axes)
    axes.legend(fontsize=8, frameon=False)
    return figure


def event_time_picture(bars: Sequence[LogBar], threshold: int | None, title: str) -> bytes:
    """As PNG."""
    return png(event_time_figure(bars, threshold, title))


def event_time_figure(bars: Sequence[LogBar], threshold: int | None, title: str) -> Figure:
    """Every log file as a bar from its smallest to its largest event time.

    Grouped by partition, in order of event time; compacted and remaining ones in two colours, the threshold
    as a line. Files without a known range are counted in the legend. The newest 600 are drawn.
    """
    drawn = [bar for bar in bars if bar.min_event_time is not None and bar.max_event_time is not None]
    drawn.sort(key=lambda bar: (bar.partition, bar.min_event_time, bar.max_event_time))
    if len(drawn) > _MAX_BARS:
        newest = sorted(drawn, key=lambda bar: bar.max_event_time or 0)[-_MAX_BARS:]
        drawn = [bar for bar in drawn if bar in set(newest)]
    height = min(9.0, 1.6 + 0.11 * len(drawn))
    figure = Figure(figsize=(9.5, max(2.6, height)), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    _draw_bars(axes, drawn)
    if threshold is not None:
        axes.axvline(_days(threshold), color=_THRESHOLD, linewidth=1.6)
    _label(axes, drawn, threshold, title, unknown=len(bars) - len(drawn))
    return figure


def lag_figure(past: Sequence[PastFreshness], now: tuple[int, int | None], slo_ms: int | None) -> Figure:
    """How far the freshness was behind the clock: it grows with the clock and falls at compactions. Unknown is a gap.

    `now`: the clock and the freshness at the end.
    """
    figure, axes = _wide(2.8)
    clocks = [one.at_ms for one in past for _ in ("before", "after")] + [now[0]]
    freshness = [known for one in past for known in (one.before, one.after)] + [now[1]]
    lags = [np.nan if f is None else at - f for at, f in zip(clocks, freshness, strict=True)]
    unit, name = _unit_of(max((lag for lag in [*lags, slo_ms or 0] if lag == lag), default=0))
    axes.plot(
        list(map(_days, clocks)),
        [lag / unit for lag in lags],
        color=_COMPACTED,
        linewidth=1.4,
        label="lag of the freshness",
    )
    if slo_ms is not None:
        axes.axhline(slo_ms / unit, color=_THRESHOLD, linewidth=1.2, linestyle="--", label=f"SLO {duration(slo_ms)}")
    axes.set_ylabel(f"{name} behind")
    axes.set_ylim(bottom=0)
    _time_axis(axes, "the table's clock (UTC)")
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def remaining_figure(past: Sequence[PastFreshness]) -> Figure:
    """The log files that were not compacted, over time."""
    figure, axes = _wide(2.4)
    counts = [one.remaining_log_files for one in past]
    axes.step([_days(one.at_ms) for one in past], counts, where="post", color=_REMAINING, linewidth=1.6)
    axes.set_ylabel("log files left")
    axes.set_ylim(bottom=0)
    _time_axis(axes, "the table's clock (UTC)")
    return figure


def compactions_figure(past: Sequence[PastCompaction]) -> Figure:
    """What each compaction read and wrote, oldest first."""
    figure, axes = _wide(2.4)
    places = np.arange(1, len(past) + 1)
    read = [(one.bytes_read or one.log_bytes) / 1e6 for one in past]
    axes.bar(places - 0.2, read, width=0.4, color=_REMAINING, label="read")
    written = [one.bytes_written / 1e6 for one in past]
    axes.bar(places + 0.2, written, width=0.4, color=_COMPACTED, label="written")
    axes.set_ylabel("MB")
    axes.set_xlabel("compactions, oldest first")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def lateness_figure(lateness: Sequence[tuple[int, int]], latency_ms: int | None) -> Figure:
    """Which share of the records had come how long after they happened."""
    figure, axes = _wide(2.4)
    ordered = sorted(lateness)
    unit, name = _unit_of(max(ordered[-1][0], latency_ms or 0))
    shares = np.cumsum([count for _, count in ordered]) / sum(count for _, count in ordered) * 100
    late = [ms / unit for ms, _ in ordered]
    axes.step([0, *late], [0, *shares], where="post", color=_COMPACTED, linewidth=1.6)
    if latency_ms is not None:
        label = f"data latency {duration(latency_ms)}"
        axes.axvline(latency_ms / unit, color=_THRESHOLD, linewidth=1.2, linestyle="--", label=label)
        axes.legend(fontsize=8, frameon=False, loc="lower right")
    axes.set_ylabel("% of the records")
    axes.set_xlabel(f"{name} from event to commit, at the most")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 103)
    axes.grid(color="#dddddd", linewidth=0.6)
    return figure


def _wide(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9.5, height), dpi=100, layout="constrained")
    return figure, figure.add_subplot()


def _unit_of(ms: float) -> tuple[float, str]:
    """The unit in which a duration is a handy number."""
    units = ((86_400_000 * 2, 86_400_000, "days"), (3_600_000 * 2, 3_600_000, "hours"), (120_000, 60_000, "minutes"))
    return next(((unit, name) for least, unit, name in units if ms >= least), (1000, "seconds"))


def _draw_bars(axes: Axes, bars: Sequence[LogBar]) -> None:
    starts = [_days(bar.min_event_time or 0) for bar in bars]
    # A file with one event time still shows: at least a three-hundredth of the picture.
    ends = [_days(bar.max_event_time or 0) for bar in bars]
    least = max((max(ends) - min(starts)) / 300, 1 / 86_400)
    widths = [max(end - start, least) for start, end in zip(starts, ends, strict=True)]
    colours = [_COMPACTED if bar.compacted else _REMAINING for bar in bars]
    axes.barh(range(len(bars)), widths, left=starts, height=0.75, color=colours)
    axes.set_ylim(len(bars) - 0.4, -0.6)


def _label(axes: Axes, bars: Sequence[LogBar], threshold: int | None, title: str, *, unknown: int) -> None:
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    _time_axis(axes)
    _mark_partitions(axes, bars)
    compacted = sum(bar.compacted for bar in bars)
    entries = [
        Patch(color=_COMPACTED, label=f"compacted ({compacted} log files)"),
        Patch(color=_REMAINING, label=f"remaining ({len(bars) - compacted} log files)"),
    ]
    if threshold is not None:
        entries.append(Patch(color=_THRESHOLD, label=f"threshold {iso(threshold)}"))
    if unknown:
        entries.append(Patch(color="none", label=f"{unknown} not drawn"))
    axes.figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), fontsize=8, frameon=False)


def _time_axis(axes: Axes, label: str = "event time (UTC)") -> None:
    axes.set_xlabel(label)
    axes.xaxis_date()
    locator = mdates.AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _mark_partitions(axes: Axes, bars: Sequence[LogBar]) -> None:
    """One tick per partition in the middle of its bars, and a line between two partitions."""
    centres, names = [], []
    first = 0
    for i in range(1, len(bars) + 1):
        if i < len(bars) and bars[i].partition == bars[first].partition:
            continue
        centres.append((first + i - 1) / 2)
        names.append(bars[first].partition or "(not partitioned)")
        if i < len(bars):
            axes.axhline(i - 0.5, color="#888888", linewidth=0.6)
        first = i
    axes.set_yticks(centres, names, fontsize=8, parse_math=False)  # a name may have two dollar signs
    axes.tick_params(axis="y", length=0)


def svg(figure: Figure) -> str:
    """To stand in a page: text stays text, and nothing names a place elsewhere."""
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hudi-assets", "font.family": "sans-serif"}):
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = out.getvalue()
    return text[text.index("<svg") :]


def png(figure: Figure) -> bytes:
    """As a picture of 64 colours: a third of the bytes, and every materialization stores one."""
    from PIL import Image

    drawn = FigureCanvasAgg(figure)
    drawn.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(drawn.buffer_rgba())  # type: ignore[no-untyped-call]
    image = Image.fromarray(pixels[..., :3])
    out = io.BytesIO()
    image.quantize(64).save(out, "PNG", optimize=True)
    return out.getvalue()


def _days(ms: int) -> float:
    """Matplotlib's dates: days since 1970 UTC."""
    return ms / _DAY_MS
