"""What a tick asks Dagster of many tables at once is what it would ask of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
)
from sqlalchemy import event
from sqlalchemy.engine import Engine

from hudi_assets.catalog.follow import Followed
from hudi_assets.catalog.hive import Refused
from hudi_assets.catalog.places import Place
from hudi_assets.catalog.publishing import Names
from hudi_assets.dagster import known as knowing
from hudi_assets.dagster import round as rounds
from hudi_assets.dagster.checks import look_checks
from hudi_assets.dagster.followed import report_publication
from hudi_assets.dagster.ingestion import INGESTION_TAG
from hudi_assets.dagster.known import Known
from hudi_assets.dagster.looks import evaluations
from hudi_assets.dagster.told import PROMISED, latest_metadata
from hudi_assets.engine import EnvironmentProblem, Freshness, HudiTable
from tests.catalog.in_memory import Memory, memory
from tests.dagster.test_many_tables import Ticks, home

__all__ = ["home", "memory"]

LATE: Any = SimpleNamespace(freshness=Freshness(1000, None, None, 5, None, None, 9), now_ms=9000)
PUBLISHED = Followed(True, "late data", {"hudi_assets.freshness_ms": "1000"})


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    """With SQLite in a folder, as statements are counted."""
    with DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


@contextmanager
def statements() -> Iterator[list[str]]:
    found: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def a_run(
    ticks: Ticks, tags: dict[str, str], *assets: str, status: DagsterRunStatus = DagsterRunStatus.STARTED
) -> None:
    keys = frozenset(AssetKey.from_user_string(name) for name in assets)
    job = ticks.definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection=set(keys))
    ticks.instance.create_run_for_job(job, tags=tags, status=status, asset_selection=keys)


def test_answers_are_the_same_alone_and_together(home: Path, instance: DagsterInstance) -> None:
    ticks = Ticks(home, instance)
    ticks.tick()
    a_run(ticks, {"hudi_assets/table": "t0"}, "t0/ro_snapshot", "t0/freshness", status=DagsterRunStatus.SUCCESS)
    a_run(ticks, {"hudi_assets/table": "t1"}, "t1/mor_table", "t1/compaction_plan")
    a_run(ticks, {}, "t2/freshness")
    a_run(ticks, {INGESTION_TAG: "t3"}, "t3/compaction_plan")
    instance.report_runless_asset_event(AssetMaterialization(["t3", "freshness"], metadata={"freshness": "none"}))

    together = Known(instance)
    together.ask(ticks.tables)
    for table in ticks.tables:
        alone = Known(instance)
        assert together.knows(table, 60)
        assert not alone.knows(table, 60)
        assert together.unfinished_run(table) == alone.unfinished_run(table)
        key = table.key("freshness")
        assert together.get_latest_materialization_event(key) == alone.get_latest_materialization_event(key)
        for check in look_checks(table):
            assert together.check_record(check) == alone.check_record(check)
    found = [bool(together.unfinished_run(table)) for table in ticks.tables]
    assert found == [False, True, True, False]


def test_a_backlog_that_is_too_long_is_asked_for_by_table(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowing, "_MOST_RUNS_OF_ALL", 2)
    ticks = Ticks(home, instance)
    for name in ("t1", "t2", "t1"):
        a_run(ticks, {"hudi_assets/table": name}, f"{name}/compaction_plan", status=DagsterRunStatus.STARTING)
    known = Known(instance)
    known.ask(ticks.tables)
    assert [bool(known.unfinished_run(table)) for table in ticks.tables] == [False, True, True, False]


def test_what_was_reported_is_asked_for_anew(home: Path, instance: DagsterInstance) -> None:
    ticks = Ticks(home, instance)
    table = ticks.tables[0]
    known = Known(instance)
    known.ask(ticks.tables)
    key, check = table.key("freshness"), look_checks(table)[0]
    assert known.get_latest_materialization_event(key) is None
    assert known.check_record(check) is None
    known.report(AssetMaterialization(key))
    known.report(AssetCheckEvaluation(asset_key=check.asset_key, check_name=check.name, passed=True))
    assert known.get_latest_materialization_event(key) is not None
    assert known.check_record(check) is not None


def test_statements_of_a_tick_are_not_those_of_its_tables(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is due: some for all of them, and none for each."""
    monkeypatch.setattr(rounds, "_KNOWN_SECONDS", 60)  # on a busy machine four looks take more than 2 s
    ticks = Ticks(home, instance, defaults={"external": True, "data_latency": "5h", "freshness_slo": "9h"})
    ticks.tick()
    known = Known(instance)
    with statements() as asked:
        known.ask(ticks.tables)
    together = len(asked)
    with statements() as asked:
        ticks.tick()
    assert len(asked) == together
    assert together <= 10


def test_tables_that_cannot_be_asked_for_together_are_asked_for_alone(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("an event that nobody can read")

    monkeypatch.setattr(Known, "ask", broken)
    found: Any = Ticks(home, instance).tick()
    assert len(found.run_requests) == 4


# -- catalogs ------------------------------------------------------------------------------------


def test_catalogs_are_asked_once_for_all_tables(
    home: Path, instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUDI_ASSETS_METASTORE", "thrift://one:9083")
    for name in ("t0", "t2"):
        place = Place("thrift://one:9083", Names("default", f"{name}_ro", f"{name}_rt"))
        place.publish(HudiTable.open(str(home / name)))
    ticks = Ticks(home, instance)
    ticks.tick()  # which publishes by the settings of the block
    assert memory.said("t2_ro")["hudi_assets.path"] == str(home / "t2")
    asked = memory.questions
    ticks.tick()
    assert memory.questions == asked + 1
    memory.standing.clear()  # somebody dropped them: the next look sees it
    known = Known(instance)
    known.ask_catalogs([place])
    assert known.found(place) is None


def test_a_metastore_that_does_not_answer_is_waited_for_once(
    instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def silent(places: Any) -> None:
        asked.append(places)
        raise EnvironmentProblem("The Hive metastore does not answer.")

    monkeypatch.setattr(knowing, "found_together", silent)
    places = [Place("thrift://one:9083", Names("default", f"t{number}_ro", f"t{number}_rt")) for number in range(4)]
    known = Known(instance)
    known.ask_catalogs(places[:2])
    known.ask_catalogs(places[2:])
    assert len(asked) == 1
    for place in places:
        with pytest.raises(EnvironmentProblem, match="does not answer"):
            known.found(place)
    assert memory.questions == 0


def test_a_table_that_a_catalog_refuses_holds_no_other_up(
    instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS Glue may deny one table of many. What nobody is let in for, it says of all (`glue._NotTaken`)."""

    def denied(places: Any) -> None:
        raise Refused("AWS denies glue:GetTable.")

    monkeypatch.setattr(knowing, "found_together", denied)
    known = Known(instance)
    places = [Place("thrift://one:9083", Names("default", f"t{number}_ro", f"t{number}_rt")) for number in range(2)]
    known.ask_catalogs(places)
    assert [known.found(place) for place in places] == [None, None]
    assert memory.questions == 2


def test_where_the_tick_before_waited_too_long_no_catalog_is_asked(instance: DagsterInstance, memory: Memory) -> None:
    known = Known(instance)
    known.ask_no_catalog("It is down.")
    with pytest.raises(EnvironmentProblem, match="It is down"):
        known.found(Place("thrift://one:9083", Names("default", "t0_ro", "t0_rt")))
    assert memory.questions == 0


def test_what_a_run_told_readers_during_a_look_is_not_forgotten(home: Path, instance: DagsterInstance) -> None:
    """The tick asked before the run ended; then data came late, and the look publishes less."""
    (table, *_) = tables = Ticks(home, instance).tables
    key = table.key("freshness")
    at = {10: "2026-11-22T10:00:00Z", 11: "2026-11-22T11:00:00Z"}
    instance.report_runless_asset_event(AssetMaterialization(key, metadata={PROMISED: at[10]}))
    known = Known(instance)
    known.ask(tables)
    instance.report_runless_asset_event(AssetMaterialization(key, metadata={PROMISED: at[11]}))
    report_publication(known, table, LATE, PUBLISHED)
    assert latest_metadata(instance, key)["freshness"] == "1970-01-01T00:00:01Z"
    assert latest_metadata(instance, key)[PROMISED] == at[11]


def test_what_was_published_while_dagster_could_not_be_told_is_told_later(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look finds nothing different: nobody else would ever tell it."""
    ticks = Ticks(home, instance)
    (table, *_) = ticks.tables

    def locked(*_: Any) -> None:
        raise OSError("database is locked")

    with monkeypatch.context() as at_first:
        at_first.setattr(Known, "report", locked)
        with pytest.raises(OSError, match="locked"):
            report_publication(Known(instance), table, LATE, PUBLISHED)
    assert latest_metadata(instance, table.key("freshness")) == {}
    for _ in range(2):
        ticks.tick()
        assert latest_metadata(instance, table.key("freshness"))[PROMISED] == "1970-01-01T00:00:01Z"
    assert len(instance.fetch_materializations(table.key("freshness"), limit=9).records) == 1


def test_a_backlog_of_others_is_not_read_in_each_tick(home: Path, instance: DagsterInstance) -> None:
    ticks = Ticks(home, instance)
    with DagsterInstance.ephemeral() as full:
        for _ in range(600):
            full.add_run(DagsterRun("others", status=DagsterRunStatus.STARTING))
        known = Known(full)
        with statements() as asked:
            known.ask(ticks.tables)
    assert not [one for one in asked if "run_body" in one]


def test_a_catalog_that_cannot_be_asked_keeps_what_dagster_said(
    home: Path, instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk of the metastore's home directory is full."""
    asked: list[int] = []
    ask = Known.ask

    def counted(known: Known, tables: Any) -> None:
        asked.append(len(tables))
        ask(known, tables)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setenv("HUDI_ASSETS_METASTORE", "thrift://one:9083")
    monkeypatch.setattr(Known, "ask", counted)
    monkeypatch.setattr(knowing, "found_together", full)
    found: Any = Ticks(home, instance).tick()
    assert len(found.run_requests) == 4
    assert asked == [4]
    known = Known(instance)
    place = Place("thrift://one:9083", Names("default", "t0_ro", "t0_rt"))
    known.ask_catalogs([place])
    with pytest.raises(EnvironmentProblem, match="no space left"):
        known.found(place)


def test_a_place_that_cannot_be_named_keeps_what_dagster_said(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[Known] = []

    def broken(*_: Any) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(Known, "ask_catalogs", broken)
    monkeypatch.setattr(Known, "forget", lambda known: forgotten.append(known))
    Ticks(home, instance).tick()
    assert len(forgotten) == 1  # as it was asked


def test_a_problem_of_a_metastore_holds_no_look(
    instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: Any) -> None:
        raise EnvironmentProblem("The Hive metastore does not answer.")

    monkeypatch.setattr(knowing, "found_together", silent)
    place = Place("thrift://one:9083", Names("default", "t0_ro", "t0_rt"))
    known = Known(instance)
    known.ask_catalogs([place])
    found: list[BaseException] = []
    for _ in range(3):
        with pytest.raises(EnvironmentProblem) as raised:
            known.found(place)
        found.append(raised.value)
    assert len({id(one) for one in found}) == 3
    assert [one.__traceback__ for one in known._silent.values()] == [None]


def test_a_slow_catalog_makes_what_dagster_said_no_older(
    home: Path, instance: DagsterInstance, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def slowly(places: Any) -> dict[Place, None]:
        now[0] += 4
        return dict.fromkeys(places)

    tables = Ticks(home, instance).tables
    monkeypatch.setattr(knowing, "found_together", slowly)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    known = Known(instance)
    known.ask(tables)
    known.ask_catalogs([Place("thrift://one:9083", Names("default", "t0_ro", "t0_rt"))])
    assert known.knows(tables[0], 2)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_look_that_a_run_overtook_evaluates_no_check(home: Path, instance: DagsterInstance, by_hand: bool) -> None:
    """Of two rows the one with the greater number counts: the run's would be hidden, as it was planned before."""
    ticks = Ticks(home, instance)
    (table, *_) = ticks.tables
    found = {"freshness_within_slo": AssetCheckResult(passed=True)}

    def evaluated(since: datetime) -> bool:
        return bool(evaluations(Known(instance, since), table, found, 0, run_at_work=False))

    tags = {} if by_hand else {"hudi_assets/table": "t0"}
    before = datetime.now(UTC)
    assert evaluated(before)
    a_run(ticks, tags, "t0/freshness")
    (run,) = instance.get_runs()
    assert not evaluated(datetime.now(UTC))  # it is at work
    instance.report_run_failed(run)
    assert not evaluated(before)
    assert evaluated(datetime.now(UTC))  # it ended before the look began


def test_a_run_by_hand_is_known_by_its_pool_alone(home: Path, instance: DagsterInstance) -> None:
    """Dagster itself names the tag by which a run keeps its pools."""
    ticks = Ticks(home, instance)
    (table, *_) = ticks.tables
    a_run(ticks, {}, "t0/freshness")
    (run,) = instance.get_runs()
    assert run.tags == {}
    assert run.tags_for_storage()[f"{knowing._POOL_TAG}{table.pool}"] == "true"
    assert Known(instance).unfinished_run(table) == run.run_id[:8]


def test_the_last_evaluation_is_found_behind_runs_that_died(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them planned the check, and left a record of that."""
    monkeypatch.setattr(knowing, "_RECORDS", 2)
    ticks = Ticks(home, instance)
    (table, *_) = ticks.tables
    (key, *_) = look_checks(table)
    assert Known(instance).last_evaluation(key) is None
    ticks.tick()
    for _ in range(3):
        a_run(ticks, {}, "/".join(key.asset_key.path), status=DagsterRunStatus.FAILURE)
    known = Known(instance)
    record = known.check_record(key)
    assert record is not None
    assert not isinstance(record.evaluation, AssetCheckEvaluation)
    found = known.last_evaluation(key)
    assert found is not None
    assert found.asset_check_key == key
