"""Log files below a base file that does not hold them: their rows are in no view, on versions 8 and 9."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.actions.compaction.hudi_executor import HudiExecutor
from hudi_assets.engine.errors import Conflict
from hudi_assets.engine.model import NothingToDo
from hudi_assets.engine.table.files.hidden import Where, about_to_be_hidden, hidden_files, where_is
from hudi_assets.engine.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_assets.engine.transaction.late_log_files import refuse_stragglers
from tests.tables.local_session import LocalSession
from tests.unit.hidden_rows.steps import execute, found
from tests.unit.test_past_instants import SCHEMA, Clock, Table, moved

# ------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("completion", "bases", "made_of", "said"),
    [
        ("5", [], {}, Where.IN_VIEW),
        ("5", ["3"], {"3": ""}, Where.IN_VIEW),
        ("5", ["5"], {"5": ""}, Where.IN_VIEW),
        ("5", ["7"], {"7": ""}, Where.HIDDEN),
        ("5", ["3", "7"], {"7": "3"}, Where.HIDDEN),
        ("5", ["5", "7"], {"7": "5"}, Where.HIDDEN),
        ("5", ["3", "7"], {"7": "6"}, Where.UNKNOWN),  # the base file of 6 was cleaned
        ("5", ["3", "7"], {"7": None}, Where.UNKNOWN),
        ("5", ["7", "9"], {"7": None, "9": ""}, Where.UNKNOWN),  # the first above it decides
        ("5", ["7", "9"], {"7": "", "9": "7"}, Where.HIDDEN),
    ],
)
def test_where_a_log_file_is(completion: str, bases: list[str], made_of: dict[str, str | None], said: Where) -> None:
    assert where_is(completion, bases, made_of.__getitem__) is said


def test_a_sound_table_hides_nothing(table: Table, three: list[str]) -> None:
    assert found(table) == set()
    table.compact(2_000)
    assert found(table) == set()
    table.put(4, 9_500)
    table.compact(9_500)
    assert found(table) == set()


def test_what_lies_behind_a_compaction_is_found(table: Table, three: list[str], hidden: str) -> None:
    (one,) = hidden_files(table.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (three[2], hidden)
    assert one.path == table.only(f".*_{three[2]}.log.*").name
    assert (one.gone, one.taken_by) == (False, None)
    table.only(f".*_{three[2]}.log.*").unlink()
    assert [one.gone for one in hidden_files(table.open().state())] == [True]


def test_later_compactions_change_nothing(table: Table, three: list[str], hidden: str) -> None:
    table.put(4, 9_500)
    table.compact(9_500)
    assert set(table.rows()) == {1, 2, 4}
    assert found(table) == {three[2]}


def test_files_ages_say_nothing(table: Table, three: list[str], hidden: str) -> None:
    for path in (*table.path.iterdir(), *table.timeline.iterdir()):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    assert found(table) == {three[2]}


def test_without_the_plan_nothing_is_said(table: Table, three: list[str], hidden: str) -> None:
    (table.timeline / f"{hidden}.compaction.requested").unlink()
    assert found(table) == set()


def test_a_log_file_behind_the_first_base_file(table: Table) -> None:
    """An insert reads no log file: what was completed below it, and came into the group, is in no view."""
    frame = table.session.rows([{"id": 1, "ts": 1_000, "v": 0}], SCHEMA)
    first = table.open().bulk_insert(table.session, frame).instant
    assert first is not None
    second = table.put(2, 2_000)
    assert set(table.rows()) == {1, 2}
    assert found(table) == set()
    later = begun_later(table, first, moved(table.open().state().timeline.completions[second], 1))
    assert set(table.rows()) == {1}
    (one,) = hidden_files(table.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (second, later)


def begun_later(table: Table, instant: str, later: str) -> str:
    """A bulk insert as if it had begun at a later instant: its base file and its files on the timeline."""
    state = table.open().state()
    commit = state.commit(next(i for i in state.timeline.instants if i.timestamp == instant))
    stats = tuple(stat._replace(path=stat.path.replace(instant, later)) for stat in commit.stats)
    for path in (*table.path.glob(f"*{instant}*"), *table.timeline.glob(f"{instant}*")):
        path.rename(path.with_name(path.name.replace(instant, later)))
    done = table.only(f".hoodie/timeline/{later}_*")
    done.unlink()
    body = state.layout.encode_commit(replace(commit, stats=stats))
    done.with_name(f"{later}_{moved(later, 5)}.deltacommit").write_bytes(body)
    return later


@pytest.mark.parametrize("after", [False, True])
def test_a_clustering_that_keeps_the_group_took_its_log_files(table: Table, three: list[str], after: bool) -> None:
    """As Hudi's SparkSingleFileSortExecutionStrategy: only a log file that was written on top of it is behind it."""
    table.compact(2_000)
    state = table.open().state()
    (base,) = state.view.base_files
    at = moved(state.timeline.completions[three[2]], 1)
    name = state.layout.base_file_name(base.file_id, "0-0-0", at)
    shutil.copy(table.path / base.path, table.path / name)
    stat = WriteStat(name, "", base.file_id, "null", base.size, num_writes=2)
    done = CommitMetadata("CLUSTER", (stat,))
    storage = state.storage
    storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.replacecommit", state.layout.encode_commit(done))
    if after:
        commit = state.commit(next(i for i in state.timeline.instants if i.timestamp == three[2]))
        stats = tuple(one._replace(prev_commit=at) for one in commit.stats)
        path = table.only(f".hoodie/timeline/{three[2]}_*.deltacommit")
        path.write_bytes(state.layout.encode_commit(replace(commit, stats=stats)))
    assert set(table.rows()) == {1, 2}
    assert found(table) == ({three[2]} if after else set())


@pytest.mark.parametrize("replaced", [{}, {"": ["another-0"]}])
def test_a_log_file_behind_the_clustering_that_made_its_group(table: Table, replaced: dict[str, list[str]]) -> None:
    """One that replaces nothing keeps its groups, and has read what was in them."""
    frame = table.session.rows([{"id": 1, "ts": 1_000, "v": 0}], SCHEMA)
    first = table.open().bulk_insert(table.session, frame).instant
    assert first is not None
    second = table.put(2, 2_000)
    later = begun_later(table, first, moved(table.open().state().timeline.completions[second], 1))
    for path in table.timeline.glob(f"{later}*"):
        path.rename(path.with_name(path.name.replace("deltacommit", "replacecommit")))
    state = table.open().state()
    of_hudi = next(i for i in state.timeline.instants if i.timestamp == second)
    wrote = state.commit(of_hudi)
    stats = tuple(stat._replace(prev_commit=second) for stat in wrote.stats)  # as 1.2.0 writes it
    (table.timeline / of_hudi.file_name).write_bytes(state.layout.encode_commit(replace(wrote, stats=stats)))
    done = next(i for i in state.timeline.instants if i.timestamp == later)
    body = replace(state.commit(done), operation="CLUSTER", replaced=replaced)
    (table.timeline / done.file_name).write_bytes(state.layout.encode_commit(body))
    assert set(table.rows()) == {1}
    assert found(table) == ({second} if replaced else set())


@pytest.mark.parametrize("completed", [False, True])
def test_a_write_that_was_under_way_when_a_plan_was_made_is_not_hidden(
    table: Table, three: list[str], completed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun below the plan's instant and completed above it: it belongs to the slice that the compaction opens."""
    plan = table.plan(2_000)
    above = moved(three[2], 1)
    assert above < table.open().state().timeline.completions[three[2]]
    path = table.timeline / f"{plan.instant}.compaction.requested"
    path.rename(path.with_name(f"{above}.compaction.requested"))
    if not completed:
        table.only(f".hoodie/timeline/{three[2]}_*.deltacommit").unlink()
    state = table.open().state()
    assert about_to_be_hidden(state, state.executable_plans[0]) == ()
    execute(table, above, monkeypatch)
    assert found(table) == set()
    assert set(table.rows()) == ({1, 2, 3} if completed else {1, 2})
    if completed:
        table.compact(9_000)
        assert table.in_base_files() == {1, 2, 3}
        assert table.open().validate() == ()


def test_a_log_file_lies_behind_the_slice_after_that_of_its_completion(
    table: Table, three: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Begun below a compaction and completed above it: the next one, planned without seeing it, hides it."""
    plan = table.plan(2_000)
    above = moved(three[2], 1)
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    execute(table, above, monkeypatch)
    third = [*table.timeline.glob(f"{three[2]}*"), table.only(f".*_{three[2]}.log.*")]
    unseen = [(path, path.rename(tmp_path / path.name)) for path in third]
    table.put(4, 9_500)
    behind = table.plan(9_500).instant
    for path, away in unseen:
        away.rename(path)
    execute(table, behind, monkeypatch)
    assert set(table.rows()) == {1, 2, 4}
    (one,) = hidden_files(table.open().state())
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (three[2], behind)


def test_a_plan_that_is_archived_says_nothing(table: Table, three: list[str]) -> None:
    """A savepoint keeps a delta commit on the active timeline when the compaction that merged it is archived."""
    first = table.compact(2_000).instant
    table.put(4, 9_500)
    table.compact(9_500)
    for path in (*table.timeline.glob(f"{first}*"), *table.path.glob(f"*_{first}.parquet")):
        path.unlink()
    assert found(table) == set()
    assert set(table.rows()) == {1, 2, 3, 4}


def test_a_restore_takes_the_hiding_compaction_back(
    table: Table, three: list[str], above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.open().unschedule(above)
    table.open().savepoint()
    plan = table.plan(2_000)
    (table.timeline / f"{plan.instant}.compaction.requested").rename(table.timeline / f"{above}.compaction.requested")
    execute(table, above, monkeypatch)
    assert found(table) == {three[2]}
    table.open().restore(three[2])
    assert found(table) == set()
    assert set(table.rows()) == {1, 2, 3}


def test_version_6_hides_nothing(session: LocalSession, tmp_path: Path) -> None:
    """There a log file's name has its slice: what is written after a plan lies on top of it."""
    path = tmp_path / "six"
    HudiTable.create(str(path), SCHEMA, record_key=["id"], ordering_field="ts", buckets=1, table_version=6)
    table = Table(path, session, Clock())
    for key, ts in ((1, 1_000), (2, 9_000)):
        table.put(key, ts)
    plan = table.plan(1_000)
    table.put(3, 500)
    state = table.open().state()
    assert [about_to_be_hidden(state, one) for one in state.executable_plans] == [()]
    table.execute(plan)
    assert found(table) == set()
    assert set(table.rows()) == {1, 2, 3}


def test_the_zone_says_nothing(table: Table, three: list[str], hidden: str) -> None:
    """Instants compare as text, also where nobody knows the writers' zone."""
    properties = table.path / ".hoodie/hoodie.properties"
    utc = properties.read_text()
    assert "hoodie.table.timeline.timezone=UTC" in utc
    properties.write_text(utc.replace("hoodie.table.timeline.timezone=UTC", "hoodie.table.timeline.timezone=LOCAL"))
    for settings in ({}, {"hudi_assets.timeline.zone": "America/Los_Angeles"}):
        assert {one.delta_commit.timestamp for one in hidden_files(table.open(**settings).state())} == {three[2]}


def test_a_file_that_is_in_the_view_is_never_called_hidden(table: Table) -> None:
    """Completed below its own request, it opens a slice above the base file."""
    frame = table.session.rows([{"id": 1, "ts": 1_000, "v": 0}], SCHEMA)
    first = table.open().bulk_insert(table.session, frame).instant
    second = table.put(2, 2_000)
    done = table.only(f".hoodie/timeline/{second}_*.deltacommit")
    done.rename(done.with_name(f"{second}_{moved(first or '', -1)}.deltacommit"))
    assert 2 in table.rows()
    assert found(table) == set()


def test_overwritten_rows_are_not_missed(table: Table, three: list[str], hidden: str) -> None:
    """An insert overwrite meant the group's rows to go; a clustering did not."""
    state = table.open().state()
    ((partition, file_id),) = state.view.groups
    at = moved(state.timeline.last or "", 1_000)
    storage = state.storage
    for operation, said in (("CLUSTER", {three[2]}), ("INSERT_OVERWRITE", set())):
        body = CommitMetadata(operation, (), replaced={partition: [file_id]})
        storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.replacecommit", state.layout.encode_commit(body))
        assert found(table) == said


def test_an_unreadable_plan_says_nothing_of_its_groups_alone(table: Table, three: list[str], hidden: str) -> None:
    table.put(4, 9_500)
    state = table.open().state()
    at = moved(state.timeline.last or "", 1_000)
    stat = WriteStat(f"other-0_0-0-0_{at}.parquet", "", "other-0", "null", 0)
    done = CommitMetadata("COMPACT", (stat,))
    state.storage.replace(f".hoodie/timeline/{at}_{moved(at, 1)}.commit", state.layout.encode_commit(done))
    (table.timeline / f"{at}.compaction.requested").write_bytes(b"")
    assert found(table) == {three[2]}
    (table.timeline / f"{hidden}.compaction.requested").write_bytes(b"")
    (table.path / ".hoodie/.aux/hudi_assets/memory.json").unlink()
    assert found(table) == set()


# ------------------------------------------------------------------------------- prevention


def test_a_plan_that_would_hide_rows_is_told(table: Table, three: list[str], above: str) -> None:
    state = table.open().state()
    (plan,) = state.executable_plans
    (one,) = about_to_be_hidden(state, plan)
    assert (one.delta_commit.timestamp, one.behind.timestamp) == (three[2], above)
    assert hidden_files(state) == ()


def test_neither_executor_hides_rows(
    table: Table, three: list[str], above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Conflict, match=f"{three[2]}.* is not in the plan"):
        table.open().execute_compaction(table.session, above)
    for name in ("check_session", "check_jvm_zone", "spark_of"):
        monkeypatch.setattr(f"hudi_assets.engine.actions.compaction.hudi_executor.{name}", lambda *_: None)
    monkeypatch.setattr(HudiExecutor, "_run", lambda *_: pytest.fail("Hudi was asked to execute it"))
    with pytest.raises(Conflict, match=f"{three[2]}.* is not in the plan"):
        HudiExecutor(table.open()._table).execute(table.session, above)
    table.open().unschedule(above)
    assert set(table.rows()) == {1, 2, 3}


def test_nor_is_another_engines_plan_executed_that_would(
    table: Table, three: list[str], above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's plans stand at the time of planning: the rule for ours, that nothing is below, does not hold for them."""
    monkeypatch.setattr("hudi_assets.engine.model.Plan.is_ours", False)
    state = table.open().state()
    (plan,) = state.executable_plans
    with pytest.raises(Conflict, match="executing it would hide its rows") as told:
        refuse_stragglers(state, plan)
    assert f"Unschedule {above}" in str(told.value)


def test_a_clean_keeps_the_last_copy(table: Table, three: list[str], hidden: str) -> None:
    lost = table.only(f".*_{three[2]}.log.*")
    for number in range(3):
        table.put(4, 9_500 + number)
        table.compact(9_500 + number)
    cleaned = table.open(**{"hudi_assets.query.grace": "0s"}).clean(retained=1)
    assert not isinstance(cleaned, NothingToDo)
    assert lost.exists()
    assert table.only(f".*_{three[0]}.log.*").exists()  # a slice goes whole or stays whole
