"""The independent check of the flights table agrees with the stream, and finds what is wrong with a view."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from hudi_assets.demo.flights import KEY_FIELDS, FlightStream

ORACLE = Path(__file__).parents[1] / "oracle" / "flights_oracle.py"
STREAM = FlightStream(4)
CLOCK = STREAM.batches[20].end_ms
FRESHNESS = CLOCK - 2 * 3_600_000


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flights_oracle", ORACLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


oracle = _load()


def delivered() -> pl.DataFrame:
    frame = pl.from_arrow(STREAM.delivered(CLOCK))
    assert isinstance(frame, pl.DataFrame)
    return frame.drop("delivered_at")


@pytest.fixture(scope="module")
def view() -> pl.DataFrame:
    """The right answer: each flight's newest update that is not newer than the freshness."""
    promised = delivered().filter(pl.col("event_time").dt.epoch("ms") <= FRESHNESS)
    return promised.sort("event_time").unique(KEY_FIELDS, keep="last", maintain_order=True)


def kinds(folder: Path, rows: pl.DataFrame, freshness: int | None = FRESHNESS) -> list[tuple[str, int]]:
    half = rows.height // 2
    rows[:half].write_parquet(folder / "a.parquet")
    rows[half:].write_parquet(folder / "b.parquet")
    files = [str(folder / "a.parquet"), str(folder / "b.parquet")]
    return [(found.kind, found.flight) for found in oracle.violations(files, freshness, CLOCK)]


@pytest.mark.slow
def test_shares_no_code_and_derives_the_same_stream() -> None:
    text = ORACLE.read_text()
    assert "import hudi_assets" not in text
    assert "from hudi_assets" not in text
    whole = FlightStream(368).delivered(2**60)
    with oracle.stream().cursor() as db:
        db.register("theirs", whole)
        columns = ", ".join(name for name in whole.schema.names if name != "delivered_at")
        ours = f"(SELECT {columns}, epoch_ms(delivered_at) AS delivered_ms FROM theirs)"
        assert db.execute("SELECT count(*) FROM updates").fetchone() == (whole.num_rows,)
        assert db.execute(f"{ours} EXCEPT ALL (FROM updates) LIMIT 1").fetchall() == []


@pytest.mark.slow
def test_right_view(tmp_path: Path, view: pl.DataFrame) -> None:
    assert kinds(tmp_path, view) == []
    outcome = oracle.check([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")], FRESHNESS, CLOCK)
    assert outcome.promised == outcome.rows == view.height > 1000


def test_newer_than_promised_is_right(tmp_path: Path) -> None:
    newest = delivered().sort("event_time").unique(KEY_FIELDS, keep="last")
    assert kinds(tmp_path, newest) == []


def test_hudis_own_columns_do_not_matter(tmp_path: Path, view: pl.DataFrame) -> None:
    naive = pl.col("event_time").dt.replace_time_zone(None)
    assert (
        kinds(
            tmp_path,
            view.with_columns(naive, _hoodie_record_key=pl.lit("x"), flight=pl.col("flight").cast(pl.Int64)),
        )
        == []
    )


def test_dropped_row(tmp_path: Path, view: pl.DataFrame) -> None:
    gone = view[700]
    assert kinds(tmp_path, pl.concat([view[:700], view[701:]])) == [("missing", gone["flight"][0])]


def test_stale_row(tmp_path: Path, view: pl.DataFrame) -> None:
    key = view.filter(status="arrived").select(KEY_FIELDS)[0]
    older = delivered().join(key, on=KEY_FIELDS).filter(status="departed").select(view.columns)
    assert older.height == 1
    wrong = pl.concat([view.join(key, on=KEY_FIELDS, how="anti"), older])
    assert kinds(tmp_path, wrong) == [("stale", key["flight"][0])]


@pytest.mark.parametrize(
    "change",
    [
        pl.col("event_time") + timedelta(milliseconds=1),
        pl.col("distance") + 1,
        pl.lit(None, pl.String).alias("tailnum"),
        pl.col("arr_time") + timedelta(minutes=1),
        pl.lit("departed").alias("status"),
    ],
    ids=["event_time", "distance", "tailnum", "arr_time", "status"],
)
def test_invented_value(tmp_path: Path, view: pl.DataFrame, change: pl.Expr) -> None:
    row = view.filter(status="arrived")[5]
    wrong = pl.concat([view.join(row, on=KEY_FIELDS, how="anti"), row.with_columns(change)])
    assert kinds(tmp_path, wrong) == [("invented", row["flight"][0])]


def test_invented_flight(tmp_path: Path, view: pl.DataFrame) -> None:
    ghost = view[3].with_columns(flight=pl.lit(9999, pl.Int32))
    assert kinds(tmp_path, pl.concat([view, ghost])) == [("invented", 9999)]


def test_update_not_yet_delivered(tmp_path: Path, view: pl.DataFrame) -> None:
    frame = pl.from_arrow(STREAM.delivered(STREAM.end_ms))
    assert isinstance(frame, pl.DataFrame)
    early = frame.filter(pl.col("delivered_at").dt.epoch("ms") >= CLOCK, status="scheduled").select(view.columns)
    assert kinds(tmp_path, pl.concat([view, early[:1]])) == [("invented", early["flight"][0])]


def test_duplicate_row(tmp_path: Path, view: pl.DataFrame) -> None:
    assert kinds(tmp_path, pl.concat([view, view[:1]])) == [("duplicate", view["flight"][0])]


def test_null_event_time_is_not_let_pass(tmp_path: Path, view: pl.DataFrame) -> None:
    row = view[:1].with_columns(event_time=pl.lit(None, view.schema["event_time"]))
    assert {kind for kind, _ in kinds(tmp_path, pl.concat([view[1:], row]))} == {"stale", "invented"}


def test_no_freshness_promises_nothing(tmp_path: Path, view: pl.DataFrame) -> None:
    assert kinds(tmp_path, view[:10], freshness=None) == []
    assert oracle.check([], None, CLOCK) == (0, 0, [])


def test_no_files_but_a_freshness(view: pl.DataFrame) -> None:
    assert {v.kind for v in oracle.violations([], FRESHNESS, CLOCK)} == {"missing"}
    assert len(oracle.violations([], FRESHNESS, CLOCK)) == view.height


@pytest.mark.slow
def test_as_a_script(tmp_path: Path, view: pl.DataFrame) -> None:
    view.write_parquet(tmp_path / "right.parquet")
    view[1:].write_parquet(tmp_path / "wrong.parquet")
    lines = [
        json.dumps(
            {
                "instant": name,
                "files": [str(tmp_path / f"{name}.parquet")],
                "freshness_ms": FRESHNESS,
                "delivered_until_ms": CLOCK,
            }
        )
        for name in ("right", "wrong")
    ]

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(ORACLE)], input=text, capture_output=True, text=True)

    good, bad, broken = run(lines[0]), run("\n".join(lines)), run('{"files": []}')
    assert (good.returncode, bad.returncode, broken.returncode) == (0, 1, 2)
    right, wrong = (json.loads(line) for line in bad.stdout.splitlines())
    assert (right["instant"], right["promised"], right["violations"]) == ("right", view.height, 0)
    assert (wrong["violations"], wrong["shown"][0]["kind"]) == (1, "missing")
    assert "line 1" in broken.stderr
