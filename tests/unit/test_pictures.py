"""Pictures and the page around them: names of any kind, and one section's trouble is no other's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_assets.engine import CorruptTable, HudiTable, LogBar, Plan
from hudi_assets.reporting.page import Page, _section
from hudi_assets.reporting.pictures import event_time_figure, event_time_picture, svg
from tests.tables.local_session import LocalSession


def test_a_name_with_dollar_signs_is_no_formula() -> None:
    bars = [LogBar("f", f"fee=${n}_$", n, n + 9, 1, False) for n in (5, 7)]
    assert event_time_picture(bars, 8, "of $1_$").startswith(b"\x89PNG")
    drawn = svg(event_time_figure(bars, 8, "of $1_$"))
    assert "fee=$5_$" in drawn
    assert "of $1_$" in drawn


def test_what_cannot_be_drawn_costs_its_own_section() -> None:
    figure = event_time_figure([LogBar("f", "p", 1, 10, 1, False)], 5, "")
    figure.axes[0].set_xlabel("$_$")
    assert "This cannot be told" in _section("Title", "Words.", lambda: figure)


@pytest.mark.parametrize("reading", ["metrics", "past_freshness", "past_compactions", "lateness", "bills"])
def test_a_reading_that_fails_costs_only_its_sections(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HudiTable.create(str(tmp_path / "t"), schema, record_key=["id"], ordering_field="ts")
    table.upsert(session, session.rows([{"id": "1", "ts": 1}], schema))
    plan = table.plan_compaction(threshold=1000)
    assert isinstance(plan, Plan)
    done = table.execute_compaction(session, plan.instant)

    def damaged(_: HudiTable) -> None:
        raise CorruptTable("An old commit is damaged.")

    monkeypatch.setattr(HudiTable, reading, damaged)
    page = Page(table, None).html()
    assert page.count("<section>") == 8
    assert ("This cannot be told: An old commit is damaged." in page) is (reading != "bills")
    assert page.count("This cannot be told") < 8
    assert (f"<td>{done.instant}</td>" in page) is (reading != "past_compactions")
    if reading != "metrics":
        assert "holds every ingested record up to" in page
