"""Write stats with nothing special in them, told at once: a timeline may hold a million.

What these functions do not know they leave to the slower look at each value by itself (`WriteStat.from_json`), which
accepts or refuses it: so they only have to be sure of what they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from operator import itemgetter
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any, Final

TEXTS: Final = ("path", "partitionPath", "fileId", "prevCommit")
NUMBERS: Final = (
    "fileSizeInBytes",
    "numWrites",
    "numInserts",
    "numUpdateWrites",
    "numDeletes",
    "totalLogFilesCompacted",
    "totalLogRecords",
    "totalLogSizeCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
)
TIMES: Final = ("minEventTime", "maxEventTime")
LOG: Final = ("logVersion", "baseFile", "logFiles")
# HoodieWriteStat's names of `WriteStat`'s fields, in the order of those.
_of_log: Final = itemgetter(*TEXTS, *NUMBERS, *TIMES, *LOG)
_of_base: Final = itemgetter(*TEXTS, *NUMBERS, *TIMES)
_path: Final = itemgetter(0)
_NO_LOG: Final = (None, None, None)
_FIRST, _END = len(TEXTS), len(TEXTS) + len(NUMBERS)
_NONE: Final = type(None)
_KNOWN: Final = frozenset(
    (*(str,) * len(TEXTS), *(int,) * len(NUMBERS), *rest)
    for rest in product((int, _NONE), (int, _NONE), (int, _NONE), (str, _NONE), (list, _NONE))
)
"""The types of the values of a plain stat. A bool, or a value of a class of its own, is none of them."""
_STRINGS: Final = frozenset({str})
_int64s: Final = Struct(f"<{len(NUMBERS)}q").pack
_optional_int64s: Final = Struct("<3q").pack


def plain_stat(stat: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The fields of a `WriteStat`, in order; None for a stat that has to be looked at more closely."""
    try:
        values = _of_log(stat) if "logVersion" in stat else _of_base_alone(stat)
        if tuple(map(type, values)) not in _KNOWN:
            return None
        low, high, version, _, names = values[_END:]
        _int64s(*values[_FIRST:_END])
        _optional_int64s(low or 0, high or 0, version or 0)
        if names and not _STRINGS.issuperset(map(type, names)):
            return None
        return _settled(values)
    except (KeyError, StructError):
        return None


def typed_stats(stats: Sequence[Mapping[str, Any]]) -> Iterable[tuple[Any, ...]]:
    """As `plain_stat`, of a partition's stats whose values have the right types.

    KeyError where one has to be looked at more closely.
    """
    try:
        return _alike(list(map(_of_log, stats)))
    except KeyError:
        return map(_typed_stat, stats)


def _alike(found: list[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Of log files of one partition all are looked at together; KeyError where they have to be told apart."""
    if not found:
        return found
    partition = found[0][1]
    paths = "\n".join(map(_path, found))
    within = f"\n{partition}/" if partition else "\n"
    if (
        any(fields[1] != partition or not (fields[3] and fields[-1]) for fields in found)
        or paths.count("\n") != len(found) - 1
        or f"\n{paths}".count(within) != len(found)
        or ".." in paths
        or "\0" in paths
        or f"\n{paths}".startswith(("\n/", "\n.hoodie"))
        or "\n/" in paths
        or "\n.hoodie" in paths
    ):
        raise KeyError
    return found


def _typed_stat(stat: Mapping[str, Any]) -> tuple[Any, ...]:
    return _settled(_of_log(stat) if "logVersion" in stat else _of_base_alone(stat))


def _settled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Raises KeyError where there is no earlier commit, and where a path may lead out of the table."""
    path, partition, _, prev_commit = values[:_FIRST]
    if not prev_commit or ".." in path or "\0" in path or path.startswith(("/", ".hoodie")):
        raise KeyError
    if partition and not path.startswith(f"{partition}/"):
        raise KeyError
    return (*values[:-1], tuple(values[-1] or ()))


def _of_base_alone(stat: Mapping[str, Any]) -> tuple[Any, ...]:
    if "logFiles" in stat or "baseFile" in stat:
        raise KeyError
    return (*_of_base(stat), *_NO_LOG)
