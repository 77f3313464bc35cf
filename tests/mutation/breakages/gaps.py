"""Breakages of tables with a partial update mode: rows with gaps."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
_GAPS = f"{_ENGINE}/merging/gaps.py"
_PARTIAL = f"{_ENGINE}/merging/partial.py"
_PASSES = f"{_ENGINE}/merging/passes.py"
_CLOSURE = f"{_ENGINE}/actions/compaction/closure.py"
_LOOP = ("tests/property/test_gaps.py::test_gaps_agree_with_the_loop",)
_IN_PASSES = ("tests/property/test_gaps.py::test_in_passes_too",)
_TWICE = ("tests/property/test_gaps.py::test_a_key_that_stands_twice_in_a_base_file",)
_QUERIES = ("tests/unit/test_gaps.py::test_a_null_is_filled_in_every_query_and_by_the_compaction",)
_MODES = ("tests/unit/test_stated_merge_mode.py::test_what_is_not_merged_says_so_by_name",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a marker of bytes is a gap",
        _GAPS,
        "        if not _is_text(column.type):\n            return None\n",
        "        if not _is_text(column.type) and not pa.types.is_binary(column.type):\n            return None\n",
        ("tests/property/test_gaps.py::test_bytes_have_no_marker",),
    ),
    Breakage(
        "a key that is the marker's text is a gap",
        _GAPS,
        " for name in rows.schema.names if name != _KEY}",
        " for name in rows.schema.names}",
        _LOOP,
    ),
    Breakage(
        "a marker that nothing fills becomes a null",
        _GAPS,
        "        if self.marker is None or not _is_text(kind):\n            return pa.nulls(count, kind)\n",
        "        if self.marker != kind:\n            return pa.nulls(count, kind)\n",
        _LOOP,
    ),
    Breakage(
        "a base row that wins keeps its gaps",
        _PARTIAL,
        "        some = np.any([np.zeros(len(at), np.bool_), *found.values()], axis=0)\n",
        "        some = np.zeros(len(at), np.bool_)\n",
        _LOOP,
    ),
    Breakage(
        "a base row is filled from a delete",
        _PARTIAL,
        "        alive = ~winners.deleted[matched.beaten]\n",
        "        alive = np.ones(len(matched.beaten), np.bool_)\n",
        _LOOP,
    ),
    Breakage(
        "a base row that wins gives way to the log row that fills it",
        _PARTIAL,
        "            sources[at] = np.where(kept.at(group[0]), sources[at], _LACKING)\n",
        "            pass\n",
        _LOOP,
    ),
    Breakage(
        "in commit order a gap is filled from a deleted row",
        _PARTIAL,
        "    fills = state.there[keys] & ~state.deleted[keys] & ~",
        "    fills = state.there[keys] & ~",
        _LOOP,
    ),
    Breakage(
        "a delete ends each base row of its key in a table with gaps",
        f"{_ENGINE}/merging/winners.py",
        "            return FirstMatches(np.ones(len(self.places), np.bool_))\n",
        "            return FirstMatches(~self.deleted)\n",
        _TWICE,
    ),
    Breakage(
        "gaps of blocks that do not fit are not seen",
        _PASSES,
        "head_columns(self.ordering) if self.gaps is None else self._names)\n",
        "head_columns(self.ordering))\n",
        _IN_PASSES,
    ),
    Breakage(
        "base rows that are kept in one part of the file are lost from another",
        _PARTIAL,
        "np.concatenate([part.at(name) for part in parts]) for name in names})\n",
        "np.concatenate([~part.at(name) for part in parts]) for name in names})\n",
        _IN_PASSES,
    ),
    Breakage(
        "rows with some columns alone are filled by gaps",
        f"{_ENGINE}/merging/merge.py",
        "    if gaps is not None and block.only is not None:\n",
        "    if False:\n",
        ("tests/property/test_gaps.py::test_rows_with_some_columns_alone_are_refused",),
    ),
    Breakage(
        "a range of commits shows gaps",
        f"{_ENGINE}/queries/in_range.py",
        "    if reader.gaps is not None or any(",
        "    if any(",
        _QUERIES,
    ),
    Breakage(
        "queries fill no gaps",
        f"{_ENGINE}/table/slices/rows.py",
        "reader.memory, gaps=reader.gaps).rows()",
        "reader.memory).rows()",
        _QUERIES,
    ),
    Breakage(
        "compactions fill no gaps",
        f"{_ENGINE}/actions/compaction/tasks.py",
        "leaves, without, reader.gaps)",
        "leaves, without)",
        _QUERIES,
    ),
    Breakage(
        "text with gaps comes as a dictionary",
        f"{_ENGINE}/table/slices/streams.py",
        "        dictionaries = dictionaries and reader.gaps is None\n",
        "",
        ("tests/unit/test_gaps.py::test_a_marker_is_filled_and_a_null_is_not",),
    ),
    Breakage(
        "in event order a slice with gaps is parted",
        _CLOSURE,
        "    if rule.fills_gaps and (rule.mode is not MergeMode.COMMIT_TIME_ORDERING or ",
        "    if rule.fills_gaps and (",
        ("tests/unit/test_gaps.py::test_in_event_order_slices_are_taken_whole",),
    ),
    Breakage(
        "in commit order a slice with gaps and deletes is parted",
        _CLOSURE,
        "any(s.deletes != 0 for s in known)):\n        # As with",
        "False):\n        # As with",
        ("tests/unit/test_gaps.py::test_in_commit_order_slices_are_parted_where_nothing_is_deleted",),
    ),
    Breakage(
        "a forecast parts slices with gaps in event order",
        f"{_ENGINE}/past/rewriting.py",
        "    if config.compaction.whole_slices or fills:\n",
        "    if config.compaction.whole_slices:\n",
        ("tests/unit/test_gaps.py::test_in_event_order_slices_are_taken_whole",),
    ),
    Breakage(
        "a partial update mode of version 8 is followed",
        f"{_ENGINE}/table/settings/merging.py",
        "    return None if layout.states_payload_class else stated_gaps(properties)\n",
        "    return stated_gaps(properties)\n",
        _MODES,
    ),
    Breakage(
        "without a marker nulls are filled",
        f"{_ENGINE}/table/settings/not_merged.py",
        'return Gaps(marker) if mode == "FILL_UNAVAILABLE" and marker else None\n',
        'return Gaps(marker) if mode == "FILL_UNAVAILABLE" else None\n',
        _MODES,
    ),
    Breakage(
        "gaps are filled by several ordering fields",
        f"{_ENGINE}/table/settings/merging.py",
        "    if len(ordering) > 1 and gaps is not None:\n",
        "    if False:\n",
        _MODES,
    ),
    Breakage(
        "rows are written into a table with a partial update mode",
        f"{_ENGINE}/actions/writing/gaps.py",
        "    if config.merging.gaps is not None:\n",
        "    if False:\n",
        ("tests/unit/test_gaps.py::test_rows_are_not_written_and_deletes_are",),
    ),
    Breakage(
        "another default than null is no gap",
        f"{_ENGINE}/table/gaps.py",
        '        if field.get("default") is not None:\n',
        "        if False:\n",
        ("tests/unit/test_gaps.py::test_another_default_than_null_is_not_merged_here",),
    ),
    Breakage(
        "a plan with partial updates beside a partial update mode is published",
        f"{_ENGINE}/actions/compaction/who_executes.py",
        " or state.config.merging.gaps is not None\n",
        "\n",
        ("tests/unit/test_gaps.py::test_partial_updates_of_merge_into_are_not_merged_beside_it",),
    ),
)
