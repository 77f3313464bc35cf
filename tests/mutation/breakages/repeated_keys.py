"""Breakages of merges into base files in which keys stand several times."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_MERGING = "hudi_assets/engine/merging"
_ALONE = ("tests/property/test_repeated_keys.py::test_each_row_as_if_it_were_alone",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "by keys a record changes each base row of its key",
        f"{_MERGING}/winners.py",
        "        if not by_positions:\n            return FirstMatches(np.ones(len(self.places), np.bool_))\n",
        "        if not by_positions:\n            return FirstMatches(np.zeros(len(self.places), np.bool_))\n",
        _ALONE,
    ),
    Breakage(
        "by positions a record changes the first row of its key alone",
        f"{_MERGING}/winners.py",
        "return FirstMatches(~self.deleted) if gaps else None\n",
        "return FirstMatches(np.ones(len(self.places), np.bool_))\n",
        _ALONE,
    ),
    Breakage(
        "a row that replaces several base rows comes once",
        f"{_MERGING}/passes.py",
        "        if decided.repeated:\n",
        "        if False:\n",
        _ALONE,
    ),
    Breakage(
        "a row that replaces some of its key's base rows is lost where another one stays",
        f"{_MERGING}/winners.py",
        "        left[replacing] = True",
        "        left[replacing] = left[replacing]",
        _ALONE,
    ),
    Breakage(
        "the later rows of a key are lost",
        f"{_MERGING}/passes.py",
        "            yield from self._base_rows(decided.later)\n",
        "            yield from self._base_rows(decided.later & ~decided.later)\n",
        _ALONE,
    ),
    Breakage(
        "the later rows of a key come before its first one",
        f"{_MERGING}/passes.py",
        "            gone = gone | decided.later\n",
        "            decided.later = None\n",
        ("tests/property/test_repeated_keys.py::test_rows_of_a_key_stay_in_their_order",),
    ),
    Breakage(
        "all rows of a key are filled from its first one",
        f"{_MERGING}/partial.py",
        "        nth[by_key] += turns\n",
        "",
        _ALONE,
    ),
    Breakage(
        "the rows of a key are counted anew in each part of a base file",
        f"{_MERGING}/partial.py",
        "        self._seen += np.bincount(",
        "        self._seen = 0 * np.bincount(",
        _ALONE,
    ),
    Breakage(
        "positions in another base file are believed",
        "hudi_assets/engine/table/slices/streams.py",
        "all(stored.positions_in == base for",
        "all(stored.positions_in for",
        ("tests/unit/test_slice_streams.py::test_positions_count_in_their_base_file_alone",),
    ),
    Breakage(
        "some blocks without positions do not matter",
        "hudi_assets/engine/table/slices/streams.py",
        "all(stored.positions_in == base for",
        "any(stored.positions_in == base for",
        ("tests/unit/test_slice_streams.py::test_positions_count_in_their_base_file_alone",),
    ),
)
