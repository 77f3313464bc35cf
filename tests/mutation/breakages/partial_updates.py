"""Breakages of the merge of partial updates."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_PARTIAL = "hudi_assets/engine/merging/partial.py"
_PASSES = "hudi_assets/engine/merging/passes.py"
_SUMMARIES = "hudi_assets/engine/table/log_files/summaries.py"
_READER = "hudi_assets/engine/table/log_files/reader.py"
LOOP = ("tests/property/test_partial_updates.py",)
UNIT = ("tests/unit/test_any_table.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "what loses gives no columns",
        _PARTIAL,
        "np.where(before == _LACKING, mine, before))\n",
        "before)\n",
        LOOP,
    ),
    Breakage(
        "a column that was filled is filled again",
        _PARTIAL,
        "np.where(before == _LACKING, mine, before))\n",
        "np.where(has, at, before))\n",
        LOOP,
    ),
    Breakage(
        "a row is filled from a deleted one",
        _PARTIAL,
        "    fills = there & ~state.deleted[keys] & ~records.deleted[now]\n",
        "    fills = there\n",
        LOOP,
    ),
    Breakage(
        "in commit order a row is filled from a delete block's delete",
        _PARTIAL,
        "    fills = state.there[keys] & state.from_rows[keys] & ~records.deleted[now]\n",
        "    fills = state.there[keys] & ~records.deleted[now]\n",
        LOOP,
    ),
    Breakage(
        "partial updates are not filled from base rows",
        _PARTIAL,
        "    if (filling.sources < 0).any():\n",
        "    if False:\n",
        LOOP,
    ),
    Breakage(
        "partial updates of another part of the keys are lost",
        _PASSES,
        "            yield from self._filled(together(self._fillings))\n",
        "            yield from self._filled(self._fillings[0])\n",
        LOOP,
    ),
    Breakage(
        "partial updates are merged by the rules of Hudi 0.x",
        "hudi_assets/engine/model/merge_mode.py",
        "        return self in (MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING)\n",
        "        return True\n",
        (*LOOP, *UNIT),
    ),
    Breakage(
        "a partial update is a row with nulls",
        _READER,
        "        if is_partial(block):\n            only =",
        "        if False:\n            only =",
        UNIT,
    ),
    Breakage(
        "a partial update without its ordering value loses quietly",
        _READER,
        "            if (problem := _unordered(only, ordering)) is not None:\n",
        "            if False:\n",
        UNIT,
    ),
    Breakage(
        "a range of commits shows partial updates with nulls",
        "hudi_assets/engine/queries/in_range.py",
        "    if any(is_partial(stored.block) for stored in blocks):\n        return None\n",
        "",
        UNIT,
    ),
    Breakage(
        "a slice with partial updates is parted",
        "hudi_assets/engine/actions/compaction/closure.py",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.partial for s in known):",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged for s in known):",
        UNIT,
    ),
    Breakage(
        "partial updates are forgotten with the first look",
        "hudi_assets/engine/model/log_summary.py",
        "    if summary.partial:\n        return values\n",
        "",
        UNIT,
    ),
    Breakage(
        "partial updates are planned where their merge is not known",
        "hudi_assets/engine/actions/compaction/who_executes.py",
        "            if summaries[path].partial and (leaves or not mode.merges_partial_updates):\n",
        "            if False:\n",
        UNIT,
    ),
    Breakage(
        "a partial update is filled from each base row of its key",
        _PARTIAL,
        "        there, at = there[~later], lacking[hits[~later]]\n",
        "        at = lacking[hits]\n",
        LOOP,
    ),
    Breakage(
        "a partial update changes each base row of its key",
        _PASSES,
        "        first = winners.first_matches(self._only) if self._only else None\n",
        "        first = None\n",
        LOOP,
    ),
    Breakage(
        "a delete in a partial update ends one base row of its key",
        "hudi_assets/engine/merging/winners.py",
        "list(blocks)) & ~self.deleted)\n",
        "list(blocks)))\n",
        LOOP,
    ),
    Breakage(
        "a plan with a partial update without its ordering value is published",
        _READER,
        "            problem = columns_not_merged(names) or _unordered(only, ordering)\n",
        "            problem = columns_not_merged(names)\n",
        UNIT,
    ),
    Breakage(
        "a commit bounds a partial update that lacks the event-time column",
        _SUMMARIES,
        "                unknown = unknown or _kept_event_times(records, column)\n",
        "",
        UNIT,
    ),
    Breakage(
        "a partial update with a null event time is taken for one that lacks the column",
        _SUMMARIES,
        " or column in records.only or ",
        " or ",
        UNIT,
    ),
    Breakage(
        "a commit bounds a null that may leave the event time as it is",
        "hudi_assets/engine/event_time/commit_bound.py",
        "        if summary.undated.rows is not None and self.state.config.merging.null_may_keep:\n",
        "        if False:\n",
        UNIT,
    ),
    Breakage(
        "no commit bounds a null in a table whose rules are not merged here",
        "hudi_assets/engine/event_time/commit_bound.py",
        "self.state.config.merging.null_may_keep:\n",
        "self.state.config.merging.not_merged:\n",
        UNIT,
    ),
    Breakage(
        "a text that is no time hides partial updates",
        _SUMMARIES,
        '                unknown = unknown or f"{path}: {error.what}"\n',
        '                return ScannedLog(LogSummary(None, None, None, reason=f"{path}: {error.what}"), "")\n',
        UNIT,
    ),
    Breakage(
        "a damaged block hides what a log file holds beside it",
        _SUMMARIES,
        "    whole = [block for block in blocks if not block.is_corrupt]\n",
        "    whole = [] if any(b.framed for b in blocks) else [block for block in blocks if not block.is_corrupt]\n",
        UNIT,
    ),
    Breakage(
        "a commit bounds partial updates that are not read",
        _SUMMARIES,
        '                unknown = unknown or (f"{path}: {unread}" if is_partial(block) else None)\n',
        "",
        UNIT,
    ),
    Breakage(
        "a required column that nothing fills is null",
        _PARTIAL,
        "    _refuse_unfilled(columns, schema)\n",
        "",
        LOOP,
    ),
)
