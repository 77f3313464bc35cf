"""The benchmark's arithmetic: ratios, spread, goals, the JSON, and the page it is put into."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks import further, report
from benchmarks.measuring import Contender, WrongAnswer, check_same, copy_of_table, in_turn
from benchmarks.report import GOALS, Goal, make_row


def test_against_a_peer_the_ratio_is_the_peers_time_over_ours() -> None:
    row = make_row("upsert_vs_hudi", "w", [1.0, 2.0, 4.0], {"Hudi": [4.0, 4.0, 4.0]})
    assert (row.ours_s, row.peer_s, row.runs) == (2.0, 4.0, 3)
    assert row.ratio == 2.0
    assert row.spread == (1.0, 4.0)


def test_against_a_limit_the_ratio_is_our_time_over_the_limits() -> None:
    row = make_row("read_optimized_limit", "w", [1.0, 3.0, 2.0], {"bare": [1.0, 2.0, 1.0]})
    assert row.ratio == 1.5
    assert row.spread == (1.0, 2.0)


def test_the_ratio_is_the_median_of_the_runs_ratios_not_that_of_the_medians() -> None:
    row = make_row("upsert_vs_hudi", "w", [1.0, 2.0, 10.0], {"Hudi": [30.0, 2.0, 20.0]})
    assert row.ratio == 2.0  # of 30, 1 and 2; the medians' is 10


def test_the_peer_with_the_least_median_is_the_one_that_counts() -> None:
    peers = {"0.15.0": [1.0, 9.0, 9.0], "1.2.0": [8.0, 8.0, 8.0], "hudi-rs": [20.0, 20.0, 20.0]}
    row = make_row("snapshot_avro_vs_best", "w", [1.0, 1.0, 1.0], peers)
    assert (row.against, row.peer_s) == ("1.2.0", 8.0)


@pytest.mark.parametrize(
    ("ours", "peers"),
    [([1.0], {"Hudi": [1.0, 2.0]}), ([], {"Hudi": []}), ([1.0], {}), ([1.0, 1.0], {"a": [1.0, 1.0], "b": [1.0]})],
)
def test_runs_that_do_not_match_are_refused(ours: list[float], peers: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError):
        make_row("upsert_vs_hudi", "w", ours, peers)


def test_a_goal_is_a_least_ratio_and_a_limits_a_greatest() -> None:
    at_least, at_most = Goal("x_vs_hudi", 3), Goal("x_limit", 1.05)
    assert [at_least.met(r) for r in (2.99, 3.0, 3.1)] == [False, True, True]
    assert [at_most.met(r) for r in (1.04, 1.05, 1.06)] == [True, True, False]
    assert (str(at_least), str(at_most)) == ("≥ 3", "≤ 1.05")


def test_every_row_has_its_goal() -> None:
    assert {goal.name: goal.ratio for goal in GOALS} == {
        "compact_avro_vs_hudi": 4,
        "compact_parquet_vs_hudi": 6,
        "compact_parquet_limit": 1.6,
        "upsert_vs_hudi": 2.5,
        "load_vs_hudi": 3,
        "snapshot_avro_vs_best": 1.7,
        "snapshot_parquet_vs_best": 2.5,
        "read_optimized_limit": 1.05,
        "incremental_vs_hudi": 3,
        "plan_100k_limit": 2,
    }


def test_the_json_has_the_promised_fields_and_is_read_back() -> None:
    row = make_row("load_vs_hudi", "2 rows", [1.0, 1.0, 1.0], {"Hudi": [3.0, 4.0, 5.0]})
    text = report.to_json([row], machine="2 cores")
    assert json.loads(text)["rows"] == [
        {
            "name": "load_vs_hudi",
            "work": "2 rows",
            "against": "Hudi",
            "ours_s": 1.0,
            "peer_s": 4.0,
            "ratio": 4.0,
            "spread": [3.0, 5.0],
            "runs": 3,
        }
    ]
    assert report.from_json(text) == ([row], {"machine": "2 cores"})


def test_the_page_says_which_goals_are_met(tmp_path: Path) -> None:
    rows = [
        make_row("load_vs_hudi", "2 rows", [1.0], {"Hudi": [4.0]}),
        make_row("upsert_vs_hudi", "2 rows", [1.0], {"Hudi": [2.0]}),
        make_row("plan_100k_limit", "files", [1.0], {"listing": [1.0]}),
    ]
    result, page = tmp_path / "bench.json", tmp_path / "page.md"
    result.write_text(report.to_json(rows, command="bench --work trips --rows 2"))
    page.write_text(f"# Speed\n{report.BEGIN}\nold\n{report.END}\nmore\n")
    command = [sys.executable, "-m", "benchmarks.report", "--json", str(result), "--write", str(page)]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(report.__file__).parents[1])
    text = page.read_text()
    assert text.startswith(f"# Speed\n{report.BEGIN}\n- command: `bench --work trips --rows 2`\n")
    assert text.endswith(f"{report.END}\nmore\n")
    assert "old" not in text
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert lines == [
        "| `load_vs_hudi` | Hudi | 1.00 s | 4.00 s | 4.00 | 4.00 to 4.00 | 1 | ≥ 3 | yes |",
        "| `upsert_vs_hudi` | Hudi | 1.00 s | 2.00 s | 2.00 | 2.00 to 2.00 | 1 | ≥ 2.5 | **no** |",
        "| `plan_100k_limit` | listing | 1.00 s | 1.00 s | 1.00 | 1.00 to 1.00 | 1 | ≤ 2 | yes |",
    ]


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError):
        report.put_into("# Speed\n", "text")


def test_contenders_take_turns_and_the_first_run_does_not_count() -> None:
    done: list[tuple[str, int]] = []

    def work(name: str, prepared: int) -> tuple[int, float]:
        done.append((f"work {name}", prepared))
        return 7, 0.1 + 0.2 if name == "a" else 0.3

    def contender(name: str) -> Contender:
        return Contender(
            name,
            partial(work, name),
            lambda run: run * 10,
            lambda prepared, run: done.append((f"finish {name}", run)),
        )

    times = in_turn("test", [contender("a"), contender("b")], runs=2)
    turn = ["work a", "finish a", "work b", "finish b"]
    assert [what for what, _ in done] == turn * 3
    assert [number for _, number in done] == [0, 0, 0, 0, 10, 1, 10, 1, 20, 2, 20, 2]
    assert {name: len(seconds) for name, seconds in times.of.items()} == {"a": 2, "b": 2}


def test_different_answers_are_no_benchmark() -> None:
    check_same("test", {"a": (1, 2.0, "x"), "b": None, "c": (1, 2.0000000000001, "x")})
    for other in ((2, 2.0, "x"), (1, 2.1, "x"), (1, 2.0, "y"), (1, 2.0)):
        with pytest.raises(WrongAnswer, match="a says"):
            check_same("test", {"a": (1, 2.0, "x"), "b": other})


def test_the_copy_of_a_table_shares_data_files_only(tmp_path: Path) -> None:
    source = tmp_path / "table"
    for name in ("f.parquet", "p=1/.f.log.1", ".hoodie/1.commit", ".hoodie/timeline/2.commit"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    copy = copy_of_table(source, tmp_path / "copy")
    shared = {str(f.relative_to(copy)): f.stat().st_nlink == 2 for f in copy.rglob("*") if f.is_file()}
    assert shared == {
        "f.parquet": True,
        "p=1/.f.log.1": True,
        ".hoodie/1.commit": False,
        ".hoodie/timeline/2.commit": False,
    }
    assert (copy / ".hoodie/timeline/2.commit").read_text() == ".hoodie/timeline/2.commit"


def test_a_result_takes_the_place_of_its_works_last_one() -> None:
    page = f"before\n{report.BEGIN}\n{report.END}\nafter\n"
    flights, old, new = (
        f"- command: `bench --work {work} --x`\n- when: `{number}`\n"
        for number, work in enumerate(("flights", "trips", "trips"))
    )
    page = report.with_results(report.with_results(page, [flights]), [old])
    assert page == f"before\n{report.BEGIN}\n{old}\n{flights}{report.END}\nafter\n"
    assert report.with_results(page, [new]) == page.replace(old, new)


def test_a_further_measurement_takes_the_place_of_its_last_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{further.BEGIN}\n{further.END}\nafter\n")
    first, second, gone = order = ("python a.py", "python b.py --c d", "python e.py")
    for command, printed in ((gone, "old\n"), (second, "two\n\nlines\n"), (first, "one\n"), (second, "again\n")):
        further.write_into(page, command, printed, order if printed == "old\n" else order[:2])
    shown = "```\n$ python a.py\none\n```\n\n```\n$ python b.py --c d\nagain\n```\n"
    assert page.read_text() == f"before\n{further.BEGIN}\n{shown}{further.END}\nafter\n"
