"""Breakages of the compaction policy for a freshness SLO, and of its simulator."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_SLO = "hudi_assets/engine/slo"
POLICY = ("tests/unit/slo/test_policy.py",)
OPTIMUM = ("tests/unit/slo/test_optimum.py",)
SIMULATION = ("tests/unit/slo/test_simulation.py",)
REWRITING = ("tests/unit/slo/test_rewriting.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "the SLO is reckoned from the commit",
        f"{_SLO}/levels.py",
        "in_time = log.low - 1 + terms.slo_ms",
        "in_time = log.committed_ms - 1 + terms.slo_ms",
        POLICY,
    ),
    Breakage(
        "publishing takes no time",
        f"{_SLO}/levels.py",
        "return min(due - self.publish_ms - self.speed.at_most(self.size), late)",
        "return min(due - self.speed.at_most(self.size), late)",
        POLICY,
    ),
    Breakage(
        "a compaction takes as long as the mean one",
        f"{_SLO}/learning.py",
        "return round(self.likely(size) * (1 + self.spread))",
        "return round(self.likely(size))",
        POLICY,
    ),
    Breakage(
        "what is due after a compaction may wait for its end",
        f"{_SLO}/levels.py",
        "min(start, then - spacing(self.terms, taken_ms, size))",
        "start",
        POLICY,
    ),
    Breakage(
        "everything that remains is taken, due or not",
        f"{_SLO}/policy.py",
        "(too_late(one[0]), one[1].cost, -one[0].upto)",
        "(too_late(one[0]), -one[0].upto)",
        POLICY,
    ),
    Breakage(
        "only what is due is taken",
        f"{_SLO}/policy.py",
        "(too_late(one[0]), one[1].cost, -one[0].upto)",
        "(too_late(one[0]), one[0].upto)",
        POLICY,
    ),
    Breakage(
        "what can be put off is worth nothing",
        f"{_SLO}/policy.py",
        "(1 - later * (highest[number] <= part.upto))",
        "1",
        POLICY,
    ),
    Breakage(
        "late rows wait as if they had come in time",
        f"{_SLO}/levels.py",
        "    if in_time >= log.committed_ms + history.publish_ms:",
        "    if True:",
        POLICY,
    ),
    Breakage(
        "late rows are never gathered",
        f"{_SLO}/levels.py",
        "return math.inf, max(log.committed_ms, gap)",
        "return math.inf, log.committed_ms",
        POLICY,
    ),
    Breakage(
        "a backlog is compacted in one piece",
        f"{_SLO}/levels.py",
        "            if found and taken_ms > self.longest_ms:",
        "            if False:",
        POLICY,
    ),
    Breakage(
        "an unknown event time is a threshold",
        f"{_SLO}/levels.py",
        "        if top == UNKNOWN:",
        "        if False:",
        POLICY,
    ),
    Breakage(
        "the owner's gap is passed over",
        f"{_SLO}/bounds.py",
        "return max(duration_ms, terms.least_gap_ms, paid)",
        "return max(duration_ms, paid)",
        POLICY,
    ),
    Breakage(
        "the owner's bytes an hour are passed over",
        f"{_SLO}/bounds.py",
        "return max(duration_ms, terms.least_gap_ms, paid)",
        "return max(duration_ms, terms.least_gap_ms)",
        POLICY,
    ),
    Breakage(
        "it starts when the SLO asks for it, though the hours of the day are over by then",
        f"{_SLO}/policy.py",
        "needed, best = last_open(terms, work.start_of_all), None",
        "needed, best = work.start_of_all, None",
        POLICY,
    ),
    Breakage(
        "hours go over no midnight",
        f"{_SLO}/bounds.py",
        "if begins < ends else into_day >= begins or into_day < ends",
        "",
        POLICY,
    ),
    Breakage(
        "a log file that overlaps a later one is left",
        f"{_SLO}/selection.py",
        "if group.logs[m].high >= lows[n])",
        "if group.logs[m].high > lows[n])",
        POLICY,
    ),
    Breakage(
        "on versions 8 and 9 what was written earlier is left",
        f"{_SLO}/selection.py",
        "return tuple(accumulate(reversed(lows), min))[::-1]",
        "return tuple(lows)",
        POLICY,
    ),
    Breakage(
        "a wait ends too late to keep the SLO",
        f"{_SLO}/policy.py",
        "max(needed - tick // 2, now + tick // 2)",
        "max(needed + 20 * tick, now + tick // 2)",
        OPTIMUM,
    ),
    Breakage(
        "a simulated base file is not read where it is rewritten",
        f"{_SLO}/simulation/table.py",
        "read += slice_.base + sum(",
        "read += sum(",
        SIMULATION,
    ),
    Breakage(
        "a simulated base file does not grow",
        f"{_SLO}/simulation/table.py",
        "            slice_.base += self._growth(slice_, logs)\n",
        "",
        SIMULATION,
    ),
    Breakage(
        "what a policy leaves at the end is free",
        f"{_SLO}/simulation/run.py",
        "    run.settle()\n",
        "",
        SIMULATION,
    ),
    Breakage(
        "minutes missed at once count twice",
        f"{_SLO}/simulation/outcome.py",
        "begun = begun if last is None else max(begun, last)",
        "begun = begun",
        SIMULATION,
    ),
    Breakage(
        "a compaction is published before it is",
        f"{_SLO}/simulation/run.py",
        "self._published[id(log)] = now + self.machine.publish_ms",
        "self._published[id(log)] = now",
        SIMULATION,
    ),
    Breakage(
        "a policy that misses the SLO is compared with",
        f"{_SLO}/simulation/comparison.py",
        "if one.avoidable_min == 0 and",
        "if",
        SIMULATION,
    ),
    Breakage(
        "a carried-over log file came when its link was made",
        "hudi_assets/engine/past/rewriting.py",
        " or committed.get(origin_of(state, log)) or low",
        " or low",
        REWRITING,
    ),
    Breakage(
        "an unknown event time counts from now on",
        "hudi_assets/engine/past/rewriting.py",
        "low = UNKNOWN if summary.counts_from is None",
        "low = state.now_ms if summary.counts_from is None",
        REWRITING,
    ),
    Breakage(
        "beside a pending plan another one is proposed",
        "hudi_assets/engine/hudi_table/reports.py",
        "        if pending is not None:\n            return WaitUntil(",
        "        if False:\n            return WaitUntil(",
        REWRITING,
    ),
)
