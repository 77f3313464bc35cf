"""Each check's finding function, shown failing: a check that cannot fail promises nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.dagster.checks import find_at_or_below, find_beyond_slo, find_pre_threshold_logs, find_unresolved
from hudi_assets.engine.model import CarryOver, Freshness, LogBar, LogFile
from hudi_assets.engine.storage import open_storage

_H = 3_600_000


def _bar(low: int | None, *, compacted: bool = False) -> LogBar:
    return LogBar(".f_1.log.1_0-0-0", "city=a", low, None if low is None else low + _H, 10, compacted)


def _log(name: str) -> LogFile:
    return LogFile(f"city=a/{name}", "city=a", "f", "1", 1, "0-0-0", 10, f"city=a/{name}")


def _freshness(value: int | None) -> Freshness:
    return Freshness(value, None if value is not None else "log x has no range", None, None, None, None, 0)


@pytest.mark.parametrize(
    ("low", "compacted", "found"),
    [(5 * _H + 1, False, 0), (5 * _H, False, 1), (_H, False, 1), (None, False, 1), (_H, True, 0)],
)
def test_pre_threshold_logs(low: int | None, compacted: bool, found: int) -> None:
    assert len(find_pre_threshold_logs([_bar(low, compacted=compacted)], 5 * _H)) == found


def test_event_times_at_or_below_the_freshness() -> None:
    fine = (_log("fine"), pa.chunked_array([[11, 12], [13]]))
    assert find_at_or_below([fine], 10) == ([], 3)
    equal = (_log("equal"), pa.chunked_array([[10, 12]]))
    unknown = (_log("unknown"), pa.chunked_array([pa.array([None, 12], pa.int64())]))
    found, looked_at = find_at_or_below([fine, equal, unknown], 10)
    assert looked_at == 7
    assert [line.split(":")[0] for line in found] == ["city=a/equal", "city=a/unknown"]


def test_a_log_file_without_records_is_no_finding() -> None:
    assert find_at_or_below([(_log("empty"), pa.chunked_array([], pa.int64()))], 10) == ([], 0)


@pytest.mark.parametrize(("freshness", "found"), [(4 * _H, 0), (4 * _H - 1, 1), (None, 1)])
def test_freshness_beyond_slo(freshness: int | None, found: int) -> None:
    assert len(find_beyond_slo(_freshness(freshness), 10 * _H, 6 * _H)) == found


def test_carried_over_logs_that_do_not_resolve(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.write_bytes(b"#HUDI#" + bytes(20))
    (tmp_path / "good").symlink_to("original")
    (tmp_path / "cleaned").write_bytes(original.read_bytes())
    (tmp_path / "dangling").symlink_to("no such file")
    (tmp_path / "cut").write_bytes(original.read_bytes()[:10])
    (tmp_path / "other").write_bytes(b"PAR1" + bytes(22))
    storage = open_storage(str(tmp_path))
    names = ("good", "dangling", "cut", "other", "missing")
    carried = [CarryOver(name, "original") for name in names] + [CarryOver("cleaned", "gone")]
    found = find_unresolved(storage, carried)
    assert [line.split(":")[0] for line in found] == ["dangling", "cut", "other", "missing"]
